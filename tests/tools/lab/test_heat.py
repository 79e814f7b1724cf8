"""The heat's figures are those that the store counts for the same Gets and scans."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_stores import READING, build, key

import lsmkv
from lsmkv.filter_lab import replay, scan_absent
from lsmkv.tools.lab.heat import read_heat

PREFIXES = [key(n)[:-1] + b"x" for n in range(300)]


@pytest.fixture(scope="module", params=[None, lsmkv.ReverseBytewiseComparator()])
def store(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return build(tmp_path_factory.mktemp("lab") / "store", "block:10", request.param)


def scanned_by_level(path: Path, prefixes: list[bytes]) -> list[int]:
    with lsmkv.DB(path, **READING) as db:
        for prefix in prefixes:
            with db.iterator(prefix=prefix) as rows:
                assert list(rows) == []
        return [level.blocks_read for level in db.stats().levels]


def test_scans_read_what_the_store_counts(store: Path) -> None:
    prefixes = [*PREFIXES, b"\xff", b"a", key(4)[:-1] + b"\xff"]
    with lsmkv.DB(store, **READING) as db:
        by_table = scan_absent(db, prefixes)
        heat = read_heat(replay(db, PREFIXES, []).stored, 300, len(prefixes), by_table)
    scans = {level.level: level.scans for level in heat.levels()}
    counted = scanned_by_level(store, prefixes)
    assert scans == {level: counted[level] for level in scans}
    assert sum(scans.values()) == sum(by_table.values()) == sum(counted)
    assert scans[0] > 300 <= scans[2]


def test_gets_are_those_of_the_replay(store: Path) -> None:
    keys = [*PREFIXES, *(key(n) for n in range(1000, 1010))]  # absent ones, and some that are there
    with lsmkv.DB(store, **READING) as db:
        stored = replay(db, keys, []).stored
        heat = read_heat(stored, len(keys), 0, {})
        tables = {table.number: table.level for table in db.tables()}
    assert sum(level.gets for level in heat.levels()) == stored.wasted_reads > 0
    assert stored.wasted_reads < stored.blocks_read
    assert {table.number: table.level for table in heat.tables} == tables
    assert [level.tables for level in heat.levels()] == [2, 1, len(tables) - 3]
