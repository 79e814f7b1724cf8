"""A replay counts exactly what a store does that was built with the setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lab_stores import READING, SETTINGS, SHAPE, LastByteOfBits, build, key
from orders import FOLDING

import lsmkv
from lsmkv.tools.filter_lab.reads import SettingReads
from lsmkv.tools.filter_lab.replaying import replay
from lsmkv.tools.filter_lab.settings import FilterSetting, parse_setting

KEYS = [key(n) for n in (*range(0, 4200, 3), 17)] + [key(n)[:-1] + b"x" for n in range(1000)]


def counted(path: Path, keys: list[bytes], **options: Any) -> tuple[int, list[tuple[int, ...]]]:
    """What a store counts for these Gets: the values found, and the reads of each level."""
    with lsmkv.DB(path, **READING, **options) as db:
        for one in keys:
            db.get(one)
        stats = db.stats()
    levels = [
        (
            level.tables_asked,
            level.filters_asked,
            level.filter_negatives,
            level.filter_false_positives,
            level.blocks_read,
            level.bytes_read,
        )
        for level in stats.levels
    ]
    return stats.gets_found, levels


def predicted(result: SettingReads) -> list[tuple[int, ...]]:
    """The same figures of a replay, where a table without filters has no false positives."""
    return [
        tuple(
            sum(getattr(table, figure) for table in result.tables if table.level == level)
            for figure in (
                "tables_asked",
                "filters_asked",
                "filter_negatives",
                "false_positives",
                "blocks_read",
                "bytes_read",
            )
        )
        for level in range(7)
    ]


@pytest.mark.parametrize("text", SETTINGS)
def test_counts_are_those_of_a_rebuilt_store(text: str, base: Path, tmp_path: Path) -> None:
    rebuilt = build(tmp_path / "rebuilt", text)
    with lsmkv.DB(base, **READING) as db:
        done = replay(db, KEYS, [parse_setting(text)])
    found, levels = counted(rebuilt, KEYS)
    assert predicted(done.results[1]) == levels
    assert done.found == found
    assert done.from_memory == 2
    assert sum(level[4] for level in levels) > 1000


def test_the_store_as_it_is(base: Path) -> None:
    with lsmkv.DB(base, **READING) as db:
        done = replay(db, KEYS, [parse_setting("block:10")])
    assert predicted(done.stored) == counted(base, KEYS)[1]
    assert done.stored.tables == done.results[1].tables
    assert done.gets == len(KEYS)
    assert done.unsafe_order is None


def test_another_policy(base: Path, tmp_path: Path) -> None:
    setting = FilterSetting("block", (1,), make_policy=LastByteOfBits)
    rebuilt = build(tmp_path / "rebuilt", setting)
    with lsmkv.DB(base, **READING) as db:
        done = replay(db, KEYS, [setting])
    assert predicted(done.results[1]) == counted(rebuilt, KEYS, filter_policy=LastByteOfBits(1))[1]
    assert done.results[1].total("filter_negatives") > 100


@pytest.mark.parametrize("text", ["block64:4", "table64:3", "fuse"])
def test_the_stored_filters_are_asked_by_the_hash_of_their_own_policy(
    text: str, tmp_path: Path
) -> None:
    """The store is opened with LevelDB's policy, and its tables have filters of another."""
    path = build(tmp_path / "store", text)
    with lsmkv.DB(path, **READING) as db:
        done = replay(db, KEYS, [parse_setting(text)])
    found, levels = counted(path, KEYS)
    assert done.found == found
    assert predicted(done.stored) == levels
    assert done.stored.tables == done.results[1].tables


def test_tables_of_several_policies(tmp_path: Path) -> None:
    path = build(tmp_path / "store", "table64:5")
    keys = [b"user fuse %d" % number for number in range(1500)]
    with lsmkv.DB(path, **SHAPE, filter_policy=lsmkv.BinaryFusePolicy()) as db:
        for one in keys:
            db.put(one, b"")
        db.flush()
    keys += [one + b"x" for one in keys] + KEYS
    with lsmkv.DB(path, **READING) as db:
        done = replay(db, keys, [])
    assert predicted(done.stored) == counted(path, keys)[1]


def test_a_filter_that_wrongly_says_no_is_followed(tmp_path: Path) -> None:
    """An order that calls different bytes equal: the Get goes on to older tables."""
    order = {"comparator": FOLDING}
    base = build(tmp_path / "base", "none", FOLDING)
    rebuilt = build(tmp_path / "rebuilt", "block:10", FOLDING)
    keys = [one.upper() for one in KEYS]
    with lsmkv.DB(base, **READING, **order) as db:
        done = replay(db, keys, [parse_setting("block:10")])
    found, levels = counted(rebuilt, keys, **order, bloom_filter_bits=10)
    assert predicted(done.results[1]) == levels
    assert found < done.found
    assert done.unsafe_order == "test.Folding"


def test_nothing_changes_in_the_store(base: Path) -> None:
    with lsmkv.DB(base, read_only=True) as db:
        before = db.stats()
        replay(db, KEYS, [parse_setting("block:5")])
        assert db.stats() == before


def test_a_live_writer_may_compact_meanwhile(tmp_path: Path) -> None:
    path = build(tmp_path / "store", "block:10")
    with lsmkv.DB(path, lru_cache_size=0) as db:

        def compact(_done: int, _total: int, _phase: str) -> None:
            db.compact_range()

        tables = len(db.tables())
        done = replay(db, KEYS, [parse_setting("none")], compact)
        assert len(done.stored.tables) == tables != len(db.tables())


def test_progress_ends_with_all_bytes(base: Path) -> None:
    seen: list[tuple[int, int]] = []
    with lsmkv.DB(base, **READING) as db:
        replay(db, [], [], lambda done, total, _: seen.append((done, total)))
        total = sum(level.bytes for level in db.stats().levels)
    assert len(seen) > 5
    assert seen[-1] == (total, total)


def test_a_damaged_block_is_named(tmp_path: Path) -> None:
    path = build(tmp_path / "store", "none")
    with lsmkv.DB(path, **READING) as db:
        table = max(db.tables(), key=lambda one: one.size)
        broken = path / f"{table.number:06}.ldb"
        data = bytearray(broken.read_bytes())
        data[table.size // 2] ^= 1
        broken.write_bytes(data)
        with pytest.raises(lsmkv.CorruptionError) as caught:
            replay(db, KEYS, [parse_setting("block:10")])
    assert caught.value.path == str(broken)
    assert caught.value.offset is not None
    assert 0 < caught.value.offset <= table.size // 2
