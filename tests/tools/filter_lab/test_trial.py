"""The filters that a setting would have built for a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_stores import READING, SETTINGS, build

import lsmkv
from lsmkv.tools.filter_lab.replaying import replay
from lsmkv.tools.filter_lab.settings import parse_setting


@pytest.mark.parametrize("text", SETTINGS)
def test_memory_is_that_of_the_rebuilt_filters(text: str, base: Path, tmp_path: Path) -> None:
    rebuilt = build(tmp_path / "rebuilt", text)
    with lsmkv.DB(base, **READING) as db:
        trial = replay(db, [], [parse_setting(text)]).results[1]
    with lsmkv.DB(rebuilt, **READING) as db:
        stored = replay(db, [], []).stored
    assert [table.filter_bytes for table in trial.tables] == [
        table.filter_bytes for table in stored.tables
    ]
    assert (trial.filter_bytes > 0) == (text != "none")


def test_bits_are_spread_by_the_sizes_of_the_levels(base: Path) -> None:
    with lsmkv.DB(base, **READING) as db:
        done = replay(db, [], [parse_setting("table64:auto:10"), parse_setting("table64:10")])
    spread, even = done.results[1:]
    assert spread.filter_bytes == pytest.approx(even.filter_bytes, rel=0.1)
    bits: dict[int, list[float]] = {}
    for table, ten in zip(spread.tables, even.tables, strict=True):
        bits.setdefault(table.level, []).append(10 * table.filter_bytes / ten.filter_bytes)
    assert max(bits[2]) < 9.5
    assert min(bits[0]) > 10.5
    assert len(bits[2]) > 2
    assert max(bits[2]) - min(bits[2]) < 0.1  # tables of one level get the same
