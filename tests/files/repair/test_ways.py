"""Rescue: every way to make an intact store, on a copy."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stores import contents, flip, log_of, pairs_in

import lsmkv
from lsmkv import DB, MemoryEnv
from lsmkv.indexeddb import IndexedDBComparator
from lsmkv.repair import DAMAGED, WAYS, rescue_db, survey_db

SMALL: dict[str, Any] = {"block_size": 512, "compression": None, "seek_compaction": False}
OLD, NEW, LAST = b"old" * 8, b"new" * 8, b"last" * 8


def key(n: int) -> bytes:
    return b"%04d" % n


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """600 old values on a deep level, 300 new ones in a table above it, 50 last ones in the log."""
    path = tmp_path / "a store"
    with DB(path, create_if_missing=True, **SMALL) as db:
        for n in range(600):
            db.put(key(n), OLD)
        db.compact_range()
        for n in range(300):
            db.put(key(n), NEW)
        db.flush()
        for n in range(50):
            db.put(key(n), LAST)
    return path


TRUTH = {key(n): LAST if n < 50 else NEW if n < 300 else OLD for n in range(600)}


def newest(store: Path) -> Path:
    return max(store.glob("*.ldb"))


def flip_table(store: Path) -> None:
    flip(newest(store), 700)


def flip_deep_table(store: Path) -> None:
    flip(min(store.glob("*.ldb")), 700)


def cut_table(store: Path) -> None:
    os.truncate(newest(store), newest(store).stat().st_size // 2)


def zero_table(store: Path) -> None:
    newest(store).write_bytes(bytes(newest(store).stat().st_size))


def remove_table(store: Path) -> None:
    newest(store).unlink()


def remove_current(store: Path) -> None:
    (store / "CURRENT").unlink()


def remove_manifest(store: Path) -> None:
    next(store.glob("MANIFEST-*")).unlink()


def empty_manifest(store: Path) -> None:
    os.truncate(next(store.glob("MANIFEST-*")), 0)


def flip_log(store: Path) -> None:
    flip(log_of(store), 100)


DAMAGE = [
    flip_table,
    flip_deep_table,
    cut_table,
    zero_table,
    remove_table,
    remove_current,
    remove_manifest,
    empty_manifest,
    flip_log,
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_every_way_makes_a_sound_store_of_as_many_entries_as_it_says(
    store: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    damage(store)
    before = contents(store)
    kept: dict[str, dict[bytes, bytes]] = {}
    found = rescue_db(store, tmp_path / "new")
    assert found.made == found.recommended
    for way in WAYS[1:]:
        new = tmp_path / way
        found = rescue_db(store, new, way=way)
        assert found.made == way
        made = found.way(way)
        assert made is not None
        assert made.works
        assert survey_db(new).severity < DAMAGED
        kept[way] = pairs_in(new)
        assert len(kept[way]) == made.entries
        base = kept["by-level"]
        assert made.more == len(kept[way].keys() - base.keys())
        assert made.fewer == len(base.keys() - kept[way].keys())
        assert made.other == sum(base[key] != kept[way].get(key, base[key]) for key in base)
    assert pairs_in(tmp_path / "new") == kept[str(found.recommended)]
    wrong = {key for key, value in kept["by-level"].items() if TRUTH[key] != value}
    assert len(wrong) <= (50 if damage is flip_log else 0)  # as it was before a lost write
    assert contents(store) == before
    assert sorted(os.listdir(tmp_path)) == ["a store", *sorted([*WAYS[1:], "new"])]
    assert not found.sound
    assert found.ways[0].name == "as-is"


def test_a_way_that_gives_what_another_gave_is_left_out(store: Path, tmp_path: Path) -> None:
    remove_current(store)
    found = rescue_db(store, tmp_path / "new")
    assert "keep-stale" not in [way.name for way in found.ways]  # nothing is stale
    assert rescue_db(store, tmp_path / "asked", way="keep-stale").made == "keep-stale"


def test_keys_that_a_way_lacks_are_counted(store: Path, tmp_path: Path) -> None:
    later = tmp_path / "later"
    shutil.copytree(store, later)
    tables = set(store.glob("*.ldb"))
    with DB(later, **SMALL) as db:
        for n in range(400, 420):
            db.delete(key(n))
        db.flush()
    for table in later.glob("*.ldb"):
        if not (store / table.name).exists():
            shutil.copy(table, store)  # no MANIFEST of the store names it
    assert set(store.glob("*.ldb")) > tables
    remove_current(store)
    found = rescue_db(store, tmp_path / "new", way="by-sequence")
    way = found.way("by-sequence")
    assert way is not None
    assert (way.entries, way.fewer, way.more) == (580, 20, 0)
    assert len(pairs_in(tmp_path / "new")) == 580


def test_writes_that_a_log_has_lost_are_a_remark(store: Path, tmp_path: Path) -> None:
    flip(log_of(store), 100, 0x55)
    way = rescue_db(store, tmp_path / "new").way("by-level")
    assert way is not None
    assert "1 write is missing in the logs" in way.remarks
    remove_manifest(store)
    remove_table(store)
    way = rescue_db(store, tmp_path / "newer").way("by-level")
    assert way is not None
    assert any("in no file: lost, or replaced" in remark for remark in way.remarks)


def test_nothing_is_made_of_a_sound_store(store: Path, tmp_path: Path) -> None:
    found = rescue_db(store, tmp_path / "new")
    assert (found.sound, found.made, found.recommended) == (True, None, "as-is")
    assert found.ways[0].entries == 600
    assert os.listdir(tmp_path) == ["a store"]
    asked = rescue_db(store, tmp_path / "new", way="by-sequence")
    assert (asked.sound, asked.made) == (True, "by-sequence")


def test_another_way_is_recommended_if_by_level_keeps_less_than_half(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with DB(path, create_if_missing=True, **SMALL) as db:
        for n in range(600):
            db.put(key(n), OLD)
    log = log_of(path)
    for n in (200, 400):  # each of the three parts may be older than what is lost after it
        flip(log, log.read_bytes().index(key(n)))
    found = rescue_db(path, tmp_path / "new")
    kept = {way.name: way.entries for way in found.ways}
    assert kept["by-level"] * 2 < kept["keep-stale"]
    assert found.recommended == found.made == "keep-stale"


def test_nothing_is_made_if_no_way_works(tmp_path: Path) -> None:
    def compare(a: bytes, b: bytes) -> int:
        return (a[::-1] > b[::-1]) - (a[::-1] < b[::-1])

    path = tmp_path / "store"
    options: dict[str, Any] = {"comparator": compare, "comparator_name": b"own"}
    with DB(path, create_if_missing=True, **options, **SMALL) as db:
        for n in range(600):
            db.put(key(n), OLD)
        db.flush()
    remove_manifest(path)
    found = rescue_db(path, tmp_path / "new")
    assert (found.recommended, found.made, found.comparator) == (None, None, "")
    assert "order of the comparator" in found.ways[1].problem
    assert os.listdir(tmp_path) == ["store"]
    assert rescue_db(path, tmp_path / "new", **options).made == "by-level"
    assert len(pairs_in(tmp_path / "new", **options)) == 600


def test_the_directorys_name_says_the_order(tmp_path: Path) -> None:
    path = tmp_path / "https_example.org_0.indexeddb.leveldb"
    with DB(path, create_if_missing=True, comparator=IndexedDBComparator()) as db:
        db.put(b"\0\0\0\0\0", b"1")
    remove_manifest(path)
    assert rescue_db(path, tmp_path / "new").comparator == "idb_cmp1"


def test_logs_that_an_opening_has_set_aside_are_copied(store: Path, tmp_path: Path) -> None:
    flip_log(store)
    with pytest.warns(lsmkv.RecoveryWarning), DB(store):
        pass
    found = rescue_db(store, tmp_path / "new", way="keep-stale")
    best = found.way("by-level")
    assert best is not None
    assert (best.entries, best.set_aside) == (600, 48)  # as it was before the lost write
    kept = pairs_in(tmp_path / "new")
    assert sum(value == LAST for value in kept.values()) >= 48


@pytest.mark.parametrize("wrong", ["as-is", "by level", ""])
def test_an_unknown_way_is_refused(store: Path, tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ValueError, match="by-level, keep-stale, by-sequence"):
        rescue_db(store, tmp_path / "new", way=wrong)


def test_what_is_refused_leaves_nothing(store: Path, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        rescue_db(store, store)
    with pytest.raises(lsmkv.NotFoundError):
        rescue_db(tmp_path / "none", tmp_path / "new")
    with DB(store), pytest.raises(lsmkv.LockedError):
        rescue_db(store, tmp_path / "new")
    assert os.listdir(tmp_path) == ["a store"]


def test_ctrl_c_leaves_nothing_at_any_step(store: Path, tmp_path: Path) -> None:
    flip_table(store)
    before = contents(store)
    phases: list[str] = []
    rescue_db(store, tmp_path / "new", progress=lambda _done, _total, phase: phases.append(phase))
    shutil.rmtree(tmp_path / "new")
    steps = len(phases)
    assert "copying" in phases
    for step in range(0, steps, max(1, steps // 6)):
        left = step

        def interrupt(_done: int, _total: int, _phase: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            rescue_db(store, tmp_path / "new", progress=interrupt)
        assert os.listdir(tmp_path) == ["a store"]
        assert contents(store) == before


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    class FullEnv(MemoryEnv):
        left = 1 << 30

        def open_directory(self, path: str, create: bool = False) -> Any:
            directory: Any = super().open_directory(path, create)
            inner = directory.create

            def create_file(name: str) -> Any:
                self.left -= 1
                if self.left < 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
                return inner(name)

            directory.create = create_file
            return directory

    env = FullEnv()
    with DB("store", create_if_missing=True, env=env, **SMALL) as db:
        for n in range(600):
            db.put(key(n), OLD)
        db.flush()
    with env.open_directory("store") as directory:
        directory.remove("CURRENT")
    created = env.left
    rescue_db("store", "enough", env=env)
    created -= env.left
    assert created > 5
    for left in range(created):
        env.left = left
        with pytest.raises(lsmkv.IOError) as caught:
            rescue_db("store", "new", env=env)
        assert caught.value.errno == errno.ENOSPC
        with env.open_directory(".") as here:
            assert sorted(here.names()) == ["enough", "store"]
