"""The memtable: recent writes in memory, in the order of their keys.

A memtable is a :class:`~sortedcontainers.SortedDict` from user key to the tagged value of its
newest version (:mod:`lsmkv.engine.format.keys`).  A deletion is a version too: it hides what tables
hold.  Older versions are kept separately
(:class:`~lsmkv.engine.db.tree.older_versions.OlderVersions`), and only while a snapshot or an
iterator can still see them.  A commit adds operations, Gets and scans read, and a flush takes
everything, once the memtable is immutable.  Most of this happens under the store's lock: see
:class:`MemTable`.

Left out: a skip list, as LevelDB has it.  In Python each of its nodes would be an object that the
garbage collector visits; a tagged value is one ``bytes``, which it does not.

Fast paths, which a first reading may skip: a write waits in one of two places until a read needs
its order.  New keys go into a plain dict, and are sorted at once: keeping a key sorted costs 0.7 us
one by one, 0.25 us in bulk, and a dict assignment 0.04 us (measured).  Until the first read, writes
do not even enter that dict: they wait in a :class:`~lsmkv.engine.db.tree.write_buffer.WriteBuffer`.
And a memtable that is scanned again and again has a list of its keys as well
(:class:`~lsmkv.engine.db.tree.key_list.KeyList`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from librt.strings import BytesWriter
from sortedcontainers import SortedDict

from lsmkv.engine.db.tree.key_list import KeyList
from lsmkv.engine.db.tree.older_versions import OlderVersions
from lsmkv.engine.db.tree.pinned import PinnedSequences
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.db.tree.write_buffer import WriteBuffer
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.format.keys import (
    KIND_DELETION,
    KIND_VALUE,
    MAX_SEQUENCE,
    TAG_SIZE,
    Entry,
    entry_overhead,
    sequence_in,
    tagged_value,
)
from lsmkv.engine.table.deletion_run import DeletionRun, add_deletion
from lsmkv.engine.util.comparator import Comparator, equal_means_identical, sort_key

if TYPE_CHECKING:
    from mypy_extensions import i64

_FIRST_CHUNK: Final = 4
LARGEST_CHUNK: Final = 1024
"""A scan reads at most this many keys while it holds the lock."""
_BUFFER_LIMIT: Final = 4 * 1024 * 1024
"""When a memtable exceeds this many bytes, the next write moves the buffered writes and its own
into the dict.  So the first read has at most this much, and one batch, to move: 5 ms for 33,000
puts of 100 bytes, 20 ms for 130,000 deletions; 15 and 65 ms where this is not compiled."""
_COLUMN_CHUNK: Final = 512
_LIST_PAYS_AT: Final = 32
"""A list of all keys pays once scans have read one chunk for every 32 keys, or as many keys as
there are: a search costs a microsecond more in a SortedDict than in a list, and a key as much as
putting it into the list, 0.01 us."""
_FEW_WRITES: Final = 16
"""A list of all keys is updated after at most this many writes, and otherwise made again: inserting
a key moves all those after it."""


class MemTable:
    """The versions of keys that are in memory.

    Writing (``add``) and everything that needs the order of the keys (``entries``, ``visible``,
    ``__len__``) happens under ``lock``, which the store and the memtable share; ``add`` expects the
    caller to hold it.  ``get`` waits for no lock when keys that compare equal are the same bytes:
    each of its steps is one atomic dict lookup, and a version leaves its place only after it is in
    another one.  The first ``get`` takes the lock, if it is free.

    A nested call, whose own thread holds the lock in the middle of any of this, reads a copy: it
    changes nothing that the interrupted call relies on.  Nested calls do not write.
    """

    def __init__(self, comparator: Comparator, lock: StoreLock) -> None:
        self._lock = lock
        self._comparator = comparator
        self._compare = comparator.compare
        self._identical = equal_means_identical(comparator)
        self._order = sort_key(comparator)
        self._sorted: Any = SortedDict(self._order)
        """The newest version of each key."""
        self._older = OlderVersions()
        # Fast paths: where writes wait to be sorted, and what a scan keeps.
        self._pending: dict[bytes, bytes] = {}
        """Newest versions that are not in ``_sorted`` yet, or newer than those there."""
        self._merging = False  # while they are put there
        self._buffer: WriteBuffer | None = WriteBuffer() if self._identical else None
        """The writes before the first read; None from that on."""
        self._key_list: KeyList | None = None
        """The keys in bytewise order, once a list of them pays; None again when many are merged."""
        self._chunks_read: i64 = 0  # since many were, a large chunk as several
        self._last_sequence: i64 = 0
        self._writer = BytesWriter()  # where tagged values are put together
        self.applying: list[Operation] | None = None
        """The batch that is being added, until the caller of :meth:`add` has made it visible."""
        self._applying_from = 0  # its first sequence
        self.log_number = 0
        """The number of the log that has the same writes."""
        self.table_number = 0
        """The number of the table that a flush writes, once the memtable is immutable."""
        self.usage = 0
        """Bytes as LevelDB's arena would count them: every write adds to it."""

    def add(
        self,
        sequence: int,
        operations: list[Operation],
        newest_pinned: int,
        pinned: list[int] | None = None,
    ) -> int:
        """Apply operations, the first of them with ``sequence``; returns the bytes of their keys
        and values.  Caller holds the lock.

        ``newest_pinned`` is the newest pinned sequence, or -1, and ``pinned`` are all of them in
        order, if known.  A version that one of them sees is kept after the new one; others are
        replaced.  Applying the same operations again changes nothing, so that an interrupted write
        can be completed.  The caller resets :attr:`applying` once readers may see the batch.
        """
        self._applying_from = sequence
        self.applying = operations
        last: i64 = sequence + len(operations) - 1
        self._last_sequence = max(last, self._last_sequence)
        buffer = self._buffer
        if buffer is not None and newest_pinned < 0 and self.usage <= _BUFFER_LIMIT:
            total = buffer.add(sequence, operations)
            if total >= 0:
                self.usage += total + buffer.overhead
                return total
        return self._add_to_dict(sequence, operations, newest_pinned, pinned)

    def _add_to_dict(
        self,
        sequence: int,
        operations: list[Operation],
        newest_pinned: int,
        pinned: list[int] | None,
    ) -> int:
        """:meth:`add`, to the dict where Gets find keys; what was buffered goes there first."""
        self._drain_buffer()
        self._buffer = None
        total: i64 = 0
        overhead: i64 = 0
        at: i64 = sequence
        writer = self._writer
        for key, value in operations:
            key_size: i64 = len(key)
            size: i64 = 0
            if value is None:
                tagged = tagged_value(writer, at, KIND_DELETION, b"")
            else:
                size = len(value)
                tagged = tagged_value(writer, at, KIND_VALUE, value)
            total += key_size + size
            overhead += entry_overhead(key_size, size)
            if newest_pinned >= 0 or self._older.by_key or not self._identical:
                self._keep_older(key, newest_pinned, at, pinned)
            at += 1
            self._pending[key] = tagged
        self.usage += total + overhead
        return total

    def get(self, key: bytes, sequence: int) -> bytes | None:
        """The tagged value of the newest version of ``key`` at or before ``sequence``, or None.

        ``MAX_SEQUENCE`` asks for the newest of all.  O(1), and O(log n) calls of the comparator
        where that is the user's.
        """
        if self._identical:
            buffer = self._buffer
            if buffer is not None and buffer.keys:
                lock = self._lock
                if lock.taken():
                    # Perhaps by this very thread, if this is a nested call.
                    tagged = buffer.find(key, sequence)
                    if tagged is not None:
                        return tagged
                else:
                    with lock.nested, lock.guard:
                        self._drain_buffer()
            return self._newest(key) if sequence == MAX_SEQUENCE else self._version(key, sequence)
        return self._get_equal(key, sequence)

    def _version(self, key: bytes, sequence: int) -> bytes | None:
        """The newest tagged value of exactly this key at or before ``sequence``."""
        tagged = self._newest(key)
        if tagged is not None and sequence_in(tagged) > sequence:
            return self._older.find(key, sequence)
        return tagged

    def _newest(self, key: bytes) -> bytes | None:
        """The newest tagged value of exactly this key."""
        tagged: bytes | None = self._pending.get(key)
        if tagged is None and self._sorted:
            tagged = self._sorted.get(key)
        return tagged

    def columns(self) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """All versions in order, as lists of user keys and of tagged values.  The memtable is
        already immutable.

        All versions of a key are in one chunk, the newest first.  Keys are sorted outside the lock
        if no read has sorted them yet.
        """
        lock = self._lock
        with lock.nested, lock.guard:
            in_order = bool(self._sorted)
            newest: dict[bytes, bytes] = self._in_order() if in_order else self._pending
            buffer = self._buffer
        # A read may enter the buffer meanwhile.  Its lists no longer change.
        if buffer is not None and buffer.keys:
            tagged = buffer.tagged_values(BytesWriter())
            if self._order is None and _rise(buffer.keys):  # as keys do that begin with the time
                yield buffer.keys, tagged
                return
            newest = dict(zip(buffer.keys, tagged, strict=True))
        keys = list(newest) if in_order else sorted(newest, key=self._order)
        for at in range(0, len(keys), _COLUMN_CHUNK):
            some = keys[at : at + _COLUMN_CHUNK]
            yield self._older.with_newest(some, [newest[key] for key in some])

    # Beyond the tour: the order of the keys, older versions, and what needs all of them

    def _in_order(self) -> Any:
        """The SortedDict with everything in it.  Caller holds the lock."""
        self._drain_buffer()
        if self._merging:
            # Ctrl-C has interrupted a merge: the dict part is whole, the order is not.  Only dict's
            # own items() does not use the order.
            self._sorted = SortedDict(self._order, dict(dict.items(self._sorted)))
        if self._pending:
            self._merging = True
            every = self._key_list
            self._key_list = None
            self._sorted.update(self._pending)
            if len(self._pending) > _FEW_WRITES:
                self._chunks_read = 0
            elif every is not None:
                for key in self._pending:
                    every.write(key)
                self._key_list = every
            self._pending = {}
        self._merging = False
        return self._sorted

    def _keep_older(
        self, key: bytes, newest_pinned: int, sequence: int, pinned: list[int] | None
    ) -> None:
        """Keep the versions of ``key`` that readers may ask for, before one at ``sequence``
        replaces them.

        An equal key of other bytes is removed, and its versions move to ``key``.  A version that a
        reader may ask for is in its new place before it leaves its old one, and an interrupted call
        can be done again.
        """
        found = key if self._identical else self._equal_key(key)
        newest = None if found is None else self._newest(found)
        if found is None or newest is None:
            return
        self._older.keep(key, found, newest, newest_pinned, sequence, pinned)
        if found != key:
            self._pending[key] = newest
            self._merging = True
            del self._sorted[found]
            self._merging = False
            self._older.by_key.pop(found, None)

    @property
    def keeps_older(self) -> bool:
        """Whether a key may have more versions than its newest one."""
        return bool(self._older.by_key)

    @property
    def empty(self) -> bool:
        """Whether nothing was ever added."""
        buffer = self._buffer
        return (
            (buffer is None or not buffer.keys)
            and not self._pending
            and not self._sorted
            and self.applying is None
        )

    def __len__(self) -> int:
        """The number of user keys, deleted ones included."""
        lock = self._lock
        if lock.mine():
            return len(self._copy())
        with lock.nested, lock.guard:
            return len(self._in_order())

    @property
    def last_applying(self) -> int:
        """The last sequence of the batch that is being added; 0 if none is."""
        applying = self.applying
        return 0 if applying is None else self._applying_from + len(applying) - 1

    def versions(self, key: bytes) -> list[bytes]:
        """The tagged values of all versions of ``key`` that are kept, newest first."""
        lock = self._lock
        if lock.mine():
            return self._copy().versions(key)
        with lock.nested, lock.guard:
            self._drain_buffer()
            found = key if self._identical else self._equal_key(key)
            newest = None if found is None else self._newest(found)
            if found is None or newest is None:
                return []
            return self._older.with_newest([found], [newest])[1]

    def entries(self) -> Iterator[list[Entry]]:
        """All versions in order, in lists that grow.  The lock is held for one list at a time; a
        write that comes in between is in a later list, whole, or is missing.  No iterator over the
        sorted keys stays open while the lock is free."""
        start: Position | None = None
        count: i64 = _FIRST_CHUNK
        while True:
            source = self._copy() if self._lock.mine() else self
            keys, user_keys, tagged = source._entries_beyond(start, count)
            if not keys:
                return
            yield list(zip(user_keys, tagged, strict=True))
            start = Position(keys[len(keys) - 1], after=True)
            count = min(2 * count, LARGEST_CHUNK)

    def _entries_beyond(
        self, start: Position | None, count: i64
    ) -> tuple[list[bytes], list[bytes], list[bytes]]:
        """Up to ``count`` keys after ``start``; user keys and tagged values of all versions."""
        lock = self._lock
        with lock.nested, lock.guard:
            keys = self._keys_beyond(start, count, False)
            ordered = self._sorted
            user_keys, tagged = self._older.with_newest(keys, [ordered[key] for key in keys])
        return keys, user_keys, tagged

    def _keys_beyond(self, edge: Position | None, count: i64, back: bool) -> list[bytes]:
        """Up to ``count`` keys after ``edge``, or before it if ``back``; in ascending order.

        Caller holds the lock.
        """
        ordered = self._in_order()
        user_key = None if edge is None else edge.user_key
        after = edge is not None and edge.after
        if not back:
            return list(islice(ordered.irange(user_key, None, (not after, True)), count))
        some = list(islice(ordered.irange(None, user_key, (True, after), reverse=True), count))
        some.reverse()
        return some

    # Keys that are equal though their bytes differ, in the user's order

    def _get_equal(self, key: bytes, sequence: int) -> bytes | None:
        """:meth:`get` in a user's order, in which other bytes may be the same key."""
        lock = self._lock
        if lock.mine():
            return self._copy().get(key, sequence)
        with lock.nested, lock.guard:
            found = self._equal_key(key)
            return None if found is None else self._version(found, sequence)

    def _equal_key(self, key: bytes) -> bytes | None:
        """The key in the memtable that compares equal to ``key``.  Caller holds the lock."""
        ordered = self._in_order()
        at = ordered.bisect_left(key)
        if at < len(ordered):
            candidate: bytes = ordered.keys()[at]
            if self._compare(candidate, key) == 0:
                return candidate
        return None

    # Nested calls, and checks

    def _copy(self) -> MemTable:
        """A memtable with the same versions, the batch that is being added among them.

        For nested calls.  Whatever the interrupted call is doing here, each version is in one of
        the places that are looked at, or in several.  O(n log n).
        """
        versions: dict[int, Entry] = {}
        for part in (dict.items(self._sorted), self._pending.items()):
            for key, tagged in list(part):
                versions[sequence_in(tagged)] = (key, tagged)
        for entries in list(self._older.by_key.values()):
            for entry in entries:
                versions[sequence_in(entry[1])] = entry
        buffer = self._buffer
        if buffer is not None:
            buffered = buffer.tagged_values(BytesWriter())
            for key, tagged in zip(list(buffer.keys), buffered, strict=False):
                versions[sequence_in(tagged)] = (key, tagged)
        applying = self.applying
        if applying is not None:
            writer = BytesWriter()
            for at, (key, value) in enumerate(applying, self._applying_from):
                kind = KIND_DELETION if value is None else KIND_VALUE
                versions[at] = (key, tagged_value(writer, at, kind, value or b""))
        copy = MemTable(self._comparator, StoreLock())
        copy._last_sequence = max(versions, default=0)
        for sequence in sorted(versions):
            key, tagged = versions[sequence]
            value = tagged[TAG_SIZE:] if tagged[0] == KIND_VALUE else None
            copy._add_to_dict(sequence, [(key, value)], MAX_SEQUENCE, None)
        return copy

    def check(self) -> None:
        """Assert the invariants: keys in order, and the versions of each newest first."""
        lock = self._lock
        if lock.mine():
            self._copy().check()
            return
        with lock.nested, lock.guard:
            ordered = self._in_order()
            ordered._check()
            every = self._key_list
            if every is not None:
                assert every.keys == list(ordered), "a list of other keys"
                for key, marked in zip(every.keys, every.marks(0, len(every.keys)), strict=True):
                    assert not marked or (
                        ordered[key][0] == KIND_DELETION and key not in self._older.by_key
                    )
            self._older.check(ordered)

    # Fast paths: writes that wait for the first read

    def _drain_buffer(self) -> None:
        """Put the buffered writes where Gets find them; later writes go there at once.

        Caller holds the lock.  The buffer is dropped last, so that a Get finds each write in one of
        the two places.  An interrupted call can be done again.
        """
        buffer = self._buffer
        if buffer is not None and buffer.keys:
            # A key without a value is the last one, of an interrupted write that is done again.
            tagged = buffer.tagged_values(self._writer)
            self._pending.update(zip(buffer.keys, tagged, strict=False))
            self._buffer = None

    # Fast paths: scans, with a list of all keys

    def visible(
        self,
        edge: Position | None,
        count: i64,
        sequence: int,
        back: bool,
        found: list[Any],
        deletions: bool = True,
        pinned: PinnedSequences | None = None,
    ) -> bytes | None:
        """Read the next ``count`` keys beyond ``edge``, and append to ``found``, in ascending
        order, the versions that are visible at ``sequence``: ``(key, value)``, and with
        ``deletions`` ``(key, None)``, or a :class:`~lsmkv.engine.table.deletion_run.DeletionRun`
        for many in a row.

        Returns the key where the next call continues, or None if no key is left.  The caller keeps
        ``sequence`` pinned.  With ``pinned``, older versions of deleted keys that no reader sees
        are dropped on the way.
        """
        lock = self._lock
        if lock.mine():
            return self._copy().visible(edge, count, sequence, back, found, deletions)
        with lock.nested, lock.guard:
            self._in_order()
            oldest: i64 = -1
            if pinned is not None and self._older.by_key:
                oldest = pinned.oldest(sequence)
            every = self._listed(count)
            if every is None:
                keys = self._keys_beyond(edge, count, back)
                self._read_visible(keys, None, 0, sequence, deletions, oldest, found)
            else:
                at, stop = every.span_beyond(edge, count, back, deletions)
                keys = every.keys[at:stop]
                self._read_visible(keys, every, at, sequence, deletions, oldest, found)
        if not keys:
            return None
        return keys[0] if back else keys[len(keys) - 1]

    def _read_visible(
        self,
        keys: list[bytes],
        every: KeyList | None,
        first: i64,
        sequence: int,
        deletions: bool,
        oldest: i64,
        found: list[Any],
    ) -> None:
        """:meth:`visible` for these keys, which begin at index ``first`` of ``every``.

        No reader reads at a sequence before ``oldest``, or nothing is known of it if it is -1.
        """
        newest: dict[bytes, bytes] = self._sorted
        older_versions = self._older.by_key
        bounded = sequence < self._last_sequence
        # The marked keys are those without a version that a reader may see, except their deletions.
        marks = (
            b""
            if every is None or (bounded and deletions)
            else every.marks(first, first + len(keys))
        )
        marked: i64 = len(marks)
        deleted: i64 = 0  # deletions since the last value
        run: DeletionRun | None = None  # of these
        at: i64 = -1
        for key in keys:
            at += 1
            if at < marked and marks[at] == 1:
                if not deletions:
                    continue
            else:
                tagged = newest[key]
                name = key
                is_newest = True
                if bounded and sequence_in(tagged) > sequence:
                    older = self._version(key, sequence)
                    if older is None:
                        continue
                    tagged = older
                    is_newest = False
                    if not self._identical:
                        name = self._older.spelling(key, tagged)
                if tagged[0] == KIND_VALUE:
                    found.append((name, tagged[TAG_SIZE:]))
                    deleted = 0
                    continue
                if every is not None and is_newest:
                    if oldest >= 0 and sequence_in(tagged) <= oldest:
                        older_versions.pop(key, None)
                    if key not in older_versions:
                        every.mark(first + at)
                if not deletions:
                    continue
                key = name
            deleted += 1
            run = add_deletion(found, run, deleted, key, -1, False)

    def written_after(
        self, sequence: int, lower: Position | None, upper: Position | None
    ) -> bytes | None:
        """A key between the positions that was written after ``sequence``, or None.

        O(1) if nothing was; else a step for each key between the positions.
        """
        lock = self._lock
        if lock.mine():
            return self._copy().written_after(sequence, lower, upper)
        if self._last_sequence <= sequence:
            return None
        beyond = None if upper is None else upper.user_key
        includes = upper is not None and upper.after
        edge = lower
        while True:
            with lock.nested, lock.guard:
                ordered = self._in_order()
                start = None if edge is None else edge.user_key
                begins = edge is None or not edge.after
                some = list(
                    islice(ordered.irange(start, beyond, (begins, includes)), LARGEST_CHUNK)
                )
                for key in some:
                    if sequence_in(ordered[key]) > sequence:
                        found: bytes = key
                        return found
            if not some:
                return None
            edge = Position(some[-1], after=True)

    def _listed(self, count: i64) -> KeyList | None:
        """The list of all keys, if there is one or this read of ``count`` keys makes it pay.

        Caller holds the lock, and the keys are in order.
        """
        if self._key_list is None and self._order is None:
            self._chunks_read += 1 + count // _LIST_PAYS_AT
            if _LIST_PAYS_AT * self._chunks_read >= len(self._sorted):
                self._key_list = KeyList(list(self._sorted))
        return self._key_list


def _rise(keys: list[bytes]) -> bool:
    """Whether each key lies after the one before it."""
    last: bytes | None = None
    for key in keys:
        if last is not None and key <= last:
            return False
        last = key
    return True
