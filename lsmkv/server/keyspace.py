"""The keys of all databases: find, make, remove and expire them.

A command's changes through this module are applied as a whole (:class:`Records`).  That includes
the number of keys, the expiry queue and the garbage queue.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

from lsmkv.engine.db.db import DB
from lsmkv.engine.errors import Error
from lsmkv.server.database import DATABASES, Counts, Database
from lsmkv.server.encoding import (
    BLOOM,
    ELEMENT,
    EXPIRES,
    FIELD_EXPIRY,
    FIELD_EXPIRY_BOUND,
    FORMAT,
    FORMAT_2,
    FORMAT_KEY,
    GROUP,
    KEY,
    STAGED,
    STREAM,
    STRING,
    U32,
    U64,
    VERSIONED,
    Entry,
    element_prefix,
    element_ranges,
    successor,
)
from lsmkv.server.events import Events
from lsmkv.server.expiry import ExpiryQueue
from lsmkv.server.field_times import FieldTimes
from lsmkv.server.garbage_queue import GarbageQueue
from lsmkv.server.numbering import Numbering
from lsmkv.server.numbers import MAX_INT
from lsmkv.server.ranks import Ranks
from lsmkv.server.read_ahead import ReadAhead
from lsmkv.server.records import Records
from lsmkv.server.removed_ranges import RemovedRanges
from lsmkv.server.resp import wrong_type
from lsmkv.server.string_value import CHUNK, LONGEST_WHOLE, MOST_AT_ONCE, NotStaged, StringValue
from lsmkv.server.usage import Usage

_SWEPT_BYTES = 1 << 20
"""Bytes of records after which a step of the sweep ends."""
_PLAIN_STRING = bytes((STRING,))


class Keyspace:
    """The databases in a store.

    Call order: as in :class:`Records`, ``keep`` or ``undo`` after each command, ``commit`` after
    each tick.  All calls come from one thread.
    """

    def __init__(self, db: DB, *, writable: bool = True, records: Records | None = None) -> None:
        """Open a store that is empty or was written by ``lsmkv serve``; otherwise raise
        ``ValueError``.  ``records`` are those of ``db``."""
        self.db = db
        self.writable = writable
        self.records = Records(db) if records is None else records
        self.databases = [Database(index) for index in range(DATABASES)]
        self._changed: dict[Database, Counts] = {}
        """Databases whose id or number of keys is not written yet, with what is written."""
        self._before: list[tuple[Database, Counts]] = []
        """Each change of a database's counts by the command, with the old ones."""
        self.watched: dict[tuple[int, bytes], set[Callable[[], None]]] = {}
        """Callbacks for when a key changes, by database and key.  Each is called once."""
        self.awaited: dict[tuple[int, bytes], int] = {}
        """Keys for which clients wait, with the number of clients."""
        self.ready: list[tuple[int, bytes]] = []
        """Awaited keys that were changed, or removed."""
        self.read_ahead = ReadAhead()
        """The entries of streams that groups read next."""
        self.removed_ranges = RemovedRanges()
        """Ranges removed from large sets."""
        self.ranks = Ranks()
        """Counts of the members of large sorted sets."""
        self.events = Events()
        """Keyspace notifications."""
        self.chunk_size = CHUNK
        self.longest_whole = LONGEST_WHOLE
        """Bytes of the longest string that is not in chunks."""
        self.most_at_once = MOST_AT_ONCE
        """Bytes of a string that are written in one step."""
        self.may_stage = False
        """True if a longer string raises :class:`NotStaged`."""
        self.staged: tuple[bytes, Entry] | None = None
        """A value whose chunks are written already, and an entry that has them."""
        self.changes = 0
        """Keys that were changed since the start."""
        self.expired = 0
        """Keys that expired and were removed since the start."""
        self.hits = 0
        self.misses = 0
        """Lookups of keys that exist, and of others, since the start; only those of reads."""
        self.evicted = 0
        """Keys that were evicted since the start."""
        self.usage: Usage | None = None
        """The use of keys, if eviction needs it."""
        self.counting = False
        """True if the running command looks up keys to read them: they are counted, and a miss is
        an event."""
        self.failing = False
        """True if the last commit failed."""
        self.reading = False
        """True while a read runs after a failed commit: expired keys and cursors stay unwritten."""
        self.frozen = False
        """True while expired keys are not removed: clients are paused."""
        self.moved = False
        """True if databases were flushed or swapped in this tick, which every read sees."""
        self.stale = False
        """True if :meth:`recover` must be called before the next command."""
        if not writable:
            self.records.look_again()
        self._open()

    def _open(self) -> None:
        """Read the store's format, or initialize an empty store with this one."""
        records, db = self.records, self.db
        written = records.get(FORMAT_KEY)
        if written is None:
            if next(db.iterator(include_value=False), None) is not None or not self.writable:
                raise ValueError(
                    f"{db.path} holds data that lsmkv serve did not write. Use --raw to serve its "
                    "keys as strings."
                )
            records.put(FORMAT_KEY, FORMAT)
        elif written not in (FORMAT, FORMAT_2):
            raise ValueError(f"{db.path} was written by an incompatible version of lsmkv serve")
        self._versions = Numbering(records, b"versions")
        self._ids = Numbering(records, b"ids", step=1)  # they have only 32 bits
        self.cursors = Numbering(records, b"cursors")
        self.expiry = ExpiryQueue(records)
        self.field_expiry = ExpiryQueue(records, FIELD_EXPIRY, FIELD_EXPIRY_BOUND)
        """The hashes whose fields expire, by the earliest times."""
        self.garbage = GarbageQueue(records)
        self._load()
        if self.writable:
            for name, _ in list(records.scan(STAGED, successor(STAGED))):
                self.discard_staged(U64.unpack_from(name, len(STAGED))[0])
            self.commit()

    @property
    def stores_cursors(self) -> bool:
        """True if cursors are records of the store."""
        return self.writable

    @property
    def evictable(self) -> bool:
        """True if keys can be evicted."""
        return True

    @property
    def garbage_ranges(self) -> int:
        """The number of ranges that are still to be swept."""
        return len(self.garbage)

    def _load(self) -> None:
        for database in self.databases:
            stored = self.records.get(database.name)
            if stored is None and self.writable:
                database.load((self._ids.take() & 0xFFFFFFFF, 0, 0, 0))
                self._changed[database] = (0, 0, 0, 0)
            elif stored is not None and not database.decode(stored) and self.writable:
                self._changed[database] = database.counts
        if any(counts[0] for counts in self._changed.values()):
            self._count_expiring()

    def _count_expiring(self) -> None:
        """Count the keys that expire, once after an older release.  O(all of them)."""
        by_id = {database.id: database for database in self._changed}
        for expires, id_, _ in self.expiry.all():
            if id_ in by_id:
                by_id[id_].expiring += 1
                by_id[id_].times += expires

    def reload(self) -> None:
        """Reload everything from the store, which is open for reading only."""
        self.records.look_again()
        self.recover()
        self._load()

    def recover(self) -> None:
        """Reload the counters and queues from the store, and forget what was learned of it.

        Raises the store's errors.
        """
        self.stale = True
        self.forget_learned()
        for numbering in (self._versions, self._ids, self.cursors):
            numbering.reload()
        self.expiry.reload()
        self.field_expiry.reload()
        self.garbage.reload()
        self.stale = False

    def forget_learned(self) -> None:
        """Forget what was learned of the elements of keys."""
        self.read_ahead.forget()
        self.removed_ranges.forget()
        self.ranks.forget()

    # A tick

    @property
    def uncertain(self) -> bool:
        """True if a request has written, or may have seen unwritten data."""
        return self.records.touched or self.moved

    def keep(self) -> None:
        """Keep the changes of a command that succeeded."""
        self.records.keep()
        self._before.clear()
        if self.events.classes:
            self.events.publish()

    def mark(self) -> tuple[int, int]:
        """A point in a command's changes.  A script takes one before each of its commands."""
        return self.records.mark(), len(self._before)

    def undo(self, mark: tuple[int, int] = (0, 0)) -> None:
        """Undo the command's changes, all or those since a mark.  It no longer has a deadline."""
        writes, resized = mark
        self.records.deadline = math.inf
        self.events.undo(writes)
        if self.records.mark() == writes and len(self._before) == resized:
            return
        self.records.undo(writes)
        while len(self._before) > resized:
            database, counts = self._before.pop()
            database.load(counts)
        try:
            self.recover()
        except (Error, OSError):
            pass  # it cannot be read now, so ``stale`` is set

    @property
    def has_changes(self) -> bool:
        return bool(self.records.pending or self._changed)

    def commit(self) -> None:
        """Write the changes of the tick as one record.

        If that fails, nothing is written and all changes are dropped.  Raises what ``DB.write``
        raises.
        """
        try:
            for database in self._changed:
                self.records.put(database.name, database.encode())
            self.records.commit()
        except Exception:
            self.failing = True
            self.roll_back()
            raise
        self._changed.clear()
        self.failing = self.moved = False

    def roll_back(self) -> None:
        """Drop the tick's changes."""
        self.records.forget()
        self.events.undo(-1)
        self._before.clear()
        self.ready.clear()
        self.moved = False
        for database, counts in self._changed.items():
            database.load(counts)
        self._changed.clear()
        try:
            self.recover()
            self._load()
        except (Error, OSError):
            pass  # it cannot be read now: the state from before the tick is in memory

    def probe(self) -> None:
        """Write a value that is already stored: the next commit shows whether the store takes
        writes."""
        self.records.put(FORMAT_KEY, self.records.get(FORMAT_KEY))
        self.records.keep()

    # Keys

    @staticmethod
    def now() -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def announce(self, kind: str, name: str, database: Database, key: bytes) -> None:
        """Note an event of a class: see ``events.py``.  Its change must be made already."""
        if self.events.classes:
            self.events.add(kind, name, database.index, key, self.records.mark())

    def miss(self, database: Database, key: bytes) -> None:
        """Note that a command has looked for a key that does not exist."""
        if self.counting:
            self.misses += 1
            self.announce("m", "keymiss", database, key)

    def note_lookup(self, found: bool) -> None:
        """Count a lookup that no other method has counted; without an event."""
        if found:
            self.hits += 1
        else:
            self.misses += 1

    def string(self, database: Database, key: bytes) -> bytes | None:
        """The value of a string; None if the key does not exist; ``WRONGTYPE`` for another kind."""
        name = database.prefix + key
        record = self.records.get(name)
        if record is None:
            self.miss(database, key)
            return None
        if record[0] == STRING:
            if self.counting:
                self.hits += 1
            if self.usage is not None:
                self.usage.note(name)
            return record[1:]
        entry = self.find(database, key, STRING)
        return None if entry is None else self.content(entry)

    def content(self, entry: Entry) -> bytes:
        """The value of a string.  O(its bytes)."""
        return self.value(entry).read(0, entry.size) if entry.version else entry.rest

    def value(self, entry: Entry) -> StringValue:
        """The value of a string, for reading and changing parts of it."""
        return StringValue(self.records, entry, self.longest_whole, self._split)

    def set_content(self, entry: Entry, value: bytes) -> None:
        """Give a string another value.  The entry must be saved afterwards."""
        for prefix in element_ranges(entry):
            self.garbage.add(prefix)
        entry.version, entry.rest = 0, b""
        if self.staged is not None and self.staged[0] is value:
            self._adopt(entry, self.staged[1])
            return
        if len(value) <= self.longest_whole:
            entry.rest = value
            return
        if self.may_stage and len(value) > self.most_at_once:
            raise NotStaged(value, None)
        changed = self.value(entry)
        changed.write(0, value)
        changed.flush()

    def _split(self, entry: Entry) -> None:
        """Prepare the entry of a string for chunks."""
        if self.may_stage and len(entry.rest) > self.most_at_once:
            raise NotStaged(entry.rest, entry)
        self._need_format_2()
        entry.version = self.new_version()
        entry.size = entry.chunks = 0
        entry.chunk_size = self.chunk_size

    def stage(self, entry: Entry) -> None:
        """Prepare an entry for chunks that no key has yet."""
        self._split(entry)
        self.records.put(STAGED + U64.pack(entry.version), b"")

    def discard_staged(self, version: int) -> None:
        """Sweep what was written under a version that no key has, unless a key has got it."""
        name = STAGED + U64.pack(version)
        if self.records.get(name) is not None:
            self.records.delete(name)
            for kind in VERSIONED:
                if kind != GROUP:  # they are not written before their key
                    self.garbage.add(kind + U64.pack(version))

    def split(self, database: Database, key: bytes, whole: Entry, staged: Entry) -> None:
        """Replace a string that is whole by the same one in chunks, without notifying anyone."""
        entry = Entry(STRING)
        entry.expires = whole.expires
        self._adopt(entry, staged)
        self.rewrite(database, key, entry)

    def _adopt(self, entry: Entry, staged: Entry) -> None:
        """Give an entry chunks that were staged."""
        entry.version, entry.size = staged.version, staged.size
        entry.chunk_size, entry.chunks = staged.chunk_size, staged.chunks
        self.records.delete(STAGED + U64.pack(staged.version))

    def find(self, database: Database, key: bytes, kind: int = 0) -> Entry | None:
        """The entry of a key; None if it does not exist or has expired.

        Raises :class:`CommandError` (``WRONGTYPE``) if it is not of the kind ``kind``.  Costs a
        Get.
        """
        record = self.records.get(database.prefix + key)
        if record is None:
            self.miss(database, key)
            return None
        entry = Entry.decode(record)
        if entry.expires and entry.expires <= self.now():
            if self.writable and not self.reading and not self.frozen:
                self._expire(database, key, entry)
            self.miss(database, key)
            return None
        if 0 < entry.fields_expire <= self.now() and self._expire_fields(database, key, entry):
            self.miss(database, key)
            return None
        if self.counting:
            self.hits += 1
        if self.usage is not None:
            self.usage.note(database.prefix + key)
        if kind and entry.kind != kind:
            raise wrong_type()
        return entry

    def find_or_make(self, database: Database, key: bytes, kind: int) -> tuple[Entry, bool]:
        """The entry of a key, and whether it is new.  A new key exists once it is saved."""
        entry = self.find(database, key, kind)
        return (self.make(kind), True) if entry is None else (entry, False)

    def make(self, kind: int) -> Entry:
        """An entry for a new key."""
        return Entry(kind, 0 if kind == STRING else self.new_version())

    def new_version(self) -> int:
        """A version that was never used, for the elements of a key or of a consumer group."""
        return self._versions.take()

    def take_versions(self, count: int) -> int:
        """Take this many versions that were never used.  Returns the first."""
        return self._versions.take(count)

    def save(self, database: Database, key: bytes, entry: Entry, new: bool = False) -> None:
        """Write the entry of a key; ``new`` if the key did not exist.

        A key without elements is removed instead, unless it is a stream.  Its elements must be
        deleted already.
        """
        if entry.size == 0 and entry.kind not in (STRING, BLOOM, STREAM):
            if not new:
                self.remove(database, key, entry, swept=True)
                self.announce("g", "del", database, key)
            return
        self.records.put(database.prefix + key, entry.encode())
        if new:
            self.resize(database, 1)
            self.announce("n", "new", database, key)
        self.touch(database, key)

    def rewrite(self, database: Database, key: bytes, entry: Entry) -> None:
        """Write the entry of a key that exists, without notifying anyone."""
        self.records.put(database.prefix + key, entry.encode())

    def set_string(self, database: Database, key: bytes, value: bytes, expires: int = 0) -> None:
        """Make a key a string, replacing any other value."""
        name = database.prefix + key
        old = self.records.get(name)
        if old is None:
            self.resize(database, 1)
            self.announce("n", "new", database, key)
        elif old[0] != STRING:
            self._drop(database, key, Entry.decode(old))
        if len(value) > self.longest_whole:
            entry = Entry(STRING)
            entry.expires = expires
            self.set_content(entry, value)
            self.records.put(name, entry.encode())
        elif expires:
            head = bytes((STRING | EXPIRES,)) + U64.pack(expires)
            self.records.put(name, head + value)
        else:
            self.records.put(name, _PLAIN_STRING + value)
        if expires:
            self._add_expiry(database, key, expires)
        if self.usage is not None:
            self.usage.note(name)
        self.touch(database, key)

    def remove(self, database: Database, key: bytes, entry: Entry, swept: bool = False) -> None:
        """Remove a key in O(1).  Its elements are swept later; ``swept`` if none are left."""
        self._drop(database, key, entry, swept)
        self.records.delete(database.prefix + key)
        self.resize(database, -1)
        self.touch(database, key)

    def clear(self, database: Database, key: bytes) -> bool:
        """Remove a key if it exists.  Returns whether it did.

        Later lookups of the command do not count: it has read what it reads.
        """
        self.counting = False
        entry = self.find(database, key)
        if entry is None:
            return False
        self.remove(database, key, entry)
        return True

    def replace(self, database: Database, key: bytes, entry: Entry) -> None:
        """Save an entry, replacing any other value of the key."""
        self.clear(database, key)
        self._note_times(database, key, entry)
        self.save(database, key, entry, new=True)

    def _note_times(self, database: Database, key: bytes, entry: Entry) -> None:
        """Note when a key that gets this entry expires."""
        if entry.expires:
            self._add_expiry(database, key, entry.expires)
        if entry.fields_expire:
            self.field_expiry.add(entry.fields_expire, database.id, key)

    def adopt(self, name: bytes, record: bytes | None) -> None:
        """Write the entry of a key, or delete it, and nothing of its elements.  ``name`` is that of
        its record."""
        database = next(one for one in self.databases if name.startswith(one.prefix))
        key = name[len(database.prefix) :]
        stored = self.records.get(name)
        if stored is not None:
            self._drop(database, key, Entry.decode(stored), swept=True)
            self.resize(database, -1)
        if record is not None:
            self._note_times(database, key, Entry.decode(record))
            self.resize(database, 1)
        self.records.put(name, record)

    def move(
        self, database: Database, key: bytes, target: Database, new: bytes, entry: Entry
    ) -> None:
        """Give a value, with its elements, another key, replacing any other value of that."""
        self.remove(database, key, entry, swept=True)
        self.replace(target, new, entry)

    def set_expiry(self, database: Database, key: bytes, entry: Entry, expires: int) -> None:
        """Set a key's expiry; 0 removes it."""
        if entry.expires:
            self._remove_expiry(database, key, entry.expires)
        entry.expires = expires
        if expires:
            self._add_expiry(database, key, expires)
        self.rewrite(database, key, entry)
        self.touch(database, key)

    def _add_expiry(self, database: Database, key: bytes, expires: int) -> None:
        self.expiry.add(expires, database.id, key)
        self._count_again(database)
        database.expiring += 1
        database.times += expires

    def _remove_expiry(self, database: Database, key: bytes, expires: int) -> None:
        self.expiry.remove(expires, database.id, key)
        self._discount(database, expires)

    def _discount(self, database: Database, expires: int) -> None:
        """Uncount a key that no longer expires.  Never below 0: an older release may have
        written."""
        self._count_again(database)
        database.expiring = max(0, database.expiring - 1)
        database.times = max(0, database.times - expires)

    def note_field_times(self, database: Database, key: bytes, entry: Entry) -> None:
        """Note the earliest time at which a field of a hash expires, after these have changed.  The
        entry must be saved afterwards."""
        if entry.fields_expire:
            self.field_expiry.remove(entry.fields_expire, database.id, key)
        entry.fields_expire = FieldTimes(self.records, entry).earliest()
        if entry.fields_expire:
            self.field_expiry.add(entry.fields_expire, database.id, key)
            self._need_format_2()

    def _need_format_2(self) -> None:
        """Mark the store as one that older releases cannot read."""
        if self.records.get(FORMAT_KEY) != FORMAT_2:
            self.records.put(FORMAT_KEY, FORMAT_2)

    def _drop(self, database: Database, key: bytes, entry: Entry, swept: bool = False) -> None:
        """Remove the records of an entry other than its own."""
        if entry.expires:
            self._remove_expiry(database, key, entry.expires)
        if entry.fields_expire:
            self.field_expiry.remove(entry.fields_expire, database.id, key)
        if not swept:
            for prefix in element_ranges(entry):
                self.garbage.add(prefix)

    def resize(self, database: Database, change: int) -> None:
        """Add to the number of keys.  The new number is part of the tick's record."""
        self._count_again(database)
        database.size += change

    def _count_again(self, database: Database) -> None:
        """Note the counts of a database before they change."""
        before = database.counts
        self._before.append((database, before))
        if database not in self._changed:
            self._changed[database] = before

    def count(self, database: Database) -> int:
        """The number of keys, including expired ones that are not removed yet."""
        if self._changed:
            self.records.touched = True
        return database.size

    def touch(self, database: Database, key: bytes) -> None:
        """Notify the clients that watch or await a key that it was changed."""
        self.changes += 1
        if self.watched:
            for call in self.watched.pop((database.index, key), ()):
                call()
        self.wake(database, key)

    def wake(self, database: Database, key: bytes) -> None:
        """Make the clients that await a key look at it again."""
        if self.awaited and (database.index, key) in self.awaited:
            self.ready.append((database.index, key))

    def keys(
        self, database: Database, start: bytes = b"", stop: bytes | None = None
    ) -> Iterator[tuple[bytes, Entry]]:
        """The keys that have not expired, in order from ``start`` on, with their entries."""
        prefix = database.prefix
        end = successor(prefix) if stop is None else prefix + stop
        now = self.now()
        for name, record in self.records.scan(prefix + start, end):
            entry = Entry.decode(record)
            if not entry.expires or entry.expires > now:
                yield name[len(prefix) :], entry

    # All keys at once

    def flush(self, database: Database) -> None:
        """Remove all keys of a database in O(1).  They are swept later."""
        for index, key in {*self.watched, *self.awaited}:
            if index == database.index and self.find(database, key) is not None:
                self.touch(database, key)
        if database.size == 0:
            return
        self.moved = True
        self.garbage.add(database.prefix)
        self.changes += database.size
        self._count_again(database)
        database.load((self._ids.take() & 0xFFFFFFFF, 0, 0, 0))

    def swap(self, one: Database, other: Database) -> None:
        """Exchange the keys of two databases.  O(1), plus O(keys watched or awaited)."""
        if one is other:
            return
        changed = [
            (index, key)
            for index, key in {*self.watched, *self.awaited}
            if index in (one.index, other.index)
            and (self.find(one, key) is not None or self.find(other, key) is not None)
        ]
        self.moved = True
        self._count_again(one)
        self._count_again(other)
        first = one.counts
        one.load(other.counts)
        other.load(first)
        for index, key in changed:
            self.touch(self.databases[index], key)

    # Background work

    def expire_due(self, limit: int) -> int:
        """Remove up to ``limit`` expired keys.  Returns how many entries of the queue that used.

        Costs O(that number), not O(keys).  It removes at most as many fields of each hash.
        """
        now = self.now()
        by_id = {database.id: database for database in self.databases}
        due = self.expiry.take_due(now, limit)
        for expires, id_, key in due:
            database = by_id.get(id_)
            entry = None if database is None else self._stored(database, key)
            if database is not None and entry is not None and entry.expires == expires:
                self._discount(database, expires)
                entry.expires = 0  # its place in the queue is taken already
                self._expire(database, key, entry)
        hashes = self.field_expiry.take_due(now, limit)
        for expires, id_, key in hashes:
            database = by_id.get(id_)
            entry = None if database is None else self._stored(database, key)
            if database is not None and entry is not None and entry.fields_expire == expires:
                self._expire_fields(database, key, entry, limit)
        return max(len(due), len(hashes))

    def _stored(self, database: Database, key: bytes) -> Entry | None:
        """The entry of a key, also of one that has expired."""
        record = self.records.get(database.prefix + key)
        return None if record is None else Entry.decode(record)

    def _expire_fields(
        self, database: Database, key: bytes, entry: Entry, limit: int = MAX_INT
    ) -> bool:
        """Remove the fields of a hash whose time has come.  Returns whether no field is left, and
        so the hash is removed."""
        if not self.writable or self.reading or self.frozen:
            return False
        times, start = FieldTimes(self.records, entry), element_prefix(entry)
        for field in times.due(self.now(), limit):
            times.set(field, 0)
            self.records.delete(start + field)
            entry.size -= 1
            entry.removed += 1
        self.note_field_times(database, key, entry)
        self.announce("h", "hexpired", database, key)
        self.save(database, key, entry)
        return entry.size == 0

    def _expire(self, database: Database, key: bytes, entry: Entry) -> None:
        self.remove(database, key, entry)
        self.expired += 1
        self.announce("x", "expired", database, key)

    def sweep(self, limit: int) -> bool:
        """Delete up to ``limit`` records that were removed.  Returns whether there are more."""
        entry_at = self.garbage.first()
        if entry_at is None:
            return False
        prefix, position = entry_at
        stop = successor(prefix)
        size = 0
        for count, (name, record) in enumerate(self.records.scan(position or prefix, stop)):
            if count == limit or size > _SWEPT_BYTES:
                self.garbage.move(prefix, name)
                return True
            size += len(record)
            self.records.delete(name)
            if prefix[:1] == KEY:
                entry = Entry.decode(record)
                key = name[len(prefix) :]
                if entry.expires:
                    self.expiry.remove(entry.expires, U32.unpack(prefix[1:])[0], key)
                if entry.fields_expire:
                    self.field_expiry.remove(entry.fields_expire, U32.unpack(prefix[1:])[0], key)
                for elements in element_ranges(entry):
                    self.garbage.add(elements)
            elif prefix[:1] == GROUP:
                self.garbage.add(ELEMENT + record[:8])  # what a consumer group holds
        self.garbage.drop_first()
        return self.garbage.first() is not None
