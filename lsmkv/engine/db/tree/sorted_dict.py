"""SortedDict: a dict of bytes whose keys are put in order when a scan asks for it.

:class:`sortedcontainers.SortedDict` keeps its keys in order with each write, which costs 0.7 us one
by one, 0.25 us in bulk, where a dict assignment costs 0.04 us (measured).  Most memtables are never
scanned.  So writes go into a plain dict, :attr:`SortedDict.content`, and a
:class:`sortedcontainers.SortedList` gets the keys later (:meth:`SortedDict.catch_up`).  A dict
keeps its keys as they were inserted: those that are not in order yet are its last ones.

All of it is used under the store's lock.  An interrupted call can be done again.

Fast path: a memtable that is scanned again and again has a list of its keys as well
(:class:`~lsmkv.engine.db.tree.key_list.KeyList`).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from sortedcontainers import SortedList

from lsmkv.engine.db.tree.key_list import KeyList
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.util.comparator import Comparator, sort_key

if TYPE_CHECKING:
    from mypy_extensions import i64

_LIST_PAYS_AT: Final = 32
"""A list of all keys pays once scans have read one chunk for every 32 keys, or as many keys as
there are: a search costs a microsecond more in a SortedList than in a list, and a key as much as
putting it into the list, 0.01 us."""
_FEW_WRITES: Final = 16
"""A list of all keys is updated after at most this many writes, and otherwise rebuilt: inserting
a key moves all those after it."""


class SortedDict:
    """A dict, and its keys in the order of a comparator."""

    def __init__(self, comparator: Comparator) -> None:
        self.content: dict[bytes, bytes] = {}
        """The dict, which is never replaced.  The memtable reads and writes it; before it does, it
        says what will be written (:meth:`note`)."""
        self._compare = comparator.compare
        self._order = sort_key(comparator)
        self._sorted: Any = SortedList(key=self._order)
        self._count: i64 = 0
        """Number of keys of the dict, from its first one on, that are in order."""
        self._changing = False
        """True if the order is being changed, or Ctrl-C has interrupted that: the dict is intact,
        but the order is not."""
        self._list: KeyList | None = None
        """The keys in bytewise order, once that pays; None again when many keys are written."""
        self._written: list[bytes] = []
        """The keys that were written since the list was updated."""
        self._chunks_read: i64 = 0  # since many were written, a large chunk as several

    def note(self, operations: list[Operation]) -> None:
        """Take note of operations that are to be applied to the dict."""
        if self._list is not None:
            self._written += [key for key, _ in operations]
            if len(self._written) > _FEW_WRITES:
                self._drop_list()

    def catch_up(self) -> None:
        """Put the keys in order that were written since the last call."""
        content = self.content
        if self._changing:
            self._sorted = SortedList(key=self._order)
            self._count = 0
        added: i64 = len(content) - self._count
        if added > 0:
            self._changing = True
            self._sorted.update(list(islice(reversed(content), added))[::-1])
            self._count = len(content)
            self._changing = False
            if added > _FEW_WRITES:
                self._drop_list()
        every = self._list
        if every is not None and self._written:
            self._list = None
            for key in self._written:
                if key in content:  # it is not, if the write was interrupted
                    every.write(key, content[key])
            self._written = []
            self._list = every

    def remove(self, key: bytes) -> None:
        """Remove a key from the order and the dict.  Only in a user's order, which has no list."""
        self._changing = True
        self._sorted.remove(key)
        del self.content[key]
        self._count -= 1
        self._changing = False

    def equal_to(self, key: bytes) -> bytes | None:
        """The key that compares equal to ``key``, or None.  O(log n) comparisons."""
        some = self.beyond(Position(key, after=False), 1, False)
        return some[0] if some and self._compare(some[0], key) == 0 else None

    def every(self) -> list[bytes] | None:
        """All keys in order; None if no key was ever put in order."""
        if self._count == 0:
            return None
        self.catch_up()
        return list(self._sorted)

    def beyond(
        self, edge: Position | None, count: i64, back: bool, upper: Position | None = None
    ) -> list[bytes]:
        """Up to ``count`` keys after ``edge`` and before ``upper``, or before ``edge`` if ``back``;
        in ascending order."""
        self.catch_up()
        user_key = None if edge is None else edge.user_key
        after = edge is not None and edge.after
        if back:
            some = list(islice(self._sorted.irange(None, user_key, (True, after), True), count))
            some.reverse()
            return some
        stop = None if upper is None else upper.user_key
        until = upper is not None and upper.after
        return list(islice(self._sorted.irange(user_key, stop, (not after, until)), count))

    # Fast paths: scans, with a list of all keys

    def listed(self, count: i64) -> KeyList | None:
        """The list of all keys, if there is one or this read of ``count`` keys makes it pay."""
        self.catch_up()
        if self._list is None and self._order is None and self._count > 0:
            self._chunks_read += 1 + count // _LIST_PAYS_AT
            if _LIST_PAYS_AT * self._chunks_read >= self._count:
                self._list = KeyList(list(self._sorted), self.content)
        return self._list

    def _drop_list(self) -> None:
        self._list = None
        self._written = []
        self._chunks_read = 0

    def check(self) -> None:
        """Assert that these are the dict's keys, in order, and that the list has its versions."""
        self.catch_up()
        self._sorted._check()
        keys = list(self._sorted)
        assert sorted(keys) == sorted(self.content), "other keys than the dict's"
        every = self._list
        assert every is None or every.keys == keys, "a list of other keys"
        assert every is None or every.tagged == [self.content[key] for key in keys], (
            "a list of other versions"
        )
