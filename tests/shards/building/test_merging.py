"""Merging runs: a dict is the oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.shards.building.merging import Chunk, merged

Pairs = list[tuple[bytes, bytes]]


def chunks(pairs: Pairs, sizes: Iterator[int]) -> Iterator[Chunk]:
    """Sorted pairs in chunks, all pairs of one key in one of them."""
    at = 0
    while at < len(pairs):
        stop = at + next(sizes)
        while stop < len(pairs) and pairs[stop][0] == pairs[stop - 1][0]:
            stop += 1
        some = pairs[at:stop]
        yield [key for key, _ in some], [value for _, value in some]
        at = stop


def flat(parts: Iterator[Chunk]) -> Pairs:
    return [pair for keys, values in parts for pair in zip(keys, values, strict=True)]


runs = st.lists(st.lists(st.tuples(st.binary(max_size=2), st.binary(max_size=3))), max_size=6)


@given(runs, st.randoms(use_true_random=False))
def test_the_last_run_wins(parts: list[Pairs], rng: random.Random) -> None:
    def sizes() -> Iterator[int]:
        while True:
            yield rng.randrange(1, 4)

    sources = [chunks(sorted(dict(part).items()), sizes()) for part in parts]
    latest = {key: value for part in parts for key, value in part}
    assert flat(merged(sources, None)) == sorted(latest.items())


def joined(key: bytes, values: list[bytes]) -> bytes:
    assert len(values) > 1
    return key + b"".join(values)


@given(runs, st.randoms(use_true_random=False))
def test_a_merge_function_gets_all_values_in_order(parts: list[Pairs], rng: random.Random) -> None:
    def sizes() -> Iterator[int]:
        while True:
            yield rng.randrange(1, 4)

    every: dict[bytes, list[bytes]] = {}
    for part in parts:
        for key, value in part:
            every.setdefault(key, []).append(value)
    expected = [
        (key, values[0] if len(values) == 1 else joined(key, values))
        for key, values in sorted(every.items())
    ]
    stable = [sorted(part, key=lambda pair: pair[0]) for part in parts]
    assert flat(merged([chunks(part, sizes()) for part in stable], joined)) == expected


def test_what_merge_returns_must_be_bytes() -> None:
    pair: Chunk = ([b"k"], [b"v"])
    with pytest.raises(TypeError, match="a merged value must be bytes, not str"):
        list(merged([iter([pair]), iter([pair])], lambda key, values: "v"))  # type: ignore[arg-type,return-value]
