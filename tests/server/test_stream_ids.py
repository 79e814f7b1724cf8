"""Ids of entries: bytes that sort as they do, and the text of clients."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.server.resp import CommandError
from lsmkv.server.stream_ids import (
    LAST_ID,
    MAX_U64,
    NO_ID,
    id_after,
    id_before,
    id_text,
    parse_bound,
    parse_id,
    parse_new_id,
    parse_range,
    to_id,
)

PARTS = st.tuples(st.integers(0, MAX_U64), st.integers(0, MAX_U64))


@given(PARTS, PARTS)
def test_bytes_sort_as_the_numbers(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (to_id(*one) < to_id(*other)) == (one < other)
    assert parse_id(id_text(to_id(*one))) == to_id(*one)
    after = id_after(to_id(*one))
    assert after is None or (after > to_id(*one) and id_before(after) == to_id(*one))


def test_the_ends() -> None:
    assert (id_after(LAST_ID), id_before(NO_ID)) == (None, None)
    assert id_after(to_id(1, MAX_U64)) == to_id(2, 0)
    assert parse_range(b"-", b"+") == (NO_ID, LAST_ID)
    assert parse_range(b"5", b"(5") == (to_id(5, 0), to_id(5, MAX_U64 - 1))
    with pytest.raises(CommandError, match="invalid start ID"):
        parse_range(b"(%d-%d" % (MAX_U64, MAX_U64), b"+")
    with pytest.raises(CommandError, match="invalid end ID"):
        parse_range(b"-", b"(0-0")


@pytest.mark.parametrize(
    "text",
    [b"", b"-", b"+", b"a", b"1-", b"1-a", b"-1", b"1--1", b"1-*", b"1" * 128, b"1.5", b"$"],
)
def test_what_is_no_id(text: bytes) -> None:
    with pytest.raises(CommandError, match="Invalid stream ID"):
        parse_id(text)
    with pytest.raises(CommandError, match="Invalid stream ID"):
        parse_id(b"%d" % (MAX_U64 + 1))


def test_incomplete_ids() -> None:
    assert parse_id(b"5", missing=7) == to_id(5, 7)
    assert parse_id(b" +5-007") == to_id(5, 7)  # what C reads as a number
    assert parse_new_id(b"5-*") == (5, None)
    assert parse_new_id(b"5") == (5, 0)
    assert parse_bound(b"(5", missing=1) == (to_id(5, 1), True)
