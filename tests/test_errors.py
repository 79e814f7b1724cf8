"""What the exceptions carry besides their message."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import lsmkv


def test_a_comparator_mismatch_names_both_orders(tmp_path: Path) -> None:
    with lsmkv.DB(
        tmp_path / "db", create_if_missing=True, comparator=lsmkv.ReverseBytewiseComparator()
    ):
        pass
    with pytest.raises(lsmkv.ComparatorMismatchError) as caught:
        lsmkv.DB(tmp_path / "db", comparator=lsmkv.BytewiseComparator())
    error = caught.value
    assert error.stored == "leveldb.ReverseBytewiseComparator"
    assert error.given == "leveldb.BytewiseComparator"
    assert Path(error.path).parent == tmp_path / "db"
    assert Path(error.path).name.startswith("MANIFEST-")
    assert str(error) == (
        f"{error.path}: the database is ordered by 'leveldb.ReverseBytewiseComparator',"
        " the comparator given is 'leveldb.BytewiseComparator'"
    )


def test_a_comparator_mismatch_can_be_pickled() -> None:
    error = lsmkv.ComparatorMismatchError("db/MANIFEST-000001", "idb_cmp1", "other")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is lsmkv.ComparatorMismatchError
    assert (again.path, again.stored, again.given) == ("db/MANIFEST-000001", "idb_cmp1", "other")
    assert str(again) == str(error)
