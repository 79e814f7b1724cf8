"""What scans of absent prefixes read is what the store counts for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_stores import READING, build, key

import lsmkv
from lsmkv.filter_lab import absent_prefixes, scan_absent

PREFIXES = [key(n)[:-1] + b"x" for n in range(300)]


@pytest.fixture(scope="module", params=[None, lsmkv.ReverseBytewiseComparator()])
def store(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return build(tmp_path_factory.mktemp("lab") / "store", "block:10", request.param)


def test_blocks_are_counted_by_table(store: Path) -> None:
    with lsmkv.DB(store, **READING) as db:
        by_table = scan_absent(db, PREFIXES)
        counted = sum(level.blocks_read for level in db.stats().levels)
        tables = {table.number for table in db.tables()}
    assert by_table.keys() <= tables
    assert sum(by_table.values()) == counted > 300


def test_a_prefix_that_a_key_has_is_left_out(store: Path) -> None:
    with lsmkv.DB(store, **READING) as db:
        assert absent_prefixes(db, [b"user", b"use\xff", key(100), b"~"], 3) == [b"use\xff"]


def test_progress_counts_prefixes(store: Path) -> None:
    seen: list[tuple[int, int]] = []
    with lsmkv.DB(store, **READING) as db:
        scan_absent(db, PREFIXES[:3], lambda done, total, _: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
