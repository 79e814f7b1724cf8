"""Iterators over the committed batches: nothing is left out, whatever becomes of the logs."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

import lsmkv
from lsmkv import DB, CommittedBatch


def logs(path: Path) -> list[str]:
    return sorted(name for name in os.listdir(path) if name.endswith(".log"))


def keys(batches: lsmkv.Batches) -> list[bytes]:
    return [key for batch in batches for key, _ in batch.operations]


def test_batches_come_whole_and_in_their_order() -> None:
    with DB(":memory:") as db:
        db.put(b"a", b"1")
        with db.write_batch() as batch:
            batch.put(b"b", b"2")
            batch.delete(b"a")
        db.delete(b"b")
        found = list(db.batches(0))
        assert found == [
            CommittedBatch(1, [(b"a", b"1")]),
            CommittedBatch(2, [(b"b", b"2"), (b"a", None)]),
            CommittedBatch(4, [(b"b", None)]),
        ]
        assert [one.last_sequence for one in found] == [1, 3, 4]
        assert list(db.batches(1)) == found[1:] == list(db.batches(2))
        assert list(db.batches(3)) == found[2:]
        assert list(db.batches(4)) == []


def test_it_begins_now_if_nothing_else_is_said(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"a", b"1")
        batches = db.batches()
        assert batches.sequence == 1
        db.put(b"b", b"2")
        db.flush()
        db.put(b"c", b"3")
        assert keys(batches) == [b"b", b"c"]


def test_an_end_is_not_final(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        batches = db.batches(0)
        assert keys(batches) == []
        db.put(b"a", b"1")
        assert keys(batches) == [b"a"]
        assert batches.sequence == 1
        db.put(b"b", b"2")
        assert keys(batches) == [b"b"]


def test_it_goes_on_from_log_to_log_and_keeps_those_that_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with DB(path, create_if_missing=True) as db:
        batches = db.batches(0)
        for n in range(5):
            db.put(b"%d" % n, b"v")
            db.flush()
        assert len(logs(path)) > 5
        assert next(batches).operations == [(b"0", b"v")]
        assert keys(batches) == [b"1", b"2", b"3", b"4"]
        db.put(b"5", b"v")
        assert keys(batches) == [b"5"]
        db.flush()
        db.put(b"6", b"v")
        assert keys(batches) == [b"6"]
        db.flush()
        assert len(logs(path)) <= 2


def test_what_no_log_has_is_too_old(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"a", b"1")
        db.flush()
        with pytest.raises(lsmkv.SequenceTooOldError) as error:
            db.batches(0)
        assert error.value.sequence == 0
        db.put(b"b", b"2")
        with pytest.raises(lsmkv.SequenceTooOldError):
            db.batches(0)
        assert keys(db.batches(1)) == [b"b"]
    with DB(tmp_path / "db") as db:
        db.put(b"c", b"3")
        assert keys(db.batches(db.sequence - 1)) == [b"c"]
        with pytest.raises(lsmkv.SequenceTooOldError):
            db.batches(0)


def test_an_ingest_is_in_no_log(tmp_path: Path) -> None:
    with lsmkv.TableWriter(tmp_path / "bulk.ldb") as table:
        table.add(b"bulk", b"1")
    with DB(tmp_path / "db", create_if_missing=True) as db:
        batches = db.batches(0)
        db.put(b"a", b"1")
        db.ingest([tmp_path / "bulk.ldb"])
        assert next(batches).operations == [(b"a", b"1")]
        for _ in range(2):
            with pytest.raises(lsmkv.SequenceTooOldError):
                next(batches)
        db.put(b"b", b"2")
        with pytest.raises(lsmkv.SequenceTooOldError):
            next(batches)
        assert keys(db.batches(db.sequence - 1)) == [b"b"]


@pytest.mark.parametrize("since", [-1, 1, 2**60])
def test_a_sequence_that_the_store_does_not_have(since: int) -> None:
    with DB(":memory:") as db, pytest.raises(ValueError, match="no write has sequence"):
        db.batches(since)


def test_many_batches_are_read_in_pieces(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True, write_buffer_size=1 << 16) as db:
        batches = db.batches(0)
        for n in range(300):
            db.put(b"%05d" % n, bytes(3_000))
        db.put(b"large", bytes(1 << 20))
        assert keys(batches) == [b"%05d" % n for n in range(300)] + [b"large"]
        assert keys(db.batches(db.sequence - 1)) == [b"large"]


def test_it_waits_for_as_long_as_it_shall() -> None:
    with DB(":memory:") as db:
        started = time.monotonic()
        assert list(db.batches(0, timeout=0.05)) == []
        assert time.monotonic() - started >= 0.05
        threading.Timer(0.05, db.put, (b"k", b"v")).start()
        assert next(db.batches(0, timeout=None)).operations == [(b"k", b"v")]


def test_a_follower_of_writing_threads_misses_nothing(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True, write_buffer_size=1 << 16) as db:
        batches = db.batches(0, timeout=30)

        def write(name: bytes) -> None:
            for n in range(400):
                with db.write_batch(sync=n % 100 == 0) as batch:
                    batch.put(b"%s%d" % (name, n), bytes(300))
                    batch.delete(name)

        threads = [threading.Thread(target=write, args=(b"%d." % n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        expected = 1
        found: list[bytes] = []
        for batch in batches:
            assert batch.sequence == expected
            expected = batch.last_sequence + 1
            found += [key for key, value in batch.operations if value is not None]
            if len(found) == 1200:
                break
        for thread in threads:
            thread.join()
        assert sorted(found) == sorted(b"%d.%d" % (n, m) for n in range(3) for m in range(400))


def test_a_store_that_is_closed(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"a", b"1")
        db.put(b"b", b"1")
        batches = db.batches(0)
        next(batches)
        timer = threading.Timer(0.1, db.close)
        waiting = db.batches(2, timeout=None)
        timer.start()
        with pytest.raises(lsmkv.ClosedError):
            next(waiting)
        timer.join()
        with pytest.raises(lsmkv.ClosedError):
            next(batches)


def test_a_reader_follows_a_writer_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with DB(path, create_if_missing=True) as db, DB(path, read_only=True) as reader:
        batches = reader.batches(0)
        db.put(b"a", b"1")
        assert keys(batches) == [b"a"]
        db.flush()
        db.put(b"b", b"2")
        assert keys(batches) == [b"b"]
        late = reader.batches(2)
        for _ in range(3):
            db.put(b"c", b"3")
            db.flush()
        with pytest.raises(lsmkv.SequenceTooOldError):
            list(late)
        assert late.sequence == 3  # from the log that it had open


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"a", b"1")
        batches = db.batches(0)
        child = os.fork()
        if child == 0:
            try:
                next(batches)
            except lsmkv.ForkedError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert keys(batches) == [b"a"]


def test_damage_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with DB(path, create_if_missing=True, mapped_log=False) as db:
        db.put(b"a", b"1")
        db.put(b"b", b"2")
        (name,) = logs(path)
        with (path / name).open("r+b") as file:
            file.seek(40)
            file.write(b"damage")
        batches = db.batches(0)
        assert next(batches).operations == [(b"a", b"1")]
        with pytest.raises(lsmkv.CorruptionError) as error:
            next(batches)
        assert error.value.path == str(path / name)
        assert error.value.offset == 24


def test_shown() -> None:
    with DB(":memory:") as db:
        with db.batches(0) as batches:
            assert repr(batches) == "<lsmkv.Batches of ':memory:' after write 0>"
        assert repr(batches).endswith("(closed)>")
