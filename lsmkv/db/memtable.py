"""The memtable: recent writes, in order of their keys.

A :class:`~sortedcontainers.SortedDict` from user key to the row of its newest version: tag and
value in one ``bytes``, as a table's builder takes it, and nothing that the garbage collector has
to look at.  Older versions are kept beside it, and only while a snapshot or an iterator can still
see them.  Writes land in a plain dict first and are merged in bulk when someone asks for the order:
keeping a key sorted costs 0.7 us one by one, 0.25 us in bulk, and a dict assignment 0.04 us
(measured).

And they land there only once somebody looks for a key.  Until then they are noted, in the order in
which they came: who loads a store reads nothing, and a worker process that flushes reads the log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Final

from librt.strings import BytesWriter
from librt.threading import Lock
from sortedcontainers import SortedDict

from lsmkv.format.batch import Operation
from lsmkv.format.key_order import Position
from lsmkv.format.keys import (
    KIND_DELETION,
    KIND_VALUE,
    MAX_SEQUENCE,
    TAG_SIZE,
    Entry,
    entry_overhead,
    sequence_in,
    tagged_value,
)
from lsmkv.util.comparator import Comparator, equal_means_identical, sort_key

if TYPE_CHECKING:
    from mypy_extensions import i64

_FIRST_CHUNK: Final = 4
LARGEST_CHUNK: Final = 1024
"""Keys that a scan looks at under the lock, at most."""
_MOST_NOTED: Final = 4 * 1024 * 1024
"""Once a memtable has so many bytes, the next write has it enter what it noted, and enters itself.
The first who looks waits for so much at most, and one batch: 5 ms for 33,000 puts of 100 bytes, 20
for 130,000 deletions; 15 and 65 where this is not compiled."""
_ROWS: Final = 512
_WORTH_A_LIST: Final = 32
"""A list of the keys pays from one look in so many keys on: to find a place among them takes a
microsecond more in a SortedDict than in a list, and to list a key takes a hundredth of one."""


class MemTable:
    """Versions in memory.

    Writing (``add``) and everything that goes by order (``entries``, ``visible``,
    ``__len__``) happens under ``lock``, which the store and the memtable share; ``add`` expects the
    caller to hold it.  ``get`` waits for no lock when keys that compare equal are the same bytes:
    each of its steps is one atomic dict lookup, and a version goes only after it is in another
    place.  The first ``get`` takes the lock, if it is free.
    """

    def __init__(self, comparator: Comparator, lock: Lock) -> None:
        self._lock = lock
        self._compare = comparator.compare
        self._identical = equal_means_identical(comparator)
        self._order = sort_key(comparator)
        self._sorted: Any = SortedDict(self._order)
        self._pending: dict[bytes, bytes] = {}
        self._merging = False
        self._list: list[bytes] | None = None
        """The keys in bytewise order, once that has paid; until a key is merged."""
        self._looked_for: i64 = 0  # how many chunks, since then
        self._row = BytesWriter()  # where rows are put together
        self._unread = self._identical
        """Whether nobody has looked for anything here yet."""
        # The writes until then, numbered from ``_first_noted`` on.
        self._noted_keys: list[bytes] = []
        self._noted_values: list[bytes | None] = []
        self._first_noted = 0
        self._older: dict[bytes, tuple[Entry, ...]] = {}
        """By key: versions that a newer one has taken the place of, newest first."""
        self.log_number = 0
        """Of the log that its writes are in."""
        self.table_number = 0
        """Of the table that it becomes, once it is immutable."""
        self.usage = 0
        """Bytes as LevelDB's arena would count them: every write adds, none is taken back."""

    def __len__(self) -> int:
        """User keys, deleted ones included."""
        with self._lock:
            return len(self._in_order())

    @property
    def empty(self) -> bool:
        """Whether nothing was ever added."""
        return not self._noted_keys and not self._pending and not self._sorted

    def add(self, sequence: int, operations: list[Operation], newest_seen: int) -> int:
        """Apply operations numbered from ``sequence`` on; bytes of their keys and values.

        Caller holds the lock.

        Versions newer than ``newest_seen``, the newest sequence that a reader holds, are replaced;
        others are kept behind the new one.  Applying the same operations again changes nothing,
        so that an interrupted write can be completed.
        """
        keys = self._noted_keys
        values = self._noted_values
        if not keys and self._unread:
            self._first_noted = sequence
        done = sequence - self._first_noted
        # Else there is a gap, or some of it was noted before: by a write that was interrupted.
        follows = len(keys) == done == len(values)
        if not (follows and self._unread and newest_seen < 0 and self.usage <= _MOST_NOTED):
            return self._enter(sequence, operations, newest_seen)
        total: i64 = 0
        overhead: i64 = 0
        for key, value in operations:
            key_size: i64 = len(key)
            size: i64 = 0 if value is None else len(value)
            keys.append(key)
            values.append(value)
            total += key_size + size
            overhead += entry_overhead(key_size, size)
        self.usage += total + overhead
        return total

    def _enter(self, sequence: int, operations: list[Operation], newest_seen: int) -> int:
        """:meth:`add` to where keys are looked for."""
        self._take_in()
        self._unread = False
        total: i64 = 0
        overhead: i64 = 0
        at: i64 = sequence
        writer = self._row
        for key, value in operations:
            key_size: i64 = len(key)
            size: i64 = 0
            if value is None:
                row = tagged_value(writer, at, KIND_DELETION, b"")
            else:
                size = len(value)
                row = tagged_value(writer, at, KIND_VALUE, value)
            at += 1
            total += key_size + size
            overhead += entry_overhead(key_size, size)
            if newest_seen >= 0 or self._older or not self._identical:
                self._make_way(key, newest_seen)
            self._pending[key] = row
        self.usage += total + overhead
        return total

    def get(self, key: bytes, sequence: int) -> bytes | None:
        """The row of the newest version of ``key`` at or before ``sequence``, or None.

        ``MAX_SEQUENCE`` asks for the newest of all.  O(1), and O(log n) calls of the comparator
        where that is the user's.
        """
        if self._identical:
            if self._noted_keys:
                if self._lock.locked():
                    # By this very thread, perhaps: by what a handler or a finalizer interrupts.
                    row = self._find_noted(key, sequence)
                    if row is not None:
                        return row
                else:
                    with self._lock:
                        self._take_in()
            return self._version(key, sequence)
        with self._lock:
            found = self._equal_key(key)
            return None if found is None else self._version(found, sequence)

    def versions(self, key: bytes) -> list[bytes]:
        """The rows of all versions of ``key`` that are kept, newest first."""
        with self._lock:
            self._take_in()
            found = key if self._identical else self._equal_key(key)
            newest = None if found is None else self._newest(found)
            if found is None or newest is None:
                return []
            return [newest, *(row for _, row in self._older.get(found, ()))]

    def entries(self) -> Iterator[list[Entry]]:
        """All versions in order, in lists that grow; writes in between may be missed or seen, whole
        either way.  No order is held open while the lock is not."""
        start: Position | None = None
        count: i64 = _FIRST_CHUNK
        while True:
            with self._lock:
                keys = self._keys_beyond(start, count, False)
                ordered = self._sorted
                user_keys, tagged = self._with_older(keys, [ordered[key] for key in keys])
            if not keys:
                return
            yield list(zip(user_keys, tagged, strict=True))
            start = Position(keys[len(keys) - 1], after=True)
            count = min(2 * count, LARGEST_CHUNK)

    def visible(
        self, edge: Position | None, count: i64, sequence: int, back: bool, found: list[Any]
    ) -> bytes | None:
        """Add what is seen at ``sequence``, removals with None, of the next ``count`` keys beyond
        ``edge`` to ``found``, in rising order; the last of these keys, on the way, or None.

        For keys in the bytewise order.  Whoever reads at a sequence holds it live.
        """
        with self._lock:
            keys = self._keys_beyond(edge, count, back)
            for key in keys:
                row = self._version(key, sequence)
                if row is not None:
                    name = key if self._identical else self._spelling(key, row)
                    found.append((name, row[TAG_SIZE:] if row[0] == KIND_VALUE else None))
        if not keys:
            return None
        return keys[0] if back else keys[len(keys) - 1]

    @property
    def keeps_older(self) -> bool:
        """Whether a key may have more versions than its newest one."""
        return bool(self._older)

    def columns(self) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """All versions in order, once nothing is added any more: their keys, and their rows.

        All versions of a key are in one chunk, the newest first.  Keys are put in order outside
        the lock, as long as nobody else has wanted their order.
        """
        with self._lock:
            in_order = bool(self._sorted)
            newest: dict[bytes, bytes] = self._in_order() if in_order else self._pending
            noted, values, first = self._noted_keys, self._noted_values, self._first_noted
        if noted:  # others may take the same in meanwhile: these lists do not change any more
            rows = _rows_of(values, first, BytesWriter())
            if self._order is None and _rise(noted):  # as keys do that are made of the time, say
                yield noted, rows
                return
            newest = dict(zip(noted, rows, strict=True))
        keys = list(newest) if in_order else sorted(newest, key=self._order)
        for at in range(0, len(keys), _ROWS):
            some = keys[at : at + _ROWS]
            yield self._with_older(some, [newest[key] for key in some])

    def check(self) -> None:
        """Assert the invariants: keys in order, and the versions of each newest first."""
        with self._lock:
            ordered = self._in_order()
            ordered._check()
            assert self._list is None or self._list == list(ordered), "a list of other keys"
            for key, rows in self._older.items():
                sequences = [sequence_in(row) for _, row in rows]
                sequences.insert(0, sequence_in(ordered[key]))
                for newer, older in pairwise(sequences):
                    assert newer > older, "an older version stands before a newer one"

    def _find_noted(self, key: bytes, sequence: int) -> bytes | None:
        """The row of the newest version that is noted, and not newer than ``sequence``.

        Needs no lock: these lists only grow, and where one is found empty already, all that was in
        it has been entered.  O(all that is noted).
        """
        keys = self._noted_keys
        values = self._noted_values
        at: i64 = min(len(keys), len(values)) - 1
        while at >= 0:
            if keys[at] == key:
                number = self._first_noted + at
                if number <= sequence:
                    value = values[at]
                    kind = KIND_DELETION if value is None else KIND_VALUE
                    return tagged_value(BytesWriter(), number, kind, value or b"")
            at -= 1
        return None

    def _take_in(self) -> None:
        """Put what was noted where it is found; what comes from now on lands there at once.

        Caller holds the lock.  Whoever finds something noted does this too, or looks there first;
        so it is forgotten last.  All of it can be done again.
        """
        if self._noted_keys:
            # A key without a value is the last one, of a write that was interrupted and is to be
            # done again.
            rows = _rows_of(self._noted_values, self._first_noted, self._row)
            self._pending.update(zip(self._noted_keys, rows, strict=False))
            self._unread = False
            self._noted_keys = []
            self._noted_values = []

    def _newest(self, key: bytes) -> bytes | None:
        """The newest row under exactly this key."""
        row: bytes | None = self._pending.get(key)
        if row is None and self._sorted:
            row = self._sorted.get(key)
        return row

    def _version(self, key: bytes, sequence: int) -> bytes | None:
        """The newest row under exactly this key that is not newer than ``sequence``."""
        row = self._newest(key)
        if row is not None and sequence != MAX_SEQUENCE and sequence_in(row) > sequence:
            for _, row in self._older.get(key, ()):
                if sequence_in(row) <= sequence:
                    return row
            return None
        return row

    def _spelling(self, key: bytes, row: bytes) -> bytes:
        """The key under which this version of ``key`` was written."""
        for name, older in self._older.get(key, ()):
            if older is row:
                return name
        return key

    def _make_way(self, key: bytes, newest_seen: int) -> None:
        """Put the versions of ``key`` up to ``newest_seen`` where a new one does not replace them.

        A key of other bytes that compares equal goes, with its versions.  What a reader may look
        for is in its new place before it leaves its old one, and all of it can be done again.
        """
        found = key if self._identical else self._equal_key(key)
        newest = None if found is None else self._newest(found)
        if found is None or newest is None:
            return
        rows = self._older.get(found, ())
        if not rows or rows[0][1] is not newest:  # else it was interrupted, and is done again
            rows = ((found, newest), *rows)
        rows = tuple([row for row in rows if sequence_in(row[1]) <= newest_seen])
        if rows:
            self._older[key] = rows
        else:
            self._older.pop(key, None)
        if found != key:
            self._pending[key] = newest
            self._merging = True
            del self._sorted[found]
            self._merging = False
            self._older.pop(found, None)

    def _equal_key(self, key: bytes) -> bytes | None:
        """The key in the table that compares equal to ``key``.  Caller holds the lock."""
        ordered = self._in_order()
        at = ordered.bisect_left(key)
        if at < len(ordered):
            candidate: bytes = ordered.keys()[at]
            if self._compare(candidate, key) == 0:
                return candidate
        return None

    def _in_order(self) -> Any:
        """The SortedDict with everything in it.  Caller holds the lock."""
        self._take_in()
        if self._merging:
            # A merge was interrupted (Ctrl-C): the dict part is whole, the order is not.  Only
            # dict's own items() does not go by the order.
            self._sorted = SortedDict(self._order, dict(dict.items(self._sorted)))
        if self._pending:
            self._merging = True
            self._list = None
            self._looked_for = 0
            self._sorted.update(self._pending)
            self._pending = {}
        self._merging = False
        return self._sorted

    def _keys_beyond(self, edge: Position | None, count: i64, back: bool) -> list[bytes]:
        """Up to ``count`` keys before ``edge``, if that is the way, or behind it; in rising order.

        Caller holds the lock.
        """
        ordered = self._in_order()
        name = None if edge is None else edge.user_key
        after = edge is not None and edge.after
        every = self._list
        if every is None and self._order is None:
            self._looked_for += 1
            if _WORTH_A_LIST * self._looked_for >= len(ordered):
                every = list(ordered)
                self._list = every
        # Many keys come of the SortedDict all the same: that is interpreted, so that signals and
        # other threads are heeded there, however long nothing is found.
        if every is not None and count < LARGEST_CHUNK:
            size: i64 = len(every)
            at: i64 = 0
            if name is None:
                at = size if back else 0
            elif after:
                at = bisect_right(every, name)
            else:
                at = bisect_left(every, name)
            return every[max(0, at - count) : at] if back else every[at : at + count]
        if not back:
            return list(islice(ordered.irange(name, None, (not after, True)), count))
        some = list(islice(ordered.irange(None, name, (True, after), reverse=True), count))
        some.reverse()
        return some

    def _with_older(
        self, keys: list[bytes], newest: list[bytes]
    ) -> tuple[list[bytes], list[bytes]]:
        """Keys and rows of all versions of these keys."""
        if not self._older:
            return keys, newest
        every: list[bytes] = []
        rows: list[bytes] = []
        for key, row in zip(keys, newest, strict=True):
            every.append(key)
            rows.append(row)
            for name, older in self._older.get(key, ()):
                every.append(name)
                rows.append(older)
        return every, rows


def _rows_of(values: list[bytes | None], first: int, writer: BytesWriter) -> list[bytes]:
    """The rows of writes that are numbered from ``first`` on, by what they write."""
    rows: list[bytes] = []
    sequence: i64 = first
    for value in values:
        if value is None:
            rows.append(tagged_value(writer, sequence, KIND_DELETION, b""))
        else:
            rows.append(tagged_value(writer, sequence, KIND_VALUE, value))
        sequence += 1
    return rows


def _rise(keys: list[bytes]) -> bool:
    """Whether each key lies beyond the one before it."""
    last: bytes | None = None
    for key in keys:
        if last is not None and key <= last:
            return False
        last = key
    return True
