"""lsmkv.engine.util.pair_diff: two sorted streams, against two dicts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from orders import fold

from lsmkv.engine.util.pair_diff import Difference, pair_differences

CONTENTS = st.dictionaries(st.binary(max_size=2), st.sampled_from([b"1", b"2"]), max_size=20)


def bytewise(a: bytes, b: bytes) -> int:
    return (a > b) - (a < b)


@given(CONTENTS, CONTENTS)
def test_the_differences_are_those_of_two_dicts(
    a: dict[bytes, bytes], b: dict[bytes, bytes]
) -> None:
    advanced: list[int] = []
    streams = iter(sorted(a.items())), iter(sorted(b.items()))
    assert list(pair_differences(*streams, bytewise, advanced.append)) == [
        Difference(key, a.get(key), b.get(key))
        for key in sorted(a.keys() | b.keys())
        if a.get(key) != b.get(key)
    ]
    assert sum(advanced) == len(a.keys() | b.keys())


def test_keys_that_the_order_calls_equal_are_one_key() -> None:
    ours, theirs = [(b"A", b"1"), (b"b", b"2")], [(b"a", b"1"), (b"B", b"3")]
    found = pair_differences(iter(ours), iter(theirs), fold, lambda _: None)
    assert list(found) == [Difference(b"b", b"2", b"3")]


def test_progress_is_reported_in_steps() -> None:
    pairs = [(b"%05d" % number, b"") for number in range(2500)]
    advanced: list[int] = []
    assert list(pair_differences(iter(pairs), iter(pairs), bytewise, advanced.append)) == []
    assert advanced == [1000, 1000, 500]
