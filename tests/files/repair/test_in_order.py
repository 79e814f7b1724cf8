"""A store that has lost its MANIFEST is surveyed in the order that its keys have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv.engine.options import OWN_COMPARATORS, own_comparator
from lsmkv.repair import TableSurvey, survey_db

SMALL: dict[str, Any] = {"block_size": 512, "compression": None}
# Keys of IndexedDB, ascending: a number whose two highest bytes come last.
START = b"\0\1\1\1\3" + bytes(6)
KEYS = [START + bytes([16 * (n % 16), 0x40 + n // 16]) for n in range(300)]


def make(path: Path, order: str) -> None:
    comparator = own_comparator(order)
    with lsmkv.DB(path, create_if_missing=True, comparator=comparator, **SMALL) as db:
        for key in KEYS:
            db.put(key, b"v" * 30)
        db.compact_range()


def lose_manifest(path: Path) -> None:
    for file in path.glob("MANIFEST-*"):
        file.unlink()


def empty_manifest(path: Path) -> None:
    for file in path.glob("MANIFEST-*"):
        os.truncate(file, 0)


@pytest.mark.parametrize("lose", [lose_manifest, empty_manifest])
@pytest.mark.parametrize("order", OWN_COMPARATORS)
def test_intact_tables_are_not_called_damaged(tmp_path: Path, order: str, lose: Any) -> None:
    make(tmp_path / "s", order)
    lose(tmp_path / "s")
    found = survey_db(tmp_path / "s")
    assert [table.problems for table in found.tables] == [[]]
    assert sum(table.entries for table in found.tables) == 300
    with_order = survey_db(tmp_path / "s", comparator=own_comparator(order))
    assert [table.problems for table in with_order.tables] == [[]]


def test_a_comparator_that_is_given_is_not_replaced(tmp_path: Path) -> None:
    make(tmp_path / "s", "idb_cmp1")
    lose_manifest(tmp_path / "s")
    found = survey_db(tmp_path / "s", comparator=lsmkv.ReverseBytewiseComparator())
    (table,) = found.tables
    assert isinstance(table, TableSurvey)
    assert table.problems


def test_the_damage_of_a_table_stays_damage(tmp_path: Path) -> None:
    make(tmp_path / "s", "idb_cmp1")
    lose_manifest(tmp_path / "s")
    (table,) = (tmp_path / "s").glob("*.ldb")
    data = bytearray(table.read_bytes())
    data[700:704] = bytes(4)
    table.write_bytes(data)
    (found,) = survey_db(tmp_path / "s").tables
    assert len(found.holes) == 1
    assert 250 < found.entries < 300
