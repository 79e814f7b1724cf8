"""``Stats``: differences, and plain data."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from lsmkv import DB
from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.stats import LevelStats, Stats

STANDING = {
    "level", "files", "bytes", "levels", "block_cache_bytes", "memtable_bytes", "mapped_log",
    "expected_rate",
}  # fmt: skip


def test_a_difference_of_every_field() -> None:
    with DB(":memory:") as db:
        template = db.stats()
    level = LevelStats(*range(100, 100 + len(fields(LevelStats))))
    numbers = {field.name: 1000 + at for at, field in enumerate(fields(Stats))}
    del numbers["levels"], numbers["mapped_log"], numbers["compression"]
    later = replace(template, levels=(level,) * NUM_LEVELS, **numbers)
    earlier = replace(
        later,
        levels=tuple(
            replace(level, **{f.name: getattr(level, f.name) - 7 - n for f in fields(LevelStats)})
            for n in range(NUM_LEVELS)
        ),
        **{name: number - 3 for name, number in numbers.items()},
    )
    difference = later - earlier
    for name, number in numbers.items():
        assert getattr(difference, name) == (number if name in STANDING else 3), name
    for n, part in enumerate(difference.levels):
        for field in fields(LevelStats):
            expected = getattr(level, field.name) if field.name in STANDING else 7 + n
            assert getattr(part, field.name) == expected, field.name
    assert later.blocks_read == NUM_LEVELS * level.blocks_read
    zero = later - later
    assert zero.blocks_read == zero.filters_asked == zero.gets == 0
    assert zero.write_amplification == zero.read_amplification == 0.0


def test_plain_data() -> None:
    with DB(":memory:") as db:
        db.put(b"k", b"v")
        plain = json.loads(json.dumps(db.stats().to_dict()))
    assert plain["writes"] == 1
    assert len(plain["levels"]) == NUM_LEVELS
    assert plain["blocks_read"] == 0
    assert plain["write_amplification"] > 1


def test_the_text_is_a_table_of_80_columns() -> None:
    with DB(":memory:", lru_cache_size=0) as db:
        for n in range(100):
            db.put(b"%d" % n, b"v")
        db.flush()
        db.put(b"one", b"more")
        assert db.get(b"7") == b"v"
        assert db.get(b"70?") is None
        stats = db.stats()
    text = str(stats)
    lines = text.splitlines()
    assert lines[0].split() == ["level", "tables", "size", "blocks", "read", "cached"]
    (level,) = (level for level in stats.levels if level.files)
    figures = [f"{level.level}", "1", f"{level.bytes:,}", "B", "1", "0"]
    assert lines[1].split() == figures
    assert lines[2].split() == ["all", *figures[1:]]
    headings = ["level", "filters", "asked", "said", "no", "false", "positives"]
    assert lines[4].split() == [*headings, "expected", "measured"]
    assert level.expected_rate is not None
    figures = [f"{level.level}", "2", "1", "0", f"{level.expected_rate:.2%}", "0.00%"]
    assert lines[5].split() == figures
    assert lines[6].split() == ["all", *figures[1:]]
    assert "gets           2: 1 found" in lines
    assert "writes         101: 101 operations, 297 B" in lines
    assert "flushes        1: " in text
    assert text.isascii()
    assert all(line == line.rstrip() and len(line) <= 80 for line in lines)
    numbers = [f.name for f in fields(Stats) if f.type in ("int", "float")]
    large = dict.fromkeys(numbers, 98_765_432)
    counters = [98_765_432] * (len(fields(LevelStats)) - 4)
    busy = LevelStats(6, 4321, 98_765_432_100, *counters, 1.0)
    text = str(replace(stats, levels=(busy,), **large))
    assert max(map(len, text.splitlines())) <= 80
    assert "98,765,432" in text


def test_a_ratio_of_nothing_is_no_figure() -> None:
    """Not one of the ratios of a store that was asked for nothing is shown as 0."""
    with DB(":memory:") as db:
        fresh = db.stats()
    for text in (str(fresh), fresh._repr_html_()):
        assert "0.00" not in text
        assert "%" not in text
        assert "amplification" in text
    assert fresh.measured_rate is fresh.expected_rate is None
    assert all(level.measured_rate is None for level in fresh.levels)
    with DB(":memory:") as db:
        db.put(b"k", b"v")
        written = db.stats()
    assert "blocks per read" not in str(written) + written._repr_html_()
    assert "bytes written per byte" in str(written)
    with DB(":memory:") as db:
        assert db.get(b"k") is None
        read = db.stats()
    assert "0.00 blocks per read" in str(read)  # a Get that read nothing
    assert "bytes written per byte" not in str(read) + read._repr_html_()


def test_only_stats_can_be_taken_away() -> None:
    with DB(":memory:") as db, pytest.raises((TypeError, AttributeError)):
        db.stats() - 1  # type: ignore[operator]
