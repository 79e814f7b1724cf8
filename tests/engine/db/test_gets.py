"""lsmkv.engine.db.read.reader: the counters of Gets, and the seek compactions that Gets set off."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import pytest
from stores import ENTRIES, data_files, files_at, fill, settle

from lsmkv import DB


def key_of(n: int) -> bytes:
    """Keys without a pattern: LevelDB's hash does badly on numbers that differ by one digit."""
    return hashlib.sha256(b"%d" % n).digest()[:16]


@pytest.fixture(scope="module")
def two_stores(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """The same 20,000 keys with and without filters."""
    paths = {}
    for bits in (0, 10):
        paths[bits] = str(tmp_path_factory.mktemp("counters") / f"bits{bits}")
        with DB(paths[bits], create_if_missing=True, bloom_filter_bits=bits) as db:
            numbers = list(range(20_000))
            random.Random(3).shuffle(numbers)
            for n in numbers:
                db.put(key_of(2 * n), b"v" * 100)
            db.compact_range()
    return paths


@pytest.mark.parametrize(("bits", "at_least", "at_most"), [(10, 0.0, 0.02), (0, 0.9, 1.1)])
def test_data_blocks_read_for_a_miss(
    two_stores: dict[int, str], bits: int, at_least: float, at_most: float
) -> None:
    with DB(two_stores[bits], bloom_filter_bits=bits, lru_cache_size=0) as db:
        rng = random.Random(4)
        gets = 4000
        for _ in range(gets):
            assert db.get(key_of(2 * rng.randrange(19_999) + 1)) is None
        stats = db.stats()
        assert (stats.gets, stats.gets_found) == (gets, 0)
        assert at_least <= stats.blocks_read / gets <= at_most
        assert stats.filters_asked == (gets if bits else 0)
        assert stats.filters_asked - stats.filter_negatives == stats.filter_false_positives
        assert stats.blocks_read == (stats.filter_false_positives if bits else gets)
        for level in stats.levels:
            assert level.filter_negatives + level.filter_positives == level.filters_asked
            assert level.filter_false_positives <= level.filter_positives


def test_a_hit_is_no_false_positive(db: DB) -> None:
    fill(db)
    db.flush()
    for key in ENTRIES:
        db.get(key)
    stats = db.stats()
    assert stats.filters_asked == len(ENTRIES)
    assert (stats.filter_negatives, stats.filter_false_positives) == (0, 0)
    assert stats.gets_found == stats.gets == len(ENTRIES)


def three_levels(path: str, **options: Any) -> DB:
    """Three overlapping tables on three levels, none of which is due for compaction."""
    db = DB(path, create_if_missing=True, lru_cache_size=0, **options)
    for n in range(3):
        for key in ENTRIES:
            db.put(key, b"%d" % n)
        db.flush()
    assert [count > 0 for count in files_at(db)] == [True, True, True, *[False] * 4]
    return db


def test_gets_of_absent_keys_that_filters_rule_out_start_no_compaction(path: str) -> None:
    with three_levels(path) as db:
        before = data_files(path)
        for n in range(3000):
            assert db.get(b"key%04dx" % (n % 299)) is None
        settle(db)
        assert data_files(path) == before
        assert db.stats().seek_compactions == 0


def test_reads_of_blocks_without_the_key_start_a_seek_compaction(path: str) -> None:
    """Without filters a miss reads a block of each table, and the first read is wasted."""
    with three_levels(path, bloom_filter_bits=0) as db:
        before = files_at(db)
        for n in range(150):
            assert db.get(b"key%04dx" % n) is None
        settle(db)
        assert db.stats().seek_compactions + db.stats().trivial_moves > 0
        assert files_at(db) != before
        assert dict(db) == dict.fromkeys(ENTRIES, b"2")
        for n in range(2000):  # it comes to an end
            assert db.get(b"key%04dx" % (n % 299)) is None
        settle(db)
        after = data_files(path)
        for n in range(2000):
            assert db.get(b"key%04dx" % (n % 299)) is None
        settle(db)
        assert data_files(path) == after


def test_reads_of_blocks_without_the_key_count_at_a_snapshot_too(path: str) -> None:
    """Also those for the newest version, which is looked for first, and was written later."""
    options: dict[str, Any] = {"bloom_filter_bits": 0, "block_size": 64, "lru_cache_size": 4096}
    with DB(path, create_if_missing=True, **options) as db:
        for n, suffix in enumerate((b"", b"", b"x")):
            for key in ENTRIES:
                db.put(key + suffix, b"%d" % n)
            db.flush()
            if n == 0:
                snapshot = db.snapshot()
        before = files_at(db)
        assert [count > 0 for count in before] == [True, True, True, *[False] * 4]
        leaping = (list(ENTRIES) * 7)[::7]  # from block to block: a block in the cache costs nobody
        assert {snapshot.get(key) for key in leaping} == {b"0"}
        settle(db)
        assert files_at(db) != before


def test_a_get_that_reads_one_block_charges_no_seek(path: str) -> None:
    """Hits in the first table: no read was wasted."""
    with three_levels(path, bloom_filter_bits=0) as db:
        before = data_files(path)
        for n in range(2000):
            assert db.get(b"key%04d" % (n % 300)) == b"2"
        settle(db)
        assert data_files(path) == before


def test_seek_compaction_can_be_switched_off(path: str) -> None:
    with three_levels(path, bloom_filter_bits=0, seek_compaction=False) as db:
        before = data_files(path)
        for n in range(2000):
            assert db.get(b"key%04dx" % (n % 299)) is None
        settle(db)
        assert data_files(path) == before
        assert db.stats().seek_compactions == 0
