"""lsmkv.engine.db.tree.store_stats: what the counters of a store say after each kind of work."""

from __future__ import annotations

import random
from typing import Any

import pytest

import lsmkv
from lsmkv import DB


def test_of_a_store() -> None:
    with DB(":memory:", lru_cache_size=0) as db:
        for n in range(100):
            db.put(b"%d" % n, b"v")
        db.flush()
        before = db.stats()
        assert db.get(b"7") == b"v"
        assert db.get(b"no such key") is None
        db.put(b"k", b"value")
        after = db.stats()
        change = after - before
        assert (change.gets, change.gets_found, change.blocks_read) == (2, 1, 1)
        assert (change.writes, change.operations, change.user_bytes) == (1, 1, 6)
        assert change.flushes == 0
        assert change.levels[2].files + change.levels[0].files >= 1  # how things stand
        assert change.memtable_bytes == after.memtable_bytes > 0
        assert sum(part.blocks_read for part in change.levels) == 1
        assert isinstance(change, lsmkv.Stats)


def test_flushes_and_compactions_are_separated_in_totals_and_by_level() -> None:
    size = 256 * 1024
    with DB(":memory:", write_buffer_size=size, max_file_size=size, compression=None) as db:
        db.put(b"k", b"v")
        db.flush()
        stats = db.stats()
        assert (stats.flushes, stats.compactions) == (1, 0)
        assert [level.flushes for level in stats.levels] == [0, 0, 1, 0, 0, 0, 0]
        assert {level.compactions for level in stats.levels} == {0}
        for n in range(3000):
            db.put(b"%05d" % (n * 7919 % 3000), bytes(2000))
        db.compact_range()
        stats = db.stats()
        table = db.get_property("leveldb.stats")
    assert stats.compactions > 0
    for name in (
        "flushes",
        "flush_bytes",
        "compactions",
        "compaction_bytes_read",
        "compaction_bytes_written",
    ):
        assert getattr(stats, name) == sum(getattr(level, name) for level in stats.levels), name
    assert sum(level.flush_seconds for level in stats.levels) > 0
    assert sum(level.compaction_seconds for level in stats.levels) > 0
    assert table is not None
    rows = [[float(figure) for figure in row.split()] for row in table.splitlines()[3:]]
    by_level = {int(row[0]): row for row in rows}
    for level in stats.levels:  # LevelDB counts a flush for the level that it lands on
        if level.files or level.flushes or level.compactions:
            written = level.flush_bytes + level.compaction_bytes_written
            assert by_level[level.level][5] == round(written / 1024**2)
    assert any(row[5] for row in rows)


@pytest.mark.parametrize("layout", ["block", "table", "both"])
def test_expected_and_measured_rates_of_a_live_store(layout: Any) -> None:
    rng = random.Random(4)
    with DB(":memory:", filter_layout=layout, bloom_filter_bits=5) as db:
        for _ in range(3000):
            db.put(rng.randbytes(12), b"v" * 20)
        db.flush()
        before = db.stats()
        for _ in range(20_000):
            db.get(rng.randbytes(12))
        stats = db.stats() - before
    (level,) = (level for level in stats.levels if level.files)
    assert level.expected_rate is not None
    assert level.measured_rate is not None
    assert stats.expected_rate == level.expected_rate
    assert stats.measured_rate == level.measured_rate
    asked = level.filters_asked - level.filter_negatives
    assert level.filter_false_positives == asked or layout == "both"
    if layout != "both":
        assert level.measured_rate == pytest.approx(level.expected_rate, rel=0.15)
    assert f"{level.expected_rate:.2%}" in str(stats)
    for heading in ("expected", "measured"):
        assert heading in str(stats)
        assert heading in stats._repr_html_()
    plain = stats.to_dict()
    assert plain["measured_rate"] == level.measured_rate
    assert plain["levels"][level.level]["expected_rate"] == level.expected_rate
    assert plain["levels"][level.level]["measured_rate"] == level.measured_rate


def test_without_filters_no_rate_is_expected() -> None:
    with DB(":memory:", bloom_filter_bits=0) as db:
        db.put(b"a", b"v")
        db.put(b"c", b"v")
        db.flush()
        assert db.get(b"b") is None
        assert db.stats().expected_rate is db.stats().measured_rate is None


def test_whether_the_log_is_mapped() -> None:
    for env_maps in (True, False):
        env = lsmkv.MemoryEnv(mapped_logs=env_maps)
        for wanted in (True, False):
            expected = env_maps and wanted
            with DB("/db", create_if_missing=True, env=env, mapped_log=wanted) as db:
                db.put(b"k", b"v")
                assert db.stats().mapped_log is expected
                assert f"syncs; {'mapped' if expected else 'written'}" in str(db.stats())
                with DB("/db", read_only=True, env=env, mapped_log=wanted) as view:
                    assert view.stats().mapped_log is expected
