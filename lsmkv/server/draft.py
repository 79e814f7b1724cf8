"""A draft of a long write: what the command changes, made beside the store that others use.

The command runs on a snapshot.  Its changes stay in memory, with one exception: records under a
version that the command has taken, and that no key has yet, are written to the store immediately, a
batch at a time.  So the members of a union are in the store before any key has them.  In the end
:meth:`Draft.apply` makes the other changes, which are few: the entries of keys, and the ranges to
be swept.

A command that changes or removes many elements of a key would leave many changes for the end.
:meth:`Draft.settle` then copies what is left of the key to another version.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from lsmkv.engine.db.db import DB
from lsmkv.engine.options import L0_STOP_WRITES_TRIGGER
from lsmkv.server.database import Database
from lsmkv.server.encoding import (
    FORMAT_KEY,
    GARBAGE,
    GROUP,
    KEY,
    STAGED,
    U64,
    VERSIONED,
    Entry,
    element_ranges,
    successor,
)
from lsmkv.server.garbage_queue import prefix_of
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.records import Records, TooLong, batch_of, would_stall

VERSIONS: Final = 4096
"""Versions that a draft may use."""
_BATCH: Final = 256
"""Records of a batch."""
_BATCH_BYTES: Final = 1 << 18
_PAUSE: Final = 0.01
"""Seconds until it is tried again while the store would let a write wait."""
_MOST_PAUSES: Final = 500
_MOST_IN_PLACE: Final = 8192
"""Changes that take some 20 ms at the end."""
_MOST_MOVED: Final = 8
"""Elements for each change, above which a key is not copied."""


class DraftRecords(Records):
    """The records of a draft.  Those under a new version are written before it ends."""

    def __init__(self, db: DB) -> None:
        super().__init__(db)
        self.rests = True
        self.new: set[bytes] = set()
        """The versions that the draft has taken."""
        self._unwritten: dict[bytes, bytes | None] = {}
        """Records under these prefixes that are not written yet."""
        self._bytes = 0

    def begin(self, version: int) -> None:
        """Permit records under a version.  They are swept if no key gets it."""
        number = U64.pack(version)
        self.new.add(number)
        self._unwritten[STAGED + number] = b""

    def _is_new(self, key: bytes) -> bool:
        """True if a record is written before the draft ends.  A group's is not: what it holds would
        be swept with it."""
        return key[1:9] in self.new and key[:1] != GROUP

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None.  Costs a Get."""
        if not self._is_new(key):
            return super().get(key)
        return self._unwritten[key] if key in self._unwritten else self.db.get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set a key; None deletes it."""
        if not self._is_new(key):
            super().put(key, value)
            if len(self._undo) >= _BATCH:
                self._undo.clear()  # nothing of a draft is undone
            return
        self._unwritten[key] = value
        self._bytes += len(key) + len(value or b"")
        if len(self._unwritten) >= _BATCH or self._bytes >= _BATCH_BYTES:
            self.flush()

    def scan(
        self, start: bytes, stop: bytes | None, reverse: bool = False, timed: bool = True
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries from ``start`` up to ``stop`` (or the end)."""
        if not self._is_new(start):
            return super().scan(start, stop, reverse, timed)
        self.flush()
        return self.db.iterator(start=start, stop=stop, reverse=reverse)

    def before(self, key: bytes) -> bytes | None:
        """The value of a key without the changes of the draft."""
        return self._view.get(key)

    def stored(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The entries whose keys begin with a prefix, without the changes of the draft."""
        return self.rested(self._view.iterator(start=prefix, stop=successor(prefix)))

    def changes(self) -> dict[bytes, bytes | None]:
        """Return the changes that are written when the draft ends.  They are not scanned again."""
        self._order = None
        return self.pending

    def flush(self) -> None:
        """Write the records under new versions.  Waits while flushes or compactions lag so far that
        this write would delay others."""
        batch = batch_of(self._unwritten)
        self._unwritten.clear()
        self._bytes = 0
        for _ in range(_MOST_PAUSES):
            self.look_at_time()
            if not would_stall(self.db, L0_STOP_WRITES_TRIGGER - 1):
                break
            time.sleep(_PAUSE)
        self.db.write(batch)


class Draft(Keyspace):
    """The databases as a long write sees and changes them.

    Call order: ``the command, settle`` in a thread, then ``apply`` or ``discard`` in the loop.
    """

    def __init__(self, space: Keyspace, version: int) -> None:
        """The databases of ``space``, whose changes are all written.  ``version`` is the first of
        ``VERSIONS`` that were taken for this draft."""
        self._drafted = DraftRecords(space.db)
        self._next = version
        self._end = version + VERSIONS
        self._touched: dict[tuple[int, bytes], None] = {}
        self.most_in_place = _MOST_IN_PLACE
        """Changes of elements that may be left for the end."""
        self.ended = False
        """True once :meth:`end` was called."""
        super().__init__(space.db, writable=False, records=self._drafted)
        self.events.classes = space.events.classes

    def new_version(self) -> int:
        """A version that was never used.  Raises :class:`TooLong` if there is none for a draft."""
        version = self._next
        if version == self._end:
            raise TooLong
        self._next += 1
        self._drafted.begin(version)
        return version

    def touch(self, database: Database, key: bytes) -> None:
        """Note that a key was changed."""
        self._touched[(database.index, key)] = None

    def end(self) -> None:
        """Make the command end with :class:`TooLong`, soon."""
        self.ended = True
        self._drafted.deadline = 0.0

    def close(self) -> None:
        """Release the snapshot."""
        self._drafted.close()

    def settle(self) -> None:
        """Leave few changes for the end, and write the rest.  O(changes), or O(elements)."""
        pending = self._drafted.changes()
        counts: dict[bytes, int] = {}
        for name in self._drafted.rested(list(pending)):
            if name[:1] in VERSIONED:
                counts[name[1:9]] = counts.get(name[1:9], 0) + 1
        for name in [name for name in pending if name[:1] == KEY]:
            stored, record = self._drafted.before(name), pending[name]
            old = None if stored is None else Entry.decode(stored)
            count = 0 if old is None else counts.get(U64.pack(old.version), 0)
            if old is None or count == 0:
                continue
            entry = None if record is None else Entry.decode(record)
            if entry is None or entry.version != old.version:
                self._drop_elements(old, element_ranges(old))
            elif count > self.most_in_place and entry.size <= count * _MOST_MOVED:
                self._move(old, entry)
                pending[name] = entry.encode()
        self._drafted.flush()

    def _move(self, old: Entry, entry: Entry) -> None:
        """Give an entry a new version, and copy its elements there."""
        records, pending = self._drafted, self._drafted.pending
        entry.version, entry.removed = self.new_version(), 0
        ranges = element_ranges(old)
        for before, after in zip(ranges, element_ranges(entry), strict=True):
            for name, value in records.stored(before):
                if name not in pending:
                    records.put(after + name[9:], value)
            for name, changed in records.rested(list(pending.items())):
                if changed is not None and name.startswith(before):
                    records.put(after + name[9:], changed)
        groups = [prefix for prefix in ranges if prefix[:1] == GROUP]
        self._drop_elements(old, [prefix for prefix in ranges if prefix not in groups])
        for prefix in groups:  # not swept: what they hold belongs to the copies
            for name, _ in records.stored(prefix):
                records.delete(name)

    def _drop_elements(self, old: Entry, swept: list[bytes]) -> None:
        """Forget the changes of elements that no longer belong to a key."""
        pending, number = self._drafted.pending, U64.pack(old.version)
        for name in self._drafted.rested(list(pending)):
            if name[1:9] == number and name[:1] in VERSIONED:
                del pending[name]
        for prefix in swept:
            self.garbage.add(prefix)

    def fits(self, space: Keyspace) -> bool:
        """True if the databases, and the entries that the draft changes, are unchanged."""
        if [one.id for one in space.databases] != [one.id for one in self.databases]:
            return False
        names = [name for name in self._drafted.pending if name[:1] == KEY]
        return all(space.records.get(name) == self._drafted.before(name) for name in names)

    def apply(self, space: Keyspace) -> None:
        """Make the changes.  O(those that are not written yet)."""
        records, in_place = space.records, False
        for name, value in self._drafted.pending.items():
            if name[:1] == KEY:
                space.adopt(name, value)
            elif name[:1] == GARBAGE and value is not None:
                space.garbage.add(prefix_of(value))
            elif name[:1] in VERSIONED or name == FORMAT_KEY:
                records.put(name, value)
                in_place = True
        if in_place:
            space.forget_learned()
        for number in self._drafted.new:
            records.delete(STAGED + number)
        for index, key in self._touched:
            space.touch(space.databases[index], key)
        space.events.take(self.events)

    def discard(self, space: Keyspace) -> None:
        """Queue the written records to be swept, unless the draft was applied."""
        for number in self._drafted.new:
            space.discard_staged(U64.unpack(number)[0])
