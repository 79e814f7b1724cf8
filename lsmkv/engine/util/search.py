"""Search among keys that sort as bytes: the index of a table, and the entries of a block.

Fast paths: comparing two ``bytes`` as Python objects costs compiled code some 180 instructions, and
a lookup compares a dozen times in each index that it searches.  Compiled, the functions here
compare machine integers, eight bytes at a time.  Interpreted, they use a slice and ``bisect``,
which are five times faster there.
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
"""True if a loop over bytes runs as machine code; if not, Python's own bisection is faster."""

_ZEROS: Final = bytes(8)
_FAN_OUT: Final = 8


class SortedKeys:
    """Keys in ascending order, some of them possibly equal: ``bytes``, or other objects that can be
    compared.

    The keys of an index usually share a prefix, and the eight bytes after it, taken as one number,
    distinguish them.  The last key is left out of this: an index may end in a short key that does
    not share the prefix.

    These numbers are the leaves of a tree, each level of which has every eighth of the one below.
    A search counts, among eight numbers (a cache line), those below the wanted one without a
    branch.  Each step of a bisection has a branch that no processor predicts; these cost an eighth
    of a Get of an absent key.

    It takes O(n) to build, and nine bytes a key in addition to the list, which it keeps.
    """

    def __init__(self, keys: list[Any]) -> None:
        self._keys = keys
        self._shared = b""
        """The common beginning of all keys but the last."""
        self._tree = vec[i64]()
        """The tree, level by level, the root first.  Its leaves are the next eight bytes of all
        keys but the last, as numbers of 63 bits, so that a difference has 64.  It is empty if keys
        are not bytes, and where this module is not compiled."""
        self._levels = vec[i64]()
        """The start of each level in the tree, and the end of the last one."""
        if IS_COMPILED and all(isinstance(key, bytes) for key in keys):
            self._build_tree(keys[:-1])

    def first_at_or_after(self, key: Any) -> i64:
        """Index of the first key at or after ``key``; the number of keys if there is none.

        O(log n).  If the keys are out of order, it is any index in range.
        """
        keys = self._keys
        tree = self._tree
        if len(tree) == 0:
            return bisect_left(keys, key)
        levels = self._levels
        leaves: i64 = levels[len(levels) - 2]
        size: i64 = len(tree) - leaves
        name: bytes = key
        shared = self._shared
        low: i64 = 0
        if name.startswith(shared):
            wanted: i64 = _head(name, len(shared))
            level: i64 = 1
            while level < len(levels):
                low *= _FAN_OUT
                at = levels[level - 1] + low
                stop: i64 = levels[level]
                stop = min(stop, at + _FAN_OUT)
                while at < stop:
                    low -= (tree[at] - wanted) >> 63
                    at += 1
                level += 1
            if low < size and tree[leaves + low] == wanted:
                if low + 1 < size and tree[leaves + low + 1] == wanted:
                    return bisect_left(keys, key, low)
                if keys[low] < key:
                    low += 1
        elif name > shared:
            low = size
        if low == size and keys[low] < key:
            low += 1
        return low

    def _build_tree(self, keys: Sequence[bytes]) -> None:
        if not keys:
            return
        first = keys[0]
        last = keys[-1]
        size: i64 = 0
        while size < len(first) and size < len(last) and first[size] == last[size]:
            size += 1
        leaves = vec[i64](capacity=len(keys))
        for key in keys:
            leaves = append(leaves, _head(key, size))
        stride: i64 = 1
        while len(leaves) > _FAN_OUT * stride:
            stride *= _FAN_OUT
        tree = vec[i64](capacity=len(keys) + len(keys) // (_FAN_OUT - 1))
        levels = append(vec[i64](), 0)
        while stride > 0:
            at: i64 = stride - 1
            while at < len(leaves):
                tree = append(tree, leaves[at])
                at += stride
            levels = append(levels, len(tree))
            stride //= _FAN_OUT
        self._shared = first[:size]
        self._tree = tree
        self._levels = levels


def _head(key: bytes, start: i64) -> i64:
    """63 bits of ``key`` from byte ``start`` on, padded with zeros, as a number of that order."""
    size: i64 = len(key)
    sign: i64 = -1
    sign <<= 63  # maps the unsigned order of the bytes to the signed order
    head: i64 = 0
    if start + 8 <= size:
        head = read_i64_be(key, start)
    elif start < size:
        if size >= 8:  # the bytes before ``start`` are shifted out
            head = read_i64_be(key, size - 8) << 8 * (start + 8 - size)
        else:
            head = read_i64_be(key[start:] + _ZEROS, 0)
    return (head ^ sign) >> 1


def is_below(data: bytes, at: i64, size: i64, key: bytes) -> bool:
    """True if the ``size`` bytes from ``at``, all of them in ``data``, sort before ``key``."""
    if not IS_COMPILED:
        return data[at : at + size] < key
    shorter: i64 = len(key)
    shorter = min(shorter, size)  # both machine integers
    done: i64 = 0
    while done + 8 <= shorter:
        here: i64 = read_i64_be(data, at + done)
        there: i64 = read_i64_be(key, done)
        if here != there:
            # As unsigned numbers: if the signs differ, the negative one is the larger.
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
    """The length of the common prefix of ``key`` and ``data[begin:]``, at most ``limit``.

    The caller knows that the first ``known`` bytes agree, and that both have ``limit`` bytes.
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
