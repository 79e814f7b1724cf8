"""Repair of stores that are damaged in many ways."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stores import flip, pairs_in, put_numbered, rewrite

import lsmkv
from lsmkv import DB, plan_repair, repair_db
from lsmkv.engine.db.compact.obsolete import remove_obsolete_files
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.format.filenames import FileType, parse_filename
from lsmkv.engine.format.log import LogWriter
from lsmkv.engine.table.format import FOOTER_SIZE, Footer
from lsmkv.files import Table
from lsmkv.testing.durable import NameModel, Tails
from lsmkv.testing.faulty import FaultyEnv

State = dict[bytes, bytes]

OPTIONS: dict[str, Any] = {
    "write_buffer_size": 24_000,
    "max_file_size": 12_000,
    "block_size": 1024,
    "compression": None,
    "seek_compaction": False,
}


def key_of(number: int) -> bytes:
    return b"key%05d" % (number * 7919 % 100_000)


class History:
    """A store with several levels, overwrites, deletions, and writes in its log; and its model."""

    def __init__(self, path: Path, seed: int = 1, count: int = 6000, **options: Any) -> None:
        self.path = path
        self.options = OPTIONS | options
        self.now: State = {}
        self.ever: dict[bytes, set[bytes]] = {}
        """Every value that a key ever had."""
        self.writes: list[tuple[bytes, bytes | None]] = []
        rng = random.Random(seed)
        with DB(path, create_if_missing=True, **self.options) as db:
            for number in range(count):
                self.write(db, rng, number, count // 3)
                if number == count // 2:
                    db.compact_range()
                    db.compact_range()
            db.flush()
            for number in range(300):
                self.write(db, rng, number, count // 3)
            # Closing cuts a compaction short, and what it freed stays until the next open; so does
            # what a write was just looking at when the last commit tidied up.
            db._background.wait_until_idle()
            assert db._store is not None
            remove_obsolete_files(db._store, db._background.pending_outputs)

    def write(self, db: DB, rng: random.Random, number: int, keys: int) -> None:
        key = key_of(rng.randrange(keys))
        if rng.random() < 0.25:
            db.delete(key)
            self.now.pop(key, None)
            self.writes.append((key, None))
            return
        value = b"%d:" % number + rng.randbytes(rng.randrange(60))
        db.put(key, value)
        self.now[key] = value
        self.writes.append((key, value))
        self.ever.setdefault(key, set()).add(value)

    def content(self, path: Path) -> State:
        with DB(path, **self.options) as db:
            db.check()
            return dict(db)

    def compare(self, path: Path, last: int | None = None) -> set[bytes]:
        """The keys that a repaired store has lost; check that nothing else is wrong.

        ``last`` is the last write of the moment that the plan names.
        """
        found = self.content(path)
        then = dict(self.writes[:last])
        wrong = {key: value for key, value in found.items() if then.get(key) != value}
        assert not wrong, f"{len(wrong)} stale or revived keys, {list(wrong)[:3]}"
        return set(self.now) - set(found)

    def tables(self) -> list[Path]:
        return sorted(self.path.glob("*.ldb"))

    def manifest(self) -> Path:
        return self.path / (self.path / "CURRENT").read_text().strip()

    def log(self) -> Path:
        return max(self.path.glob("*.log"))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> History:
    history = History(tmp_path_factory.mktemp("pristine") / "db")
    with DB(history.path, read_only=True, **history.options) as db:
        levels = [level.level for level in db.stats().levels if level.files > 0]
    assert len(levels) >= 2
    assert history.log().stat().st_size > 0
    return history


@pytest.fixture
def history(pristine: History, tmp_path: Path) -> History:
    copy = History.__new__(History)
    copy.__dict__.update(pristine.__dict__)
    copy.path = tmp_path / "db"
    shutil.copytree(pristine.path, copy.path)
    return copy


def snapshot(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and file.name != "LOCK"
    }


def levels_of(path: Path, **options: Any) -> list[list[tuple[bytes, bytes]]]:
    """The key ranges of the tables of each level that is not empty."""
    with DB(path, read_only=True, **options) as db:
        version = db._store.view.version  # type: ignore[union-attr]
        return [[(file.smallest, file.largest) for file in level] for level in version.levels]


# Ten ways of damage, and more.  Each says how much may be lost, in keys.


def footer_of(table: Path) -> Footer:
    return Footer.decode(table.read_bytes()[-FOOTER_SIZE:])


def change(path: Path, edit: Callable[[bytearray], Any]) -> None:
    data = bytearray(path.read_bytes())
    edit(data)
    path.write_bytes(data)


def cut(path: Path, share: float) -> None:
    os.truncate(path, int(path.stat().st_size * share))


def flip_data(history: History) -> None:
    for table in history.tables()[::3]:
        flip(table, 200)


def flip_footer(history: History) -> None:
    for table in history.tables():
        flip(table, -1)


def flip_index_and_data(history: History) -> None:
    flip(history.tables()[1], -1)
    flip(history.tables()[1], 1500)


def zero_page(data: bytearray) -> None:
    data[2048:4096] = bytes(2048)


def flip_middle(data: bytearray) -> None:
    data[len(data) // 2] ^= 0xFF


Damage = tuple[Callable[[History], Any], int]

WAYS: dict[str, Damage] = {
    "flip data": (flip_data, 4 * 25),
    "flip filter": (
        lambda db: [flip(one, footer_of(one).metaindex.offset - 20) for one in db.tables()],
        0,
    ),
    "flip index": (
        lambda db: [flip(one, footer_of(one).index.offset + 3) for one in db.tables()],
        0,
    ),
    "flip footer": (flip_footer, 0),
    "flip index and data": (flip_index_and_data, 60),
    "cut table": (lambda db: cut(db.tables()[0], 0.5), 400),
    "zero page": (lambda db: change(db.tables()[2], zero_page), 120),
    "lose table": (lambda db: db.tables()[-1].unlink(), 2500),
    "empty table": (lambda db: cut(db.tables()[-1], 0), 2500),
    "lose CURRENT": (lambda db: (db.path / "CURRENT").unlink(), 0),
    "spoil CURRENT": (lambda db: (db.path / "CURRENT").write_bytes(b"MANIFEST-999999\n"), 0),
    "lose MANIFEST": (lambda db: db.manifest().unlink(), 0),
    "flip MANIFEST": (lambda db: change(db.manifest(), flip_middle), 0),
    "cut MANIFEST": (lambda db: cut(db.manifest(), 0.5), 0),
}
# A lost write leaves no trace: with keep_stale, its keys have their earlier values.
LOG_WAYS: dict[str, Damage] = {
    "flip log": (lambda db: flip(db.log(), 5000), 40),
    "cut log": (lambda db: os.truncate(db.log(), db.log().stat().st_size - 3), 1),
    "lose log": (lambda db: db.log().unlink(), 300),
}


@pytest.mark.parametrize("in_place", [False, True], ids=["into", "in place"])
@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_damage(history: History, way: str, in_place: bool, tmp_path: Path) -> None:
    damage, allowed = WAYS[way]
    damage(history)
    before = snapshot(history.path)
    target = history.path if in_place else tmp_path / "new"
    planned = plan_repair(history.path, **history.options)
    assert snapshot(history.path) == before  # a plan only reads
    assert planned.needed
    json.dumps(planned.to_dict())
    plan = repair_db(history.path, into=None if in_place else target, **history.options)
    assert str(plan) == str(planned)
    now = snapshot(history.path)  # opening it may start a compaction
    lost = history.compare(target, plan.as_of)
    assert len(lost) <= allowed
    if in_place:
        kept = snapshot(history.path / "lost")
        for name, content in before.items():
            if parse_filename(name) and not name.startswith("LOG"):
                assert content in (kept.get(name), now.get(name)), f"{name} is gone"
    else:
        assert snapshot(history.path) == before  # the source is as it was
    assert not plan_repair(target, **history.options).needed  # nothing more to do
    with DB(target, **history.options) as db:  # and the store is good for use
        for number in range(2000):
            db.put(key_of(number), b"new")
        db.compact_range()
        db.check()
        assert set(dict(db)) >= {key_of(number) for number in range(2000)}


@pytest.mark.parametrize("in_place", [False, True], ids=["into", "in place"])
@pytest.mark.parametrize("way", LOG_WAYS)
def test_damage_of_a_log(history: History, way: str, in_place: bool, tmp_path: Path) -> None:
    damage, allowed = LOG_WAYS[way]
    damage(history)
    target = history.path if in_place else tmp_path / "new"
    into = None if in_place else target
    repair_db(history.path, into=into, keep_stale=True, **history.options)
    found = history.content(target)
    differing = {
        key for key in set(found) | set(history.now) if found.get(key) != history.now.get(key)
    }
    assert len(differing) <= allowed
    for key, value in found.items():
        assert value in history.ever[key]


def test_an_undamaged_store_is_copied_unchanged(history: History, tmp_path: Path) -> None:
    plan = repair_db(history.path, into=tmp_path / "new", **history.options)
    assert not plan.needed
    for file in history.tables():
        copy = tmp_path / "new" / file.name
        assert copy.stat().st_ino == file.stat().st_ino  # shared, not copied
    # Before either is opened for writing, which may start a compaction.
    original = levels_of(history.path, **history.options)
    repaired = levels_of(tmp_path / "new", **history.options)
    assert repaired[1:] == original[1:]
    from_the_log = len(repaired[0]) - len(original[0])
    assert from_the_log > 0
    assert repaired[0][from_the_log:] == original[0]
    assert history.compare(tmp_path / "new") == set()


def test_an_undamaged_store_is_not_changed_in_place(history: History) -> None:
    before = snapshot(history.path)
    assert not repair_db(history.path, **history.options).needed
    assert snapshot(history.path) == before


@pytest.mark.parametrize("manifest", ["whole", "gone"])
def test_obsolete_tables_bring_no_deleted_key_back(tmp_path: Path, manifest: str) -> None:
    """The table of a deleted key still exists: a reader held it when the process died."""
    path = tmp_path / "db"
    with DB(path, create_if_missing=True) as db:
        db.put(b"dead", b"x")
        db.put(b"alive", b"x")
        db.flush()
        (old,) = path.glob("*.ldb")
        saved = old.read_bytes()
        db.delete(b"dead")
        db.compact_range()
        db.put(b"new", b"x")
        db.flush()
        assert not old.exists()
    old.write_bytes(saved)
    if manifest == "gone":
        (path / "CURRENT").unlink()
        (name,) = path.glob("MANIFEST-*")
        data = name.read_bytes()
        # Damage in the middle: what the rest says of dead tables still counts.
        name.write_bytes(data[:10] + b"\xff" + data[11:])
    else:
        (path / "CURRENT").unlink()
    plan = repair_db(path, into=tmp_path / "new")
    assert plan.by_levels == (manifest == "whole")
    assert pairs_in(tmp_path / "new", read_only=False) == {b"alive": b"x", b"new": b"x"}


def test_a_lost_block_makes_older_versions_stale(tmp_path: Path) -> None:
    path = tmp_path / "db"
    options: dict[str, Any] = {"compression": None, "block_size": 512, "seek_compaction": False}
    with DB(path, create_if_missing=True, **options) as db:
        put_numbered(db, b"key%05d", range(2000), b"old")
        db.compact_range()
        db.compact_range()
        put_numbered(db, b"key%05d", range(500, 700, 2), b"new")
        db.delete(b"key00600")
        db.flush()
    upper = max(path.glob("*.ldb"))
    flip(upper, 700)  # its second block
    plan = plan_repair(path, **options)
    (hole,) = next(table for table in plan.tables if table.survey.holes).survey.holes
    assert hole.has_filter
    assert plan.stale > 0
    repair_db(path, into=tmp_path / "new", **options)
    with DB(tmp_path / "new", **options) as db:
        content = dict(db)
        db.check()
    overwritten = {b"key%05d" % number for number in range(500, 700, 2)}
    for key, value in content.items():
        assert value == (b"new" if key in overwritten else b"old")
    assert b"key00600" not in content
    lost = {b"key%05d" % number for number in range(2000)} - set(content) - {b"key00600"}
    assert lost & overwritten  # the block held some
    # The filter spares nearly all that the block spans but did not hold.
    assert len(lost - overwritten) <= 5
    assert len(list((tmp_path / "new" / "lost").glob("*.ldb"))) >= 1

    repair_db(path, into=tmp_path / "kept", keep_stale=True, **options)
    with DB(tmp_path / "kept", **options) as db:
        assert set(content) < set(dict(db))
    assert not (tmp_path / "kept" / "lost").exists()


def test_a_hole_makes_no_entry_of_a_newer_table_stale(tmp_path: Path) -> None:
    path = tmp_path / "db"
    options: dict[str, Any] = {"compression": None, "block_size": 512, "seek_compaction": False}
    with DB(path, create_if_missing=True, **options) as db:
        put_numbered(db, b"key%05d", range(500), b"old")
        db.compact_range()
        db.compact_range()
        put_numbered(db, b"key%05d", range(500), b"new")
        db.flush()
    flip(min(path.glob("*.ldb")), 700)  # of the older table
    plan = repair_db(path, into=tmp_path / "new", **options)
    assert plan.stale == 0
    assert pairs_in(tmp_path / "new", **options, read_only=False) == {
        b"key%05d" % number: b"new" for number in range(500)
    }


def test_level_0_keeps_its_order(tmp_path: Path) -> None:
    """A rewritten table gets a new number, which must not make it the newest."""
    path = tmp_path / "db"
    with DB(path, create_if_missing=True, compression=None) as db:
        for turn in range(3):
            put_numbered(db, b"key%03d", range(50), b"%d" % turn)
            db.put(b"only%d" % turn, b"x")
            db.flush()
    tables = sorted(path.glob("*.ldb"))
    flip(
        tables[-2], footer_of(tables[-2]).metaindex.offset - 5
    )  # a filter: all data is still there
    assert repair_db(path).needed
    with DB(path) as db:
        db.check()
        assert db.get(b"key001") == b"2"
        assert len(dict(db)) == 53


@pytest.mark.parametrize(
    ("lost", "kept"),
    [(12, range(13, 100)), (80, range(80))],
    ids=["more after it", "more before it"],
)
def test_a_hole_in_the_log_sets_the_smaller_side_of_it_aside(
    tmp_path: Path, lost: int, kept: range
) -> None:
    """A lost write had any key: it may have replaced every older entry."""
    path = tmp_path / "db"
    with DB(path, create_if_missing=True) as db:
        put_numbered(db, b"key%03d", range(100), b"v" * 50)
    (log,) = path.glob("*.log")
    flip(log, log.read_bytes().index(b"key%03d" % lost))
    plan = plan_repair(path)
    assert f"writes {lost + 1} to {lost + 1} are missing" in str(plan)
    assert (plan.kept, plan.stale, plan.most_out_of_date) == (len(kept), 99 - len(kept), 1)
    repair_db(path, into=tmp_path / "new")
    with DB(tmp_path / "new") as db:
        assert sorted(db) == [(b"key%03d" % number, b"v" * 50) for number in kept]
    (aside,) = (tmp_path / "new" / "lost").glob("*.ldb")
    with Table(aside) as table:
        assert len(list(table.entries())) == plan.stale
    repair_db(path, into=tmp_path / "all", keep_stale=True)
    with DB(tmp_path / "all") as db:
        assert len(dict(db)) == 99
        assert b"key%03d" % lost not in db


def test_a_table_before_a_hole_in_the_log_is_set_aside_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with DB(path, create_if_missing=True) as db:
        db.put(b"old", b"1")
        db.flush()
        put_numbered(db, b"key%03d", range(100), b"v" * 50)
    (log,) = path.glob("*.log")
    flip(log, 30)
    (table,) = path.glob("*.ldb")
    plan = repair_db(path, into=tmp_path / "new")
    assert [one.action for one in plan.tables] == ["set aside"]
    assert plan.stale == 1
    assert (tmp_path / "new" / "lost" / table.name).read_bytes() == table.read_bytes()
    with DB(tmp_path / "new") as db:
        assert len(dict(db)) == 99


def test_a_missing_log_before_another_sets_older_entries_aside(tmp_path: Path) -> None:
    """The writes of the second log are all that is proved."""
    path = tmp_path / "db"
    with DB(path, create_if_missing=True) as db:
        db.put(b"old", b"1")
        db.flush()
        db.put(b"lost", b"1")
        db.put(b"new", b"1")
    (log,) = path.glob("*.log")
    content = log.read_bytes()
    # A flush that was killed: the writes after its beginning are in the next log.
    (path / "000099.log").write_bytes(content[len(content) // 2 :])
    log.unlink()
    plan = repair_db(path, into=tmp_path / "into")
    with DB(tmp_path / "into") as new:
        assert b"old" not in new
        assert dict(new) == {b"new": b"1"}
    assert plan.kept == 1
    assert plan.stale == 1
    assert plan.most_out_of_date == 1


def set_aside(path: Path) -> Path:
    """A store of which an opening has left out eight of ten puts; returns the lost log."""
    with DB(path, create_if_missing=True) as db:
        db.put(b"gone", b"1")
        db.flush()
        put_numbered(db, b"%d", range(10), b"first")
        db.delete(b"gone")
    (log,) = path.glob("*.log")
    flip(log, log.read_bytes().index(b"first", 30))  # that of the second put
    with pytest.warns(lsmkv.RecoveryWarning):
        db = DB(path)
    with db:
        assert dict(db) == {b"gone": b"1", b"0": b"first"}
    return path / "lost" / log.name


SAVED = {b"%d" % n: b"first" for n in range(10) if n != 1}


@pytest.mark.parametrize("in_place", [True, False])
def test_what_an_opening_left_out_is_added(tmp_path: Path, in_place: bool) -> None:
    """Nothing was written since: those writes follow the store's own, deletions included."""
    log = set_aside(tmp_path / "store")
    name = f"lost/{log.name}"
    plan = lsmkv.plan_repair(tmp_path / "store")
    assert plan.needed
    assert [(one.name, one.operations) for one in plan.logs] == [(name, 9)]
    assert plan.left_in_lost == []
    assert f"{name}: 9 writes in 9 batches go into new tables" in str(plan)
    target = tmp_path / ("store" if in_place else "new")
    into = None if in_place else target
    lsmkv.repair_db(tmp_path / "store", into=into, keep_stale=True)
    with DB(target, paranoid_checks=True) as db:
        assert dict(db) == SAVED
        assert db.verify() == []
        assert not db.recovery
    assert log.exists()
    assert lsmkv.plan_repair(tmp_path / "store").needed == (not in_place)


