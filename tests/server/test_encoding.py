"""Records of keys, byte for byte: ``docs/reference/serve.md`` promises them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.server.encoding import (
    BLOOM,
    HASH,
    LIST,
    MAX_BOUND,
    SET,
    SORTED_SET,
    STREAM,
    STRING,
    Entry,
    element_prefix,
    field_order_prefix,
    field_time_prefix,
    group_prefix,
    ordered_score,
    ranked_prefix,
    score_of,
    successor,
)

VERSION = 0x0102030405060708
FIELDS = (
    *("kind", "expires", "fields_expire", "version", "size", "chunk_size", "chunks"),
    *("head", "removed", "low", "high", "rest"),
)


def entry(kind: int, **fields: Any) -> Entry:
    made = Entry(kind, 0 if kind == STRING else VERSION)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (entry(STRING, rest=b"value"), "01 76616c7565"),
        (entry(STRING), "01"),
        (entry(STRING, rest=b"\0", expires=1700000000000), "81 0000018bcfe56800 00"),
        (
            entry(STRING, version=VERSION, size=9, chunk_size=16384, chunks=1),
            "08 0102030405060708 0000000000000009 00004000 00000001",
        ),
        (
            entry(STRING, version=VERSION, size=9, chunk_size=8, chunks=2, expires=5),
            "88 0000000000000005 0102030405060708 0000000000000009 00000008 00000002",
        ),
        (entry(HASH, size=3), "02 0102030405060708 0000000000000003"),
        (entry(LIST, size=1), "03 0102030405060708 0000000000000001 8000000000000000"),
        (
            entry(LIST, size=2, head=2**63 - 1, expires=5),
            "83 0000000000000005 0102030405060708 0000000000000002 7fffffffffffffff",
        ),
        (entry(SET, size=1), "04 0102030405060708 0000000000000001"),
        (entry(SET, size=1, removed=9), "04 0102030405060708 0000000000000001 00000009"),
        (entry(HASH, size=1, removed=9), "02 0102030405060708 0000000000000001 00000009"),
        (
            entry(HASH, size=1, removed=9, fields_expire=5),
            "09 0102030405060708 0000000000000001 00000009 0000000000000005",
        ),
        (entry(STREAM, rest=b"rest"), "07 0102030405060708 0000000000000000 72657374"),
        (
            entry(SORTED_SET, size=1, removed=2, low=b"a", high=b"bc"),
            "05 0102030405060708 0000000000000001 00000002 0001 61 0002 6263",
        ),
        (entry(BLOOM, rest=b"rest"), "06 0102030405060708 0000000000000000 72657374"),
    ],
)
def test_an_entry(made: Entry, written: str) -> None:
    data = made.encode()
    assert data == bytes.fromhex(written)
    again = Entry.decode(data)
    assert [getattr(again, name) for name in FIELDS] == [getattr(made, name) for name in FIELDS]


def test_the_longest_bounds_fit() -> None:
    made = entry(SORTED_SET, low=b"a" * MAX_BOUND, high=b"b" * (MAX_BOUND + 1))
    again = Entry.decode(made.encode())
    assert (again.low, again.high) == (made.low, made.high)


def test_where_elements_stand() -> None:
    made = entry(SORTED_SET)
    assert element_prefix(made) == b"e" + bytes(range(1, 9))
    assert ranked_prefix(made) == b"z" + bytes(range(1, 9))
    assert field_time_prefix(made) == b"f" + bytes(range(1, 9))
    assert field_order_prefix(made) == b"t" + bytes(range(1, 9))
    assert group_prefix(made) == b"s" + bytes(range(1, 9))


scores = st.floats(allow_nan=False)


@given(scores, scores)
def test_encoded_scores_sort_as_scores_do(one: float, other: float) -> None:
    assert (ordered_score(one) < ordered_score(other)) == (one < other)
    assert (ordered_score(one) == ordered_score(other)) == (one == other)
    assert score_of(ordered_score(one)) == one


def test_encoded_scores() -> None:
    shown = {score: ordered_score(score).hex() for score in (-math.inf, -1.0, 0.0, 1.0, math.inf)}
    assert shown == {
        -math.inf: "000fffffffffffff",
        -1.0: "400fffffffffffff",
        0.0: "8000000000000000",
        1.0: "bff0000000000000",
        math.inf: "fff0000000000000",
    }
    assert ordered_score(-0.0) == ordered_score(0.0)


@given(st.binary(max_size=4), st.binary(max_size=6))
def test_a_successor_is_the_first_key_behind_a_prefix(prefix: bytes, key: bytes) -> None:
    behind = successor(prefix)
    assert (behind is None) == (not prefix.strip(b"\xff"))
    assert key.startswith(prefix) == (prefix <= key and (behind is None or key < behind))
