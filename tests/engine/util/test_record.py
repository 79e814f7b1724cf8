"""lsmkv.engine.util.record: frozen dataclasses are copied and pickled by their fields."""

from __future__ import annotations

import copy
import pickle

import pytest

from lsmkv.engine.db.handles.steps import BlockStep, FilterStep, KeyVersion
from lsmkv.engine.util.record import Record

RECORDS: list[Record] = [
    KeyVersion("memtable", 7, False, 3),
    BlockStep(0, 100, True, 0, "snappy", 200),
    FilterStep("table", "policy", 10, (1, 2), (True, False), False),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_copy_has_the_same_fields(record: Record) -> None:
    for made in (copy.copy(record), copy.deepcopy(record)):
        assert (type(made), made) == (type(record), record)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_records_are_pickled(protocol: int) -> None:
    assert pickle.loads(pickle.dumps(RECORDS, protocol)) == RECORDS


def test_it_is_made_again_by_the_classs_own_init() -> None:
    assert RECORDS[0].__reduce__() == (KeyVersion, ("memtable", 7, False, 3))
