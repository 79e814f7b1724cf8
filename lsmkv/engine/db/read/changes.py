"""Changes: which keys were written after a sequence that a snapshot keeps pinned.

The commit of a transaction asks, in part under the writers' lock.  Only the memtables are asked,
and the tables that the version of that moment did not name: all other tables hold nothing newer.
No write is overlooked.  A flush or a compaction may drop an older version of a key, and a deletion
that all readers see, but neither a newest version that is a value nor a deletion after a pinned
sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsmkv.engine.db.read.level_iterator import FIRST_CHUNK, LevelIterator
from lsmkv.engine.db.read.level_reader import LevelReader
from lsmkv.engine.db.read.reader import in_memtables
from lsmkv.engine.db.read.scan import Bounds, files_in, shared_prefix_hash
from lsmkv.engine.db.tree.store import RangeDrop, ReadView, Store
from lsmkv.engine.db.tree.version import PLACE_BITS
from lsmkv.engine.env.interrupts import allow_interrupts
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.format.keys import MAX_SEQUENCE, sequence_in
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.table.block_iterator import WITH_SEQUENCES
from lsmkv.engine.table.deletion_run import run_in

if TYPE_CHECKING:
    from mypy_extensions import i64


class Changes:
    """The writes after a sequence, in the memtables and the tables added since."""

    def __init__(self, store: Store, sequence: int, tables: frozenset[int]) -> None:
        """``tables`` are the numbers of the tables of a version that was in force when ``sequence``
        was the last one, or before."""
        self._store = store
        self._sequence = sequence
        self._tables = tables

    def has(self, key: bytes) -> bool:
        """Return True if ``key`` was written.

        Cost: a lookup in the memtables, and in each new table whose range and filter allow the key.
        """
        store = self._store
        view = store.open_view()
        if any(drop.covers(store.order, key) for drop in self._drops()):
            return True
        tagged = in_memtables(view, key, MAX_SEQUENCE)
        if tagged is not None:
            return sequence_in(tagged) > self._sequence
        sort_key = store.order.of(key)
        hashes = KeyHashes(key)
        version = view.version
        try:
            # The version is asked for each table, and so is kept, with its files, until the last.
            place = version.next_candidate(0, sort_key, MAX_SEQUENCE)
            while place > 0:
                file = version.file_in(place)
                if file.number not in self._tables:
                    counters = store.counters.levels[place >> PLACE_BITS]
                    counters.tables_asked += 1
                    table = store.tables.find(file)
                    _, tag, value = table.get(key, sort_key, MAX_SEQUENCE, hashes, counters, True)
                    if value is not None:
                        return (tag >> 8) & MAX_SEQUENCE > self._sequence
                place = version.next_candidate(place, sort_key, MAX_SEQUENCE)
        except OSError as error:
            store.raise_failure(error)
        return False

    def first_in(self, ranges: list[Bounds]) -> tuple[bytes, Bounds] | Changes:
        """A key that was written in one of the ranges, with its range; or if there is none, the
        changes after this moment, which are all that is left to be asked for.

        Cost: a step for each key of the ranges in a memtable that was written to since, and for
        each of their entries in new tables whose range, or prefix filter, allows them.
        """
        store = self._store
        read = store.read_view()
        try:
            for drop in self._drops():
                for bounds in ranges:
                    if drop.overlaps(store.order, bounds.lower, bounds.upper):
                        return drop.key, bounds
            for bounds in ranges:
                found = self._written_in(read, bounds)
                if found is not None:
                    return found, bounds
            return Changes(store, read.sequence, read.view.version.numbers)
        except OSError as error:
            store.raise_failure(error)
        finally:
            read.release()

    def _drops(self) -> list[RangeDrop]:
        """The range deletions that have dropped tables since: each has written its whole range."""
        return [drop for drop in self._store.drops if drop.sequence > self._sequence]

    def _written_in(self, read: ReadView, bounds: Bounds) -> bytes | None:
        """A key of the range that was written; None if none was."""
        store = self._store
        lower, upper = bounds.lower, bounds.upper
        if lower is not None and upper is not None:
            key = lower.user_key
            if not lower.after and upper.after and store.order.is_same(key, upper.user_key):
                return key if self.has(key) else None  # which asks filters
        view = read.view
        found = view.memtable.written_after(self._sequence, lower, upper)
        if found is None and view.immutable is not None:
            found = view.immutable.written_after(self._sequence, lower, upper)
        if found is not None:
            return found
        prefix_hash = shared_prefix_hash(store, bounds)
        for level, file in files_in(view.version, store.order, bounds, MAX_SEQUENCE):
            if file.number not in self._tables:
                found = self._written_in_table(read, bounds, level, file, prefix_hash)
                if found is not None:
                    return found
        return None

    def _written_in_table(
        self, read: ReadView, bounds: Bounds, level: int, file: FileMetaData, prefix_hash: i64
    ) -> bytes | None:
        reader = LevelReader(
            self._store, read, level, [file], WITH_SEQUENCES, FIRST_CHUNK, None, prefix_hash
        )
        source = LevelIterator(reader, bounds.lower, bounds.upper)
        sequence = self._sequence
        while True:
            entries = source.next_chunk()
            if not entries:
                return None
            for some in entries:
                entry: tuple[Any, ...] = some
                run = run_in(entry)
                if run is None:
                    if entry[2] > sequence:
                        key: bytes = entry[0]
                        return key
                elif run.sequences is not None:
                    for at in range(run.first, len(run.keys)):
                        if run.sequences[at] > sequence:
                            return run.keys[at]
            allow_interrupts()
