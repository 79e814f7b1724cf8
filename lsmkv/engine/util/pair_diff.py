"""The difference of two streams of pairs, each sorted by the same order of keys."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

Pair = tuple[bytes, bytes]
"""Key and value."""

_REPORT_EVERY = 1000


class Difference(NamedTuple):
    """A key and its value on each side, A and B; None where the key is missing."""

    key: bytes
    a: bytes | None
    b: bytes | None


def pair_differences(
    ours: Iterator[Pair],
    theirs: Iterator[Pair],
    compare: Callable[[bytes, bytes], int],
    advance: Callable[[int], None],
) -> Generator[Difference, None, None]:
    """The differences in the order of their keys; ``advance`` is called with the keys compared.

    Both streams are read once, in parallel, one pair ahead.  Keys that ``compare`` calls equal are
    one key, shown as A spells it.

    >>> ours, theirs = [(b"a", b"1"), (b"b", b"2")], [(b"b", b"3"), (b"c", b"4")]
    >>> compare = lambda a, b: (a > b) - (a < b)
    >>> for found in pair_differences(iter(ours), iter(theirs), compare, lambda _: None):
    ...     tuple(found)
    (b'a', b'1', None)
    (b'b', b'2', b'3')
    (b'c', None, b'4')
    """
    unreported = 0
    left, right = next(ours, None), next(theirs, None)
    while left is not None or right is not None:
        if left is None or (right is not None and compare(left[0], right[0]) > 0):
            assert right is not None
            yield Difference(right[0], None, right[1])
            right = next(theirs, None)
        elif right is None or compare(left[0], right[0]) < 0:
            yield Difference(left[0], left[1], None)
            left = next(ours, None)
        else:
            if left[1] != right[1]:
                yield Difference(left[0], left[1], right[1])
            left, right = next(ours, None), next(theirs, None)
        unreported += 1
        if unreported == _REPORT_EVERY:
            advance(unreported)
            unreported = 0
    advance(unreported)
