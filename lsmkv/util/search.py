"""Finding a place among keys that sort as bytes.

Comparing two ``bytes`` as Python objects costs compiled code some 180 instructions, and a lookup
does it a dozen times in each index that it goes through.  Here it compares machine integers, eight
bytes at a time.  Interpreted, a slice and ``bisect`` are five times faster, and do the work.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final

from librt.strings import read_i64_be
from librt.vecs import append, vec
from mypy_extensions import i64

if TYPE_CHECKING:
    from collections.abc import Sequence

IS_COMPILED: Final = not __file__.endswith(".py")
"""What a walk over bytes costs as machine code, Python's own bisection costs where it is not."""

_ZEROS: Final = bytes(8)


class SortedKeys:
    """Keys in rising order, neighbours may be equal: ``bytes``, or what else compares itself.

    The keys of an index mostly share their beginning, and the eight bytes behind that, taken as one
    number, tell them apart.  The last key is no part of this: an index may end in a short one that
    shares nothing.  Takes O(n) to make, and eight bytes a key beside the list, which it keeps.
    """

    def __init__(self, keys: list[Any]) -> None:
        self._keys = keys
        self._shared = b""
        """What all keys but the last begin with."""
        self._heads = vec[i64]()
        """Of all keys but the last, where these are bytes: what follows, as a number."""
        if IS_COMPILED and all(isinstance(key, bytes) for key in keys):
            self._read_heads(keys[:-1])

    def first_at_or_after(self, key: Any) -> i64:
        """Place of the first key that is at or after ``key``; their number if none is.  O(log n).

        Among keys out of order it is some place all the same.
        """
        keys = self._keys
        heads = self._heads
        low: i64 = 0
        high: i64 = len(heads)
        if high == 0:
            return bisect_left(keys, key)
        name: bytes = key
        shared = self._shared
        if name.startswith(shared):
            wanted: i64 = _head(name, len(shared))
            while low < high:
                middle = (low + high) >> 1
                if heads[middle] < wanted:
                    low = middle + 1
                else:
                    high = middle
            if low < len(heads) and heads[low] == wanted:
                if low + 1 < len(heads) and heads[low + 1] == wanted:
                    return bisect_left(keys, key, low)
                if keys[low] < key:
                    low += 1
        elif name > shared:
            low = high
        if low == len(heads) and keys[low] < key:
            low += 1
        return low

    def _read_heads(self, keys: Sequence[bytes]) -> None:
        if not keys:
            return
        first = keys[0]
        last = keys[-1]
        size: i64 = 0
        while size < len(first) and size < len(last) and first[size] == last[size]:
            size += 1
        heads = vec[i64](capacity=len(keys))
        for key in keys:
            heads = append(heads, _head(key, size))
        self._shared = first[:size]
        self._heads = heads


def _head(key: bytes, start: i64) -> i64:
    """The eight bytes from ``start`` as a number of their order; zeros stand for missing ones."""
    size: i64 = len(key)
    sign: i64 = -1
    sign <<= 63  # turns the order of signed numbers into that of unsigned ones
    if start + 8 <= size:
        return read_i64_be(key, start) ^ sign
    if start >= size:
        return sign
    if size >= 8:  # what stands before them is shifted out
        return read_i64_be(key, size - 8) << 8 * (start + 8 - size) ^ sign
    return read_i64_be(key[start:] + _ZEROS, 0) ^ sign


def is_below(data: bytes, at: i64, size: i64, key: bytes) -> bool:
    """Whether the ``size`` bytes from ``at``, all of them in ``data``, sort before ``key``."""
    if not IS_COMPILED:
        return data[at : at + size] < key
    shorter: i64 = len(key)
    shorter = min(shorter, size)  # both machine integers
    done: i64 = 0
    while done + 8 <= shorter:
        here: i64 = read_i64_be(data, at + done)
        there: i64 = read_i64_be(key, done)
        if here != there:
            # As unsigned numbers: of different signs, the negative one is the larger.
            return here < there if here ^ there >= 0 else there < 0
        done += 8
    while done < shorter:
        left: i64 = data[at + done]
        right: i64 = key[done]
        if left != right:
            return left < right
        done += 1
    return size < len(key)


def common(data: bytes, begin: i64, key: bytes, known: i64, limit: i64) -> i64:
    """How many of the first ``limit`` bytes of ``key`` are those of ``data`` from ``begin`` on.

    Of ``known`` bytes it is known; ``data`` has ``limit`` of them, as ``key`` does.
    """
    while known + 8 <= limit and read_i64_be(data, begin + known) == read_i64_be(key, known):
        known += 8
    while known < limit:
        here: i64 = data[begin + known]
        there: i64 = key[known]
        if here != there:
            break
        known += 1
    return known