def test_a_repair_that_adds_what_was_left_out_may_be_killed(tmp_path: Path) -> None:
    base = FaultyEnv()
    with DB("/db", create_if_missing=True, env=base) as db:
        put_numbered(db, b"%d", range(10), b"first")
    with base.open_directory("/db") as directory:
        data = bytearray(directory.read_file("000003.log", 1000))
        data[50] ^= 3
        rewrite(directory, "000003.log", bytes(data))
    with pytest.warns(lsmkv.RecoveryWarning):
        DB("/db", env=base).close()
    for n in range(1, 1000):
        env = base.kill()
        env.fail_at(n, sticky=True)
        try:
            lsmkv.repair_db("/db", env=env, keep_stale=True)
        except (lsmkv.Error, OSError):
            pass
        killed = env.kill()
        lsmkv.repair_db("/db", env=killed, keep_stale=True)
        assert pairs_in("/db", env=killed, paranoid_checks=True, read_only=False) == SAVED
        if env.failures == 0:
            break
    assert n > 30


def test_what_an_opening_left_out_is_not_put_over_later_writes(tmp_path: Path) -> None:
    log = set_aside(tmp_path / "store")
    with DB(tmp_path / "store") as db:
        db.put(b"5", b"later")
    plan = lsmkv.plan_repair(tmp_path / "store")
    assert not plan.needed  # nothing that a repair can do
    assert [one.name for one in plan.left_in_lost] == [f"lost/{log.name}"]
    assert "9 writes after the damage cannot be added" in str(plan)
    assert plan.to_dict()["left_in_lost"][0]["operations"] == 9
    lsmkv.repair_db(tmp_path / "store", into=tmp_path / "new")
    assert pairs_in(tmp_path / "new", read_only=False) == {
        b"gone": b"1",
        b"0": b"first",
        b"5": b"later",
    }
    lsmkv.repair_db(tmp_path / "store" / "lost", into=tmp_path / "saved")
    assert pairs_in(tmp_path / "saved", read_only=False) == {
        key: value for key, value in SAVED.items() if key != b"0"
    }
    with DB(tmp_path / "store") as db:
        assert len(db.verify()) == 1
        db.acknowledge_recovery()
    assert lsmkv.plan_repair(tmp_path / "store").left_in_lost == []


