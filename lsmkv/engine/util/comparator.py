"""Comparators: the order of user keys (source: LevelDB, ``include/leveldb/comparator.h``).

A comparator is any object with the four members of :class:`Comparator`.  Its *name* is stored in
the MANIFEST: a store opened with another name is refused, since its files would be out of order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from lsmkv.engine.util.value import Value


class Comparator(Protocol):
    """A total order on byte strings, with two ways to shorten the keys of an index.

    Cost: ``compare`` is called about log2(n) times a lookup, and a few times an entry when tables
    are merged.  It must not raise: the read, or all later writes, would raise the same error.  A
    store made with another comparator raises :class:`~lsmkv.ComparatorMismatchError` when opened.

    >>> class ByLength:
    ...     name = "example.ByLength"
    ...     def compare(self, a, b):
    ...         return len(a) - len(b) or (a > b) - (a < b)
    ...     def find_shortest_separator(self, start, limit):
    ...         return start
    ...     def find_short_successor(self, key):
    ...         return key
    >>> import lsmkv
    >>> with lsmkv.DB(":memory:", comparator=ByLength()) as db:
    ...     for key in (b"ccc", b"a", b"bb"):
    ...         db.put(key, b"")
    ...     list(db.iterator(include_value=False))
    [b'a', b'bb', b'ccc']
    """

    @property
    def name(self) -> str:
        """Stored on disk.  Change it whenever the order changes."""
        ...

    def compare(self, a: bytes, b: bytes, /) -> int:
        """Negative, zero or positive as ``a`` sorts before, with or after ``b``."""
        ...

    def find_shortest_separator(self, start: bytes, limit: bytes, /) -> bytes:
        """A short key k with ``start <= k < limit`` (given ``start < limit``); ``start`` is one."""
        ...

    def find_short_successor(self, key: bytes, /) -> bytes:
        """A short key k with ``k >= key``; ``key`` itself is one."""
        ...


SortKey = Callable[[bytes], Any]


def sort_key(comparator: Comparator) -> SortKey | None:
    """The comparator's order as a ``key=`` for ``sort``, ``bisect`` and ``SortedDict``.

    ``None`` where bytes already compare in that order, so these tools keep their C speed.  A
    comparator may have a ``sort_key`` method; without one, each comparison costs a call of
    ``compare``.  The objects that it returns compare by ``<`` and ``==`` as ``compare`` orders the
    keys.
    """
    if isinstance(comparator, BytewiseComparator):
        return None
    own: SortKey | None = getattr(comparator, "sort_key", None)
    return own if own is not None else functools.cmp_to_key(comparator.compare)


def equal_means_identical(comparator: Comparator) -> bool:
    """Return True if keys that compare equal are known to be the same bytes.

    A custom comparator may fold case, for example; a hash of the bytes then misses keys, in a dict
    and in a Bloom filter alike.
    """
    return isinstance(comparator, (BytewiseComparator, ReverseBytewiseComparator))


class BytewiseComparator(Value):
    """Lexicographic order of unsigned bytes: LevelDB's default, and Python's own for ``bytes``.

    O(length of the common prefix).  Raises nothing.

    >>> order = BytewiseComparator()
    >>> order.compare(b"a", b"b"), order.compare(b"\\xff", b"b"), order.compare(b"b", b"b")
    (-1, 1, 0)
    """

    name: str = "leveldb.BytewiseComparator"

    def compare(self, a: bytes, b: bytes, /) -> int:
        """-1, 0 or 1 as ``a`` sorts before, with or after ``b``."""
        if a < b:
            return -1
        return 0 if a == b else 1

    def find_shortest_separator(self, start: bytes, limit: bytes, /) -> bytes:
        """``start`` cut after the first byte that differs, and that byte raised by one.

        >>> BytewiseComparator().find_shortest_separator(b"the quick brown", b"the whole")
        b'the r'
        """
        shorter = min(len(start), len(limit))
        at = 0
        while at < shorter and start[at] == limit[at]:
            at += 1
        if at >= shorter:
            return start  # one key is a prefix of the other
        byte = start[at]
        if byte < 0xFF and byte + 1 < limit[at]:
            return start[:at] + bytes([byte + 1])
        return start

    def find_short_successor(self, key: bytes, /) -> bytes:
        """``key`` cut after its first byte that is not ``ff``, and that byte raised by one.

        >>> BytewiseComparator().find_short_successor(b"hello")
        b'i'
        """
        for at in range(len(key)):
            if key[at] != 0xFF:
                return key[:at] + bytes([key[at] + 1])
        return key


class ReverseBytewiseComparator(Value):
    """The bytewise order in reverse.  Keys are not shortened in the index.

    O(length of the common prefix).  Raises nothing.

    >>> order = ReverseBytewiseComparator()
    >>> order.compare(b"a", b"b")
    1
    >>> order.find_shortest_separator(b"the whole", b"the brown"), order.find_short_successor(b"z")
    (b'the whole', b'z')
    >>> import lsmkv
    >>> with lsmkv.DB(":memory:", comparator=order) as db:
    ...     for key in (b"a", b"b"):
    ...         db.put(key, b"")
    ...     list(db.iterator(include_value=False))
    [b'b', b'a']
    """

    name: str = "leveldb.ReverseBytewiseComparator"

    def compare(self, a: bytes, b: bytes, /) -> int:
        """-1, 0 or 1 as ``a`` sorts before, with or after ``b``: bytewise, it follows it."""
        if a > b:
            return -1
        return 0 if a == b else 1

    def find_shortest_separator(self, start: bytes, limit: bytes, /) -> bytes:
        """``start`` itself."""
        return start

    def find_short_successor(self, key: bytes, /) -> bytes:
        """``key`` itself."""
        return key


class CallableComparator(Value):
    """A comparator from a plain function and a name, the form that plyvel takes.

    The function gets two ``bytes`` and returns a negative number, zero or a positive one.
    Keys are not shortened in the index, since the order is opaque.
    """

    def __init__(self, compare: Callable[[bytes, bytes], int], name: str) -> None:
        self._compare = compare
        self.name = name

    def _arguments(self) -> tuple[Any, ...]:
        return self._compare, self.name

    def compare(self, a: bytes, b: bytes, /) -> int:
        return self._compare(a, b)

    def find_shortest_separator(self, start: bytes, limit: bytes, /) -> bytes:
        return start

    def find_short_successor(self, key: bytes, /) -> bytes:
        return key


BYTEWISE = BytewiseComparator()
REVERSE_BYTEWISE = ReverseBytewiseComparator()


def after_prefix(prefix: bytes) -> bytes | None:
    """The smallest key that sorts after all keys with this prefix; None if there is none.

    >>> after_prefix(b"ab"), after_prefix(b"a\\xff"), after_prefix(b"\\xff")
    (b'ac', b'b', None)
    """
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
