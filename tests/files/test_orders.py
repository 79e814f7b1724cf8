"""The order of user keys, by a comparator or its name."""

from __future__ import annotations

import pytest

import lsmkv
from lsmkv.files import key_order


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("leveldb.BytewiseComparator", [b"", b"a", b"ab", b"b"]),
        ("leveldb.ReverseBytewiseComparator", [b"b", b"ab", b"a", b""]),
        (lsmkv.ReverseBytewiseComparator(), [b"b", b"ab", b"a", b""]),
    ],
)
def test_keys_are_sorted_as_a_store_sorts_them(
    order: str | lsmkv.Comparator, expected: list[bytes]
) -> None:
    assert sorted([b"ab", b"b", b"", b"a"], key=key_order(order)) == expected


def test_keys_of_an_unknown_order_cannot_be_sorted() -> None:
    with pytest.raises(ValueError, match="is not one of lsmkv's comparators"):
        key_order("example.ByLength")
