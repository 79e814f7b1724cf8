"""The order of user keys, in the forms that searching, sorting and scanning need.

A store has one :class:`KeyOrder`, made from its comparator.  It is immutable, and any thread may
use it without a lock.

Fast path: in the bytewise order Python compares the keys themselves, in C.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from mypy_extensions import mypyc_attr

from lsmkv.engine.util.comparator import Comparator, ReverseBytewiseComparator, sort_key

if TYPE_CHECKING:
    from mypy_extensions import i64


@mypyc_attr(free_list_len=1)
class Position:
    """A position between user keys: just before all versions of one, or just after them."""

    __slots__ = ("after", "user_key")

    def __init__(self, user_key: bytes, after: bool) -> None:
        self.user_key = user_key
        self.after = after


class KeyOrder:
    """The order of user keys.

    In the bytewise order, the sort key that ``of`` returns is the key itself.  With a custom
    comparator, keys of different bytes may be equal: they count as one key.
    """

    def __init__(self, comparator: Comparator) -> None:
        self.compare = comparator.compare
        self.is_reverse = isinstance(comparator, ReverseBytewiseComparator)
        """True if the order is the reverse of the bytewise one."""
        order = sort_key(comparator)
        self._order = order
        self.is_bytewise = order is None
        """True if keys compare as their bytes do."""
        self.of_entry: Callable[[Any], Any] = itemgetter(0)
        """As ``of``, for a tuple that begins with a user key: an entry or a pair."""
        if order is not None:
            self.of_entry = lambda entry: order(entry[0])

    def of(self, user_key: bytes) -> Any:
        """The sort key of a user key: an object that compares with ``<`` and ``==`` as the
        comparator orders the keys."""
        return user_key if self._order is None else self._order(user_key)

    def of_all(self, user_keys: list[bytes]) -> list[Any]:
        """The sort keys of these user keys; the list itself in the bytewise order."""
        order = self._order
        return user_keys if order is None else [order(key) for key in user_keys]

    def is_same(self, user_key: bytes, other: bytes) -> bool:
        """Return True if two user keys are equal."""
        if self.is_bytewise:
            return user_key == other
        return self.compare(user_key, other) == 0

    def is_at_or_after(self, user_key: bytes, position: Position) -> bool:
        """Return True if a key lies after a position."""
        if self.is_bytewise:
            if position.after:
                return user_key > position.user_key
            return user_key >= position.user_key
        compared = self.compare(user_key, position.user_key)
        return compared > 0 or (compared == 0 and not position.after)

    def is_before(self, position: Position, other: Position) -> bool:
        """Return True if a position lies before another one."""
        compared = self.compare(position.user_key, other.user_key)
        return compared < 0 or (compared == 0 and not position.after and other.after)

    def count_before(self, entries: list[Any], position: Position) -> int:
        """Return the number of these entries, or pairs, that lie before a position.  O(log of their
        number)."""
        if self._order is not None:
            find = bisect_right if position.after else bisect_left
            return find(entries, self._order(position.user_key), key=self.of_entry)
        # Compiled, 1.5 to 3 times as fast as bisect for the few entries of a short scan;
        # interpreted a quarter as fast, which costs 0.2 us for each source that reaches the bound.
        low: i64 = 0
        high: i64 = len(entries)
        while low < high:
            middle = (low + high) >> 1
            entry: tuple[Any, ...] = entries[middle]
            if self.is_at_or_after(entry[0], position):
                high = middle
            else:
                low = middle + 1
        return low
