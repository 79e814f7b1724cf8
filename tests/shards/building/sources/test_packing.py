"""Cutting a stream of pairs into parts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.shards.building.sources.packing import packed_parts


@given(st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=20))), st.integers(1, 200))
def test_the_parts_have_all_pairs_in_order(
    pairs: list[tuple[bytes, bytes]], part_bytes: int
) -> None:
    parts = list(packed_parts(pairs, "mine", part_bytes))
    assert [pair for part in parts for pair in part.pairs()] == pairs
    assert list(packed_parts(iter(pairs), "mine", part_bytes)) == parts
    for part in parts:
        longest = max(len(key) + len(value) for key, value in part.pairs())
        assert part.size - 8 < part_bytes + longest + 8
    for part in parts[:-1]:
        assert part.size - 8 >= part_bytes


def test_an_endless_stream_is_cut_as_it_comes() -> None:
    taken = count()

    def endless() -> Iterator[tuple[bytes, bytes]]:
        for number in taken:
            yield b"%09d" % number, bytes(83)

    parts = list(islice(packed_parts(endless(), "mine", 1000), 3))
    assert [part.label for part in parts] == [
        "pairs 0 to 9 of mine",
        "pairs 10 to 19 of mine",
        "pairs 20 to 29 of mine",
    ]
    assert next(taken) == 30


def test_a_pair_larger_than_a_part_is_a_part() -> None:
    parts = list(packed_parts([(b"a", b""), (b"b", bytes(5000)), (b"c", b"")], "mine", 100))
    assert [len(list(part.pairs())) for part in parts] == [2, 1]


def test_a_bad_pair_is_counted_from_the_first_part() -> None:
    parts = packed_parts([(b"k", b"v"), (b"k", b"v"), ("k", b"v")], "mine", 15)
    next(parts)
    with pytest.raises(TypeError, match=r"^mine: pair 2: a key must be bytes, not str"):
        next(parts)
