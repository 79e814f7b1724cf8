"""The orders of user keys that tests go through: by bytes both ways, folded, by length."""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.engine.format.key_order import Position
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE, CallableComparator, Comparator


def fold(a: bytes, b: bytes) -> int:
    """The order in which the case of letters does not count."""
    x, y = a.lower(), b.lower()
    return (x > y) - (x < y)


def by_bytes(a: bytes, b: bytes) -> int:
    """The bytewise order."""
    return (a > b) - (a < b)


class InterruptedOrder:
    """An order in whose comparisons Ctrl-C comes."""

    def __init__(self, compare: Callable[[bytes, bytes], int] = by_bytes) -> None:
        self._compare = compare
        self.left = -1
        """It comes with this comparison from now on, the next one being the first; -1: never."""
        self.comparator = CallableComparator(self._interrupted, "test.Interruptible")

    def _interrupted(self, a: bytes, b: bytes) -> int:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self._compare(a, b)


class ByLength:
    """Shorter keys first; with a sort key of its own."""

    name = "test.ByLength"

    def compare(self, a: bytes, b: bytes, /) -> int:
        x, y = self.sort_key(a), self.sort_key(b)
        return (x > y) - (x < y)

    def sort_key(self, key: bytes, /) -> tuple[int, bytes]:
        return len(key), key

    def find_shortest_separator(self, start: bytes, limit: bytes, /) -> bytes:
        return start

    def find_short_successor(self, key: bytes, /) -> bytes:
        return key


FOLDING = CallableComparator(fold, "test.Folding")
COMPARATORS: list[Comparator] = [BYTEWISE, REVERSE_BYTEWISE, FOLDING, ByLength()]


def lies_before(key: bytes, position: Position, comparator: Comparator = BYTEWISE) -> bool:
    """Whether a key lies before a position."""
    compared = comparator.compare(key, position.user_key)
    return compared < 0 or (compared == 0 and position.after)
