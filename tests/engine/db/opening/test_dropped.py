"""What an opening says of the writes that it leaves out of a damaged log."""

from __future__ import annotations

import logging
import pickle
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from stores import flip, log_of

import lsmkv
from lsmkv import DB, DroppedLog, RecoveryReport, RecoveryWarning, aio

PUTS = 500


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    """A killed process's store, with one bit flipped in the 16th put of its log."""
    with DB(tmp_path / "live", create_if_missing=True) as db:
        for n in range(PUTS):
            db.put(b"%05d" % n, b"value")
        shutil.copytree(tmp_path / "live", tmp_path / "db")
    flip(log_of(tmp_path / "db"), 15 * 32 + 20, 1)
    return str(tmp_path / "db")


def warned(path: str | Path, **options: Any) -> DB:
    """The store, which is opened with a warning."""
    with pytest.warns(RecoveryWarning, match="writes are missing"):
        return DB(path, **options)


DROPPED = DroppedLog(
    "000003.log", 15 * 32, "fragment checksum mismatch", PUTS - 16, PUTS - 16, 1, "lost/000003.log"
)


def test_an_opening_says_what_it_left_out(damaged: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.warns(RecoveryWarning) as caught:
        db = DB(damaged)
    with db:
        assert len(dict(db)) == 15
        assert db.recovery
        assert db.recovery == RecoveryReport(damaged, (DROPPED,))
        assert (db.recovery.batches, db.recovery.operations) == (PUTS - 16, PUTS - 16)
    assert db.recovery  # once it is closed, too
    (warning,) = caught
    assert str(warning.message) == f"{damaged}/{DROPPED}" == str(db.recovery)
    assert warning.filename == __file__
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "484 writes" in caplog.text
    with DB(damaged) as db:  # nothing was left out by this one
        assert not db.recovery


async def test_an_opening_in_another_thread_shows_the_users_line(damaged: str) -> None:
    with pytest.warns(RecoveryWarning) as caught:
        async with aio.DB(damaged) as db:
            assert db.recovery
    assert [one.filename for one in caught] == [__file__]


def test_a_view_says_the_same_and_moves_nothing(damaged: str) -> None:
    before = {path: path.read_bytes() for path in Path(damaged).rglob("*") if path.is_file()}
    expected = DROPPED._replace(kept_as=None)
    with warned(damaged, read_only=True) as view:
        assert len(dict(view)) == 15
        assert view.recovery.dropped == (expected,)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            view.refresh()  # which finds the same: no second warning
        assert view.recovery.dropped == (expected,)
        (error,) = view.verify()
        assert (error.path, error.offset) == (f"{damaged}/000003.log", 480)
    assert {path: path.read_bytes() for path in before} == before
    assert not Path(damaged, "lost").exists()


def test_a_report_can_be_pickled(damaged: str) -> None:
    with warned(damaged) as db:
        for report in (db.recovery, RecoveryReport(damaged)):
            again = pickle.loads(pickle.dumps(report))
            assert again == report
            assert type(again) is RecoveryReport
            assert bool(again) == bool(report)


def test_a_warning_made_an_error_refuses_the_store_and_changes_nothing(damaged: str) -> None:
    before = sorted(path.name for path in Path(damaged).glob("*.*") if path.name != "LOG.old")
    log = log_of(Path(damaged)).read_bytes()
    for options in ({}, {"read_only": True}, {"reuse_logs": True}):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RecoveryWarning)
            with pytest.raises(RecoveryWarning, match="484 writes"):
                DB(damaged, **options)
    after = sorted(path.name for path in Path(damaged).glob("*.*") if path.name != "LOG.old")
    assert after == before
    assert log_of(Path(damaged)).read_bytes() == log
    with warned(damaged) as db:
        assert len(dict(db)) == 15


def test_paranoid_checks_refuse_damage_and_open_a_torn_tail(damaged: str) -> None:
    with pytest.raises(lsmkv.CorruptionError) as caught:
        DB(damaged, paranoid_checks=True)
    assert (caught.value.path, caught.value.offset) == (f"{damaged}/000003.log", 480)
    flip(log_of(Path(damaged)), 15 * 32 + 20, 1)
    data = log_of(Path(damaged)).read_bytes()
    end = PUTS * 32
    for tail in (data[: end - 4], data[: end - 4] + bytes(len(data) - end + 4), data[:end]):
        log_of(Path(damaged)).write_bytes(tail)
        copy = f"{damaged}.copy"
        shutil.copytree(damaged, copy)
        for options in ({"read_only": True}, {}):  # without a warning, which would be an error
            with DB(copy, paranoid_checks=True, **options) as db:
                assert len(dict(db)) == PUTS - (tail != data[:end])
                assert not db.recovery
                assert db.verify() == []
        shutil.rmtree(copy)


def test_damage_at_the_end_and_in_later_logs_is_counted() -> None:
    env = lsmkv.MemoryEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        for n in range(3):
            with db.write_batch() as batch:
                batch.put(b"%d" % n, b"1")
                batch.put(b"x%d" % n, b"2")
    with env.open_directory("/db") as directory:
        log = directory.read_file("000003.log", 1000)
        size = len(log) // 3
        later = log[size * 2 :]  # as if a new log had been begun before the last batch
        directory.remove("000003.log")
        bad = log[: size + 20] + bytes([log[size + 20] ^ 1]) + log[size + 21 : size * 2]
        for name, data in (("000003.log", bad), ("000007.log", later)):
            with directory.create(name) as file:
                file.append(data)
    with warned("/db", env=env) as db:
        assert sorted(dict(db)) == [b"0", b"x0"]
        first, second = db.recovery.dropped
        assert (first.name, first.offset, first.batches, first.missing) == (
            "000003.log",
            size,
            0,
            None,
        )
        assert (second.name, second.offset) == ("000007.log", 0)
        assert (second.batches, second.operations, second.missing) == (1, 2, 2)
        assert first.kept_as == "lost/000003.log"
        assert "follows the damage in 000003.log" in str(db.recovery).split("\n")[1]


def test_the_end_of_a_log_that_is_no_torn_record_counts_as_left_out(tmp_path: Path) -> None:
    with DB(tmp_path, create_if_missing=True) as db:
        db.put(b"a", b"1")
        db.put(b"b", b"2")
    log = log_of(tmp_path)
    flip(log, log.stat().st_size - 1, 1)
    with warned(tmp_path) as db:
        assert dict(db) == {b"a": b"1"}
        (dropped,) = db.recovery.dropped
        assert (dropped.batches, dropped.missing) == (0, None)
        assert "unknown how many" in str(dropped)
        assert len(db.verify()) == 1
