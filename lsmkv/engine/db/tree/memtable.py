"""The memtable: recent writes in memory, a :class:`~lsmkv.engine.db.tree.sorted_dict.SortedDict`
from user key to newest version.

A commit adds operations, Gets and scans read, and a flush takes everything, once the memtable is
immutable.  A deletion is a version like a value: it hides what tables hold.  A version is kept as a
tagged value (:mod:`lsmkv.engine.format.keys`).  This is where it can be::

    add --> applying            the batch that is being added
       |
       +--> buffer              before the first read: two lists, as written
       |      |
       |      | the first read
       |      v
       +--> newest              the newest version of each key: the SortedDict
              |
              | a newer version comes, while a snapshot or an iterator may see this one
              v
            older               the versions before: for each key a tuple

- ``applying`` is for calls in the middle of an ``add``: nested ones, and Gets of other threads.
- The buffer (:class:`~lsmkv.engine.db.tree.write_buffer.WriteBuffer`) is a fast path: a program
  that loads a store reads nothing, and its writes need not even enter a dict.
- A Get is one lookup in ``newest``, and, if it reads as of a snapshot, one in ``older``
  (:class:`~lsmkv.engine.db.tree.older_versions.OlderVersions`).
- The keys of ``newest`` are put in order when a scan asks for that
  (:class:`~lsmkv.engine.db.tree.memtable_scan.MemTableScan`).

A version enters its next place before it leaves the one before, so that a Get needs no lock.  Most
other things happen under the store's lock: see :class:`MemTable`.

Left out: a skip list, as LevelDB has it.  In Python each of its nodes would be an object that the
garbage collector visits; a tagged value is one ``bytes``, which it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from librt.strings import BytesWriter

from lsmkv.engine.db.tree.memtable_scan import MemTableScan
from lsmkv.engine.db.tree.older_versions import OlderVersions
from lsmkv.engine.db.tree.sorted_dict import SortedDict
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.db.tree.write_buffer import WriteBuffer
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.format.keys import (
    KIND_VALUE,
    MAX_SEQUENCE,
    TAG_SIZE,
    Entry,
    entry_overhead,
    sequence_in,
    tagged_operation,
)
from lsmkv.engine.util.comparator import Comparator, equal_means_identical, sort_key

if TYPE_CHECKING:
    from mypy_extensions import i64

_FIRST_CHUNK: Final = 4
LARGEST_CHUNK: Final = 1024
"""A scan reads at most this many keys while it holds the lock."""
_BUFFER_LIMIT: Final = 4 * 1024 * 1024
"""Once a memtable exceeds this many bytes, the next write moves the buffered writes and its own
into the dict.  So the first read has at most this much, and one batch, to move: 5 ms for 33,000
puts of 100 bytes, 20 ms for 130,000 deletions; 15 and 65 ms where this is not compiled."""
_COLUMN_CHUNK: Final = 512


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
        self._identical = equal_means_identical(comparator)
        self._order = sort_key(comparator)
        self._buffer: WriteBuffer | None = WriteBuffer() if self._identical else None
        """The writes before the first read; None from that on."""
        self._sorted = SortedDict(comparator)
        """The newest version of each key that is not in the buffer."""
        self._newest: dict[bytes, bytes] = self._sorted.content
        self._older = OlderVersions()
        self._scan = MemTableScan(self._sorted, self._older)
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
        self._sorted.note(operations)
        newest = self._newest
        total: i64 = 0
        overhead: i64 = 0
        at: i64 = sequence
        writer = self._writer
        for key, value in operations:
            key_size: i64 = len(key)
            size: i64 = 0 if value is None else len(value)
            tagged = tagged_operation(writer, at, value)
            total += key_size + size
            overhead += entry_overhead(key_size, size)
            if newest_pinned >= 0 or self._older.by_key or not self._identical:
                self._keep_older(key, newest_pinned, at, pinned)
            at += 1
            newest[key] = tagged
        self.usage += total + overhead
        return total

    def get(self, key: bytes, sequence: int) -> bytes | None:
        """The tagged value of the newest version of ``key`` at or before ``sequence``, or None.

        ``MAX_SEQUENCE`` asks for the newest of all, after the whole batch that is being added.
        O(1), and O(log n) calls of the comparator where that is the user's.
        """
        if self.applying is not None and sequence == MAX_SEQUENCE:
            self._wait_for_batch()
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
            if sequence == MAX_SEQUENCE:
                return self._newest.get(key)
            return self._version(key, sequence)
        return self._get_equal(key, sequence)

    def _version(self, key: bytes, sequence: int) -> bytes | None:
        """The newest tagged value of exactly this key at or before ``sequence``."""
        tagged = self._newest.get(key)
        if tagged is not None and sequence_in(tagged) > sequence:
            older = self._older.entry(key, sequence)
            return None if older is None else older[1]
        return tagged

    def columns(self) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """All versions in order, as lists of user keys and of tagged values.  The memtable is
        already immutable.

        All versions of a key are in one chunk, the newest first.  Keys are sorted outside the lock
        if no scan has put them in order yet.
        """
        lock = self._lock
        with lock.nested, lock.guard:
            keys = self._sorted.every()
            buffer = self._buffer
        newest = self._newest
        # A read may enter the buffer now.  Its lists no longer change.
        if buffer is not None and buffer.keys:
            tagged = buffer.tagged_values(BytesWriter())
            if self._order is None and _rise(buffer.keys):  # for example time-prefixed keys
                yield buffer.keys, tagged
                return
            newest = dict(zip(buffer.keys, tagged, strict=True))
        if keys is None:
            keys = sorted(newest, key=self._order)
        for at in range(0, len(keys), _COLUMN_CHUNK):
            some = keys[at : at + _COLUMN_CHUNK]
            yield self._older.with_newest(some, [newest[key] for key in some])

    def _wait_for_batch(self) -> None:
        """Wait until the batch that is being added is visible.  A nested call, which may have
        interrupted that, does not."""
        lock = self._lock
        if not lock.mine():
            with lock.nested, lock.guard:
                pass

    # Beyond the tour: the order of the keys, older versions, and what needs all of them

    def _keep_older(
        self, key: bytes, newest_pinned: int, sequence: int, pinned: list[int] | None
    ) -> None:
        """Keep the versions of ``key`` that readers may ask for, before one at ``sequence``
        replaces them.

        An equal key of other bytes is removed, and its versions move to ``key``.  A version that a
        reader may ask for is in its new place before it leaves its old one, and an interrupted call
        can be done again.
        """
        entry = self._newest_entry(key)
        if entry is None:
            return
        found, newest = entry
        self._older.keep(key, found, newest, newest_pinned, sequence, pinned)
        if found != key:
            self._newest[key] = newest
            self._sorted.remove(found)
            self._older.by_key.pop(found, None)

    def _newest_entry(self, key: bytes) -> Entry | None:
        """The newest version of ``key``, with the bytes in which the key was written."""
        found = key if self._identical else self._sorted.equal_to(key)
        newest = None if found is None else self._newest.get(found)
        return None if found is None or newest is None else (found, newest)

    @property
    def keeps_older(self) -> bool:
        """True if a key may have older versions than its newest one."""
        return bool(self._older.by_key)

    @property
    def empty(self) -> bool:
        """True if nothing was ever added."""
        buffer = self._buffer
        return (buffer is None or not buffer.keys) and not self._newest and self.applying is None

    def __len__(self) -> int:
        """The number of user keys, deleted ones included."""
        lock = self._lock
        if lock.mine():
            return len(self._copy())
        with lock.nested, lock.guard:
            self._drain_buffer()
            return len(self._newest)

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
            entry = self._newest_entry(key)
            return [] if entry is None else self._older.with_newest([entry[0]], [entry[1]])[1]

    def entries(self) -> Iterator[list[Entry]]:
        """All versions in order, in lists that grow.  The lock is held for one list at a time; a
        write that comes in between is in a later list, whole, or is missing.  No iterator over the
        sorted keys stays open while the lock is free."""
        start: Position | None = None
        count: i64 = _FIRST_CHUNK
        while True:
            source = self._copy() if self._lock.mine() else self
            lock = source._lock
            with lock.nested, lock.guard:
                source._drain_buffer()
                keys = source._sorted.beyond(start, count, False)
                newest = [source._newest[key] for key in keys]
                user_keys, tagged = source._older.with_newest(keys, newest)
            if not keys:
                return
            yield list(zip(user_keys, tagged, strict=True))
            start = Position(keys[len(keys) - 1], after=True)
            count = min(2 * count, LARGEST_CHUNK)

    # Keys that are equal though their bytes differ, in the user's order

    def _get_equal(self, key: bytes, sequence: int) -> bytes | None:
        """:meth:`get` in a user's order, in which other bytes may be the same key."""
        lock = self._lock
        if lock.mine():
            return self._copy().get(key, sequence)
        with lock.nested, lock.guard:
            found = self._sorted.equal_to(key)
            return None if found is None else self._version(found, sequence)

    # Nested calls, and checks

    def _copy(self) -> MemTable:
        """A memtable with the same versions, the batch that is being added among them.

        For nested calls.  Whatever the interrupted call is doing here, each version is in one of
        the places that are looked at, or in several.  O(n log n).
        """
        versions: dict[int, Entry] = {}
        for key, tagged in list(self._newest.items()):
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
                versions[at] = (key, tagged_operation(writer, at, value))
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
            self._drain_buffer()
            self._sorted.check()
            self._older.check(self._newest)

    # Fast paths: writes that wait for the first read

    def _drain_buffer(self) -> None:
        """Put the buffered writes where Gets find them; later writes go there directly.

        Caller holds the lock.  The buffer is dropped last, so that a Get finds each write in one of
        the two places.  An interrupted call can be done again.
        """
        buffer = self._buffer
        if buffer is not None and buffer.keys:
            # A key without a value is the last one, of an interrupted write that is done again.
            tagged = buffer.tagged_values(self._writer)
            self._newest.update(zip(buffer.keys, tagged, strict=False))
            self._buffer = None

    # Scans

    def visible(
        self,
        edge: Position | None,
        count: i64,
        sequence: int,
        back: bool,
        found: list[Any],
        deletions: bool = True,
    ) -> bytes | None:
        """Read the next ``count`` keys beyond ``edge``, and append to ``found``, in ascending
        order, the versions that are visible at ``sequence``: ``(key, value)``, and with
        ``deletions`` ``(key, None)``, or a :class:`~lsmkv.engine.table.deletion_run.DeletionRun`
        for many in a row.

        Returns the key where the next call continues, or None if no key is left.  The caller keeps
        ``sequence`` pinned.
        """
        lock = self._lock
        if lock.mine():
            return self._copy().visible(edge, count, sequence, back, found, deletions)
        with lock.nested, lock.guard:
            self._drain_buffer()
            bound: i64 = sequence if sequence < self._last_sequence else -1
            return self._scan.read(edge, count, bound, back, deletions, found)

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
        edge = lower
        while True:
            with lock.nested, lock.guard:
                self._drain_buffer()
                some = self._sorted.beyond(edge, LARGEST_CHUNK, False, upper)
                for key in some:
                    if sequence_in(self._newest[key]) > sequence:
                        return key
            if not some:
                return None
            edge = Position(some[-1], after=True)


def _rise(keys: list[bytes]) -> bool:
    """Return True if each key lies after the one before it."""
    last: bytes | None = None
    for key in keys:
        if last is not None and key <= last:
            return False
        last = key
    return True
