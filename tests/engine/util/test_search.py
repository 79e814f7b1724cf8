"""lsmkv.engine.util.search against bisect and slices."""

from __future__ import annotations

import random
from bisect import bisect_left

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsmkv.engine.util.search import SortedKeys, common, is_below

# Few different bytes, so that keys share beginnings, and end in zeros; both sides of a sign.
short = st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]), max_size=12).map(bytes)
beginnings = st.sampled_from([b"", b"k", b"common/", b"01234567", b"\xff" * 9, b"\0" * 8])


@given(data=st.data(), beginning=beginnings, last=st.none() | short)
def test_first_at_or_after_is_bisect_left(
    data: st.DataObject, beginning: bytes, last: bytes | None
) -> None:
    keys = sorted(beginning + key for key in data.draw(st.lists(short, max_size=12)))
    if last is not None and (not keys or last >= keys[-1]):
        keys.append(last)  # as a separator at the end of an index
    search = SortedKeys(keys)
    probes = [*keys, *data.draw(st.lists(short)), b"", b"\xff" * 20, beginning, beginning[:-1]]
    probes += [key + b"\0" for key in keys] + [key[:-1] for key in keys]
    probes += [beginning + probe for probe in probes]
    for probe in probes:
        assert search.first_at_or_after(probe) == bisect_left(keys, probe), (keys, probe)


@pytest.mark.parametrize("size", [1, 2, 3, 100, 1000])
def test_numbers_in_decimals(size: int) -> None:
    keys = [b"%016d" % (7 * n) for n in range(size)]
    for ending in ([], [b"1"]):
        search = SortedKeys(keys + ending)
        for n in range(7 * size + 1):
            expected = bisect_left(keys + ending, b"%016d" % n)
            assert search.first_at_or_after(b"%016d" % n) == expected


@pytest.mark.parametrize("size", [7, 8, 9, 10, 63, 64, 65, 66, 72, 511, 512, 513, 514, 600, 4700])
def test_keys_that_are_equal_in_places(size: int) -> None:
    """Runs of equal ones lie across the borders of what is looked at together."""
    rng = random.Random(size)
    for most in (1, 3, 9, 100):
        keys: list[bytes] = []
        while len(keys) < size:
            head = len(keys).to_bytes(4, "big") + bytes(rng.choice([3, 4]))
            tails = [bytes([rng.choice([0, 1, 2, 255])]) for _ in range(rng.randint(1, most))]
            keys += [head + tail for tail in sorted(tails)]
        keys = keys[:size]
        search = SortedKeys(keys)
        for key in rng.sample(keys, min(size, 300)):
            for probe in (key, key + b"\0", key[:-1], key[:-1] + b"\1"):
                assert search.first_at_or_after(probe) == bisect_left(keys, probe)


def test_keys_that_are_not_bytes_compare_themselves() -> None:
    search = SortedKeys([(1, b"a"), (1, b"b"), (3, b"")])
    assert [search.first_at_or_after((n, b"b")) for n in range(5)] == [0, 1, 2, 3, 3]
    assert SortedKeys([]).first_at_or_after(b"k") == 0


@given(st.lists(short, max_size=8), short)
def test_keys_out_of_order_give_an_index_in_range(keys: list[bytes], probe: bytes) -> None:
    """As those of a damaged index."""
    assert 0 <= SortedKeys(keys).first_at_or_after(probe) <= len(keys)


@given(short, short, short, short)
@example(b"", b"12345678", b"", b"12345678")
@example(b"", b"\x80" + bytes(7), b"", b"\x7f" + bytes(7))
def test_is_below(before: bytes, part: bytes, after: bytes, key: bytes) -> None:
    data = before + part + after
    assert is_below(data, len(before), len(part), key) == (part < key)
    for same in (part, part + b"\0", part[:-1], part + key):
        assert is_below(data, len(before), len(part), same) == (part < same)


@given(short, short, short, st.integers(0, 12), st.integers(0, 12))
@example(b"", b"0123456789", b"0123456789", 0, 8)
@example(b"", b"01234567x", b"01234567y", 1, 9)
def test_common(before: bytes, part: bytes, key: bytes, known: int, limit: int) -> None:
    limit = min(limit, len(part), len(key))
    same = next((at for at in range(limit) if part[at] != key[at]), limit)
    known = min(known, same)
    assert common(before + part, len(before), key, known, limit) == same
    assert common(before + key + part, len(before), key, known, len(key)) == len(key)