def test_other_comparators(tmp_path: Path) -> None:
    def compare(a: bytes, b: bytes) -> int:
        return (a.lower() > b.lower()) - (a.lower() < b.lower())

    options: dict[str, Any] = {"comparator": compare, "comparator_name": "fold"}
    path = tmp_path / "db"
    with DB(path, create_if_missing=True, **options) as db:
        for letter in b"bDaC":
            db.put(bytes([letter]), b"1")
        db.put(b"B", b"2")
        db.flush()
    with pytest.raises(lsmkv.ComparatorMismatchError) as mismatch:
        plan_repair(path)
    assert "fold" in str(mismatch.value)
    next(path.glob("MANIFEST-*")).unlink()
    (path / "CURRENT").unlink()
    with pytest.raises(lsmkv.CorruptionError, match="comparator"):
        repair_db(path, into=tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()
    repair_db(path, into=tmp_path / "new", **options)
    with DB(tmp_path / "new", **options) as db:
        assert [value for _, value in db] == [b"1", b"2", b"1", b"1"]


def test_arguments_and_stores_that_are_refused(history: History, tmp_path: Path) -> None:
    with pytest.raises(lsmkv.NotFoundError):
        repair_db(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("mine")
    with pytest.raises(lsmkv.NotFoundError):
        repair_db(tmp_path / "empty")
    (tmp_path / "taken").mkdir()
    with pytest.raises(lsmkv.IOError) as taken:
        repair_db(history.path, into=tmp_path / "taken", **history.options)
    assert isinstance(taken.value, OSError)
    with DB(history.path, **history.options):
        for into in (None, tmp_path / "new"):
            with pytest.raises(lsmkv.LockedError):
                repair_db(history.path, into=into, **history.options)
    with pytest.raises(TypeError):
        repair_db(history.path, block_size="10")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="bloom_filter_bits is"):
        repair_db(history.path, bloom_filter_bits="10")


def test_progress_and_interruption(history: History, tmp_path: Path) -> None:
    flip_footer(history)
    before = snapshot(history.path)
    seen: list[tuple[int, int, str]] = []
    repair_db(
        history.path,
        into=tmp_path / "new",
        progress=lambda *step: seen.append(step),
        **history.options,
    )
    assert all(0 <= done <= total for done, total, _ in seen)
    assert len({phase for _, _, phase in seen}) > 1
    for stop_at in range(0, len(seen), 5):
        left = stop_at

        def interrupt(done: int, total: int, phase: str) -> None:
            nonlocal left
            if left == 0:
                raise KeyboardInterrupt
            left -= 1

        for into in (tmp_path / "other", None):
            left = stop_at
            with pytest.raises(KeyboardInterrupt):
                repair_db(history.path, into=into, progress=interrupt, **history.options)
            assert not (tmp_path / "other").exists()
            now = snapshot(history.path)
            assert {name: now.get(name) for name in before} == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["db", "new"]
    repair_db(history.path, **history.options)
    assert history.compare(history.path) == set()


def test_repeated_repairs_in_place(history: History) -> None:
    """Each repair keeps the files it replaces, under another name if theirs is taken."""
    for _ in range(3):
        name = history.manifest().name
        flip(history.manifest(), 20)
        repair_db(history.path, **history.options)
        assert history.compare(history.path) == set()
        assert (history.path / "lost" / name).exists()
    (history.path / "CURRENT").write_bytes(b"MANIFEST-999999\n")
    repair_db(history.path, **history.options)
    names = {file.name for file in (history.path / "lost").iterdir()}
    assert {"CURRENT"} <= names
    lsmkv.destroy_db(history.path)
    assert not history.path.exists()


def test_leveldb_reads_a_repaired_store(history: History, tmp_path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    change(history.manifest(), flip_middle)
    flip_footer(history)
    repair_db(history.path, into=tmp_path / "new", **history.options)
    db = plyvel.DB(str(tmp_path / "new"), paranoid_checks=True)
    assert dict(db.iterator(verify_checksums=True)) == history.now
    db.compact_range()
    assert dict(db.iterator(verify_checksums=True)) == history.now
    db.close()


def test_a_store_of_leveldb(tmp_path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    path = tmp_path / "db"
    rng = random.Random(3)
    model: State = {}
    db = plyvel.DB(str(path), create_if_missing=True, write_buffer_size=65536)
    for number in range(8000):
        key = key_of(rng.randrange(2000))
        if rng.random() < 0.3:
            db.delete(key)
            model.pop(key, None)
        else:
            model[key] = b"%d" % number + rng.randbytes(40)
            db.put(key, model[key])
    db.close()
    repair_db(path, into=tmp_path / "healthy")
    assert pairs_in(tmp_path / "healthy", read_only=False) == model
    # LevelDB leaves a table half done when it is closed in a compaction: without a MANIFEST, and
    # without their footers, nothing tells such a one from others.
    DB(path, seek_compaction=False).close()
    for name in path.glob("MANIFEST-*"):
        name.unlink()
    for table in path.glob("*.ldb"):
        os.truncate(table, table.stat().st_size - 10)
    repair_db(path)
    with DB(path) as mine:
        assert dict(mine) == model
        mine.check()


def test_tables_of_old_names(history: History, tmp_path: Path) -> None:
    for table in history.tables():
        table.rename(table.with_suffix(".sst"))
    (history.path / "CURRENT").unlink()
    repair_db(history.path, into=tmp_path / "new", **history.options)
    assert history.compare(tmp_path / "new") == set()


def test_a_log_written_by_hand(tmp_path: Path) -> None:
    """Sequences may have gaps: LevelDB leaves them after a failed write."""
    path = tmp_path / "db"
    with DB(path, create_if_missing=True):
        pass
    (log,) = path.glob("*.log")
    with LocalEnv().open_directory(str(path)) as directory:
        directory.remove(log.name)
        with directory.create(log.name) as file:
            writer = LogWriter(file)
            for sequence in (10, 11, 20):
                batch = lsmkv.WriteBatch()
                batch.put(b"%d" % sequence, b"v")
                writer.add_record(batch.encode(sequence))
    assert not plan_repair(path).needed
    repair_db(path, into=tmp_path / "new")
    with DB(tmp_path / "new") as db:
        assert dict(db) == {b"10": b"v", b"11": b"v", b"20": b"v"}
        assert db._store.versions.last_sequence == 20  # type: ignore[union-attr]


def test_file_numbers_are_not_reused(history: History, tmp_path: Path) -> None:
    flip_footer(history)
    repair_db(history.path, into=tmp_path / "new", **history.options)
    highest = max(
        parse_filename(name)[0] for name in os.listdir(history.path) if parse_filename(name)
    )  # type: ignore[index]
    manifest = (tmp_path / "new" / "CURRENT").read_text().strip()
    parsed = parse_filename(manifest)
    assert parsed is not None
    assert parsed[0] > highest
    assert parsed[1] is FileType.MANIFEST


# Random stores, random damage


SMALL: dict[str, Any] = {
    "write_buffer_size": 4096,
    "max_file_size": 3000,
    "block_size": 300,
    "compression": None,
    "seek_compaction": False,
}


class Wreck:
    """A small store in memory, its model, and ways to damage it."""

    def __init__(self, seed: int, **options: Any) -> None:
        self.rng = rng = random.Random(seed)
        self.options = SMALL | options
        self.env = FaultyEnv()
        self.now: State = {}
        self.in_log: set[bytes] = set()
        self.ever: dict[bytes, set[bytes | None]] = {}
        self.writes: list[tuple[bytes, bytes | None]] = []
        with DB("/db", create_if_missing=True, env=self.env, **self.options) as db:
            for number in range(rng.randrange(50, 900)):
                if rng.random() < 0.004:
                    db.compact_range()
                if rng.random() < 0.004:
                    db.flush()
                self.write(db, number)
            db.flush()
            for number in range(rng.randrange(30)):
                self.in_log.add(self.write(db, 10_000 + number))
        # Closing may leave the work of the background half done: the next open ends it.
        self.env = self.env.kill()

    def write(self, db: DB, number: int) -> bytes:
        key = b"key%03d" % self.rng.randrange(150)
        if self.rng.random() < 0.3:
            db.delete(key)
            self.now.pop(key, None)
        else:
            self.now[key] = b"%d:" % number + self.rng.randbytes(self.rng.randrange(50))
            db.put(key, self.now[key])
        self.ever.setdefault(key, {None}).add(self.now.get(key))
        self.writes.append((key, self.now.get(key)))
        return key

    def names(self, *kinds: FileType) -> list[str]:
        with self.env.open_directory("/db") as directory:
            found = [(name, parse_filename(name)) for name in directory.names()]
            return sorted(name for name, parsed in found if parsed and parsed[1] in kinds)

    def rewrite(self, name: str, change: Callable[[bytearray], None]) -> None:
        with self.env.open_directory("/db") as directory:
            data = bytearray(directory.read_file(name, 1 << 30))
            change(data)
            rewrite(directory, name, bytes(data))

    def harm(self, name: str, may_go: bool) -> None:
        rng = self.rng

        def change(data: bytearray) -> None:
            if not data:
                return
            at = rng.randrange(len(data))
            way = rng.randrange(4)
            if way == 0:
                data[at] ^= rng.randrange(1, 256)
            elif way == 1:
                data[at : at + 500] = bytes(len(data[at : at + 500]))
            elif way == 2:
                del data[at:]
            else:
                data[-1] ^= 0xFF

        if may_go and rng.random() < 0.15:
            with self.env.open_directory("/db") as directory:
                directory.remove(name)
                directory.sync()
        else:
            self.rewrite(name, change)

    def content(self, env: FaultyEnv, path: str) -> State:
        with DB(path, env=env, **self.options) as db:
            db.check()
            assert db.verify() == []
            return dict(db)

    def judge(self, found: State, log_hit: bool, last: int | None = None) -> set[bytes]:
        """The keys that are lost; check that nothing else is wrong.

        ``last`` is the last write of the moment that the plan names.
        """
        then = dict(self.writes[:last])
        for key, value in found.items():
            if log_hit and key in self.in_log:
                assert value in self.ever[key]
            else:
                assert then.get(key) == value, key
        return set(self.now) - set(found)


@pytest.mark.parametrize("seed", range(40))
def test_random_stores_and_damages(seed: int) -> None:
    wreck = Wreck(seed, **({"bloom_filter_bits": 0} if seed % 3 == 0 else {}))
    rng = wreck.rng
    kinds = [FileType.TABLE, FileType.TABLE, FileType.MANIFEST, FileType.LOG, FileType.CURRENT]
    log_hit = False
    # Only a MANIFEST tells that a table is missing: this pair is more than can be known.
    tables_go = seed % 2 == 0
    for _ in range(rng.randrange(1, 5)):
        kind = rng.choice(kinds)
        names = wreck.names(kind)
        if names and not (tables_go and kind is FileType.MANIFEST):
            wreck.harm(rng.choice(names), tables_go or kind is not FileType.TABLE)
            log_hit = log_hit or kind is FileType.LOG
    try:
        plan = repair_db("/db", into="/new", env=wreck.env, **wreck.options)
    except lsmkv.NotFoundError:
        assert not wreck.names(FileType.TABLE, FileType.LOG, FileType.MANIFEST, FileType.CURRENT)
        return
    found = wreck.content(wreck.env, "/new")
    wreck.judge(found, log_hit, plan.as_of)
    assert not plan_repair("/new", env=wreck.env, **wreck.options).needed
    repair_db("/db", env=wreck.env, **wreck.options)
    assert wreck.content(wreck.env, "/db") == (
        found if plan.needed else wreck.content(wreck.env, "/db")
    )
    assert not plan_repair("/db", env=wreck.env, **wreck.options).needed


def test_a_single_flip_loses_a_block_at_most() -> None:
    for seed in range(12):
        wreck = Wreck(100 + seed)
        tables = wreck.names(FileType.TABLE)
        if not tables:
            continue
        name = wreck.rng.choice(tables)
        wreck.rewrite(name, lambda data: data.__setitem__(len(data) // 3, data[len(data) // 3] ^ 3))
        repair_db("/db", into="/new", env=wreck.env, **wreck.options)
        lost = wreck.judge(wreck.content(wreck.env, "/new"), False)
        assert len(lost) <= 20


@pytest.mark.parametrize("way", ["tables", "current", "manifest", "missing table"])
def test_kills_and_power_cuts_of_a_repair_in_place(way: str) -> None:
    """After a stop at any call, the repair can be run again and no more is lost."""
    wreck = Wreck(7)
    tables = wreck.names(FileType.TABLE)
    assert len(tables) > 2
    (manifest,) = wreck.names(FileType.MANIFEST)
    wreck.rewrite(tables[-1], lambda data: data.__setitem__(400, data[400] ^ 0xFF))
    wreck.rewrite(tables[0], lambda data: data.__setitem__(-1, 0))
    if way == "manifest":
        wreck.rewrite(manifest, lambda data: data.__setitem__(30, data[30] ^ 0xFF))
    elif way != "tables":
        with wreck.env.open_directory("/db") as directory:
            directory.remove("CURRENT" if way == "current" else tables[1])
            directory.sync()
    damaged = wreck.env
    reference = damaged.kill()
    repair_db("/db", env=reference, **wreck.options)
    expected = wreck.content(reference, "/db")
    wreck.judge(expected, False)
    with damaged.open_directory("/db") as directory:
        originals = {name: directory.read_file(name, 1 << 30) for name in directory.names()}
    n = 0
    while True:
        # Every call where the MANIFEST is good; a sample where less depends on it.
        n += 1 if way == "missing table" else 3
        env = damaged.kill()
        env.fail_at(n, sticky=True, short=n % 2 == 0)
        try:
            repair_db("/db", env=env, **wreck.options)
        except lsmkv.IOError:
            pass
        if env.failures == 0:
            break
        states = [env.kill()]
        if n % 4 == 0:
            states += [
                env.power_cut(names, random.Random(n), tails=list(Tails)[n // 4 % 4])
                for names in NameModel
            ]
        for state in states:
            kept = {name: read_if_there(state, "/db", name) for name in originals}
            set_aside = {name: read_if_there(state, "/db/lost", name) for name in originals}
            for name, content in originals.items():
                if not name.startswith("LO"):
                    assert content in (kept[name], set_aside[name]), (n, name)
            repair_db("/db", env=state, **wreck.options)
            assert wreck.content(state, "/db") == expected, n
    assert n > 60


def read_if_there(env: FaultyEnv, path: str, name: str) -> bytes | None:
    try:
        with env.open_directory(path) as directory:
            return directory.read_file(name, 1 << 30)
    except FileNotFoundError:
        return None


def test_each_call_of_a_repair_failed_in_turn() -> None:
    """The failure is raised, nothing is lost, and the next repair succeeds."""
    wreck = Wreck(7)
    tables = wreck.names(FileType.TABLE)
    for table in tables:
        wreck.rewrite(table, lambda data: data.__setitem__(300, data[300] ^ 0xFF))
    env = wreck.env.kill()
    repair_db("/db", env=env, **wreck.options)
    expected = wreck.content(env, "/db")
    for into, step in ((None, 1), ("/new", 3)):
        n = 0
        while True:
            n += step
            env = wreck.env.kill()
            env.fail_at(n, OSError(errno.ENOSPC, "full"), short=True)
            try:
                repair_db("/db", into=into, env=env, **wreck.options)
            except lsmkv.IOError as error:
                assert error.errno == errno.ENOSPC  # noqa: PT017
            if env.failures == 0:
                break
            env.heal()
            if into is not None:
                with env.open_directory("/") as parent:
                    if "new" in parent.names():
                        assert wreck.content(env, into) == expected
                        continue
            repair_db("/db", into=into, env=env, **wreck.options)
            assert wreck.content(env, into or "/db") == expected


def test_older_versions_behind_a_hole_without_an_index(tmp_path: Path) -> None:
    """A table may hold many versions of a key; the newest that is left may be stale."""
    path = tmp_path / "db"
    options: dict[str, Any] = {"compression": None, "block_size": 200, "bloom_filter_bits": 0}
    with DB(path, create_if_missing=True, **options) as db:
        held = []
        db.put(b"a", b"first")
        for number in range(60):
            db.put(b"many", b"%03d" % number + b"v" * 20)
            held.append(db.snapshot())
        db.put(b"z", b"last")
        db.flush()
        for snapshot_ in held:
            snapshot_.close()
        (table,) = path.glob("*.ldb")
        spoiled = table.read_bytes()
    # As a process leaves it that dies right now, so that nothing is compacted.
    shutil.rmtree(path)
    with DB(path, create_if_missing=True, **options):
        pass
    (path / "CURRENT").unlink()
    for name in [*path.glob("MANIFEST-*"), *path.glob("*.log")]:
        name.unlink()
    for blind in (False, True):
        (path / table.name).write_bytes(spoiled)
        flip(path / table.name, 30)
        if blind:
            flip(path / table.name, len(spoiled) - 1)
        new = tmp_path / f"new {blind}"
        plan = repair_db(path, into=new, **options)
        assert plan.stale > 30
        with DB(new, **options) as db:
            assert b"many" not in dict(db)
            assert db.get(b"z") == b"last"


def test_an_interrupted_repair_with_stale_entries(tmp_path: Path) -> None:
    """Tables that a failed or killed repair left in ``lost`` do not hinder the next one."""
    wreck = Wreck(7)
    for table in wreck.names(FileType.TABLE):
        wreck.rewrite(table, lambda data: data.__setitem__(300, data[300] ^ 0xFF))
    assert plan_repair("/db", env=wreck.env, **wreck.options).stale > 0
    env = wreck.env.kill()
    env.fail_at(9, sticky=True, calls={"create"})
    with pytest.raises(lsmkv.IOError):
        repair_db("/db", env=env, **wreck.options)
    for left in (env, env.kill()):
        left.heal()
        repair_db("/db", env=left, **wreck.options)
        wreck.judge(wreck.content(left, "/db"), False)


@pytest.mark.parametrize("damage", ["none", "torn", "no CURRENT"])
def test_dropped_tables_do_not_come_back(tmp_path: Path, damage: str) -> None:
    """A crash has left them there, after the edit that only deletes."""
    path, kept = tmp_path / "db", tmp_path / "kept"
    with lsmkv.DB(path, create_if_missing=True) as db:
        db.put(b"a", b"v")
        db.flush()
        for key in (b"l", b"m"):  # of which the drop's own deletion hides the first
            db.put(key, b"v")
        db.flush()
        kept.mkdir()
        for table in path.glob("*.ldb"):
            shutil.copy(table, kept)
        db.delete_range(b"l", b"n")
    for table in kept.iterdir():
        shutil.copy(table, path)
    if damage == "torn":
        (manifest,) = path.glob("MANIFEST-*")
        with manifest.open("ab") as file:
            file.write(b"\1\2\3")
    elif damage == "no CURRENT":
        (path / "CURRENT").unlink()
    lsmkv.repair_db(path)
    with lsmkv.DB(path) as db:
        assert dict(db) == {b"a": b"v"}
