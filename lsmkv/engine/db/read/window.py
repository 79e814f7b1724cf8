"""The window of an iterator: the pairs around its position that were read already.

Both public iterators have one, and move it over the store a block or so at a time
(:class:`~lsmkv.engine.db.read.base_iterator.BaseIterator`).

Fast path: compiled, a step in this native class is several times as fast as in a class that users
may derive from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsmkv.engine.db.tree.store import Store

if TYPE_CHECKING:
    from mypy_extensions import i64


class Window:
    """The pairs around an iterator's gap that were read already."""

    __slots__ = (
        "_as_it_is",
        "_include_key",
        "_include_value",
        "_prefix",
        "_store",
        "at",
        "pairs",
        "reverse",
    )

    def __init__(self, store: Store, reverse: bool, include_key: bool, include_value: bool) -> None:
        self._store = store
        self._include_key = include_key
        self._include_value = include_value
        self.reverse = reverse
        self.hide(0)
        # list[Any]: in compiled code, a list[Pair] would take each tuple apart and build it again.
        self.pairs: list[Any] = []
        self.at: i64 = 0
        """The gap is before ``pairs[at]``."""

    def hide(self, size: i64) -> None:
        """Show keys without their first ``size`` bytes."""
        self._prefix: i64 = size
        self._as_it_is = self._include_key and self._include_value and size == 0

    def put(self, pairs: list[Any], at: i64) -> None:
        """Replace the pairs, and put the gap before ``pairs[at]``."""
        self.pairs = pairs
        self.at = at

    def next(self) -> Any:
        """Step over the next pair and return the parts asked for.

        None if the pair is not in the window, or if neither key nor value is asked for.
        """
        as_it_is = self._as_it_is
        if self._store.view is None or not (as_it_is or self._include_key or self._include_value):
            return None
        at = self.at
        if self.reverse:
            if at == 0:
                return None
            at -= 1
            self.at = at
        else:
            if at == len(self.pairs):
                return None
            self.at = at + 1
        pair = self.pairs[at]
        return pair if as_it_is else self.shape(pair)

    def shape(self, pair: Any) -> Any:
        """The parts of a pair that are asked for: the pair, its key without the prefix, its value,
        or None."""
        if self._as_it_is:
            return pair
        both: tuple[Any, ...] = pair
        if not self._include_key:
            return both[1] if self._include_value else None
        key: bytes = both[0]
        if self._prefix > 0:
            key = key[self._prefix :]
        return (key, both[1]) if self._include_value else key
