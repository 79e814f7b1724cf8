"""The orders of user keys that tests go through: by bytes both ways, folded, by length."""

from __future__ import annotations

from lsmkv.engine.format.key_order import Position
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE, CallableComparator, Comparator


def fold(a: bytes, b: bytes) -> int:
    """The order in which the case of letters does not count."""
    x, y = a.lower(), b.lower()
    return (x > y) - (x < y)


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
