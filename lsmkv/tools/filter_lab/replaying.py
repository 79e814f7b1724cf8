"""Replays Gets under other filter settings, exactly as the store would do them.

A replay goes through the tables of the store's version in the order in which Gets ask them: level 0
from the newest on, then level after level.  Of each table it reads every data block once, feeds the
user keys to the real filter builders, one for each setting, and then asks the filters for the Gets
that reach the table.  A Get that has found its key, or a deletion, asks no further table.

The counts are those of a store whose tables were built with the setting, without a block cache: the
filters do not change the positions of data blocks, since they come after them.  A setting that
spreads its bits over the levels uses their current sizes.  Memory: the filters of one table and the
hashes or user keys that they are made of, and a few bytes for each Get and setting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.db.db import DB
from lsmkv.engine.db.tree.store import Store, View
from lsmkv.engine.db.tree.version import PLACE_BITS
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.format.keys import KIND_VALUE, MAX_SEQUENCE, user_key_of
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.table.filter_block import TableFilters
from lsmkv.engine.table.reader import Table
from lsmkv.engine.util.comparator import equal_means_identical
from lsmkv.engine.util.progress import Progress
from lsmkv.tools.filter_lab.reads import AS_STORED, Replay, SettingReads, TableReads
from lsmkv.tools.filter_lab.settings import FilterSetting
from lsmkv.tools.filter_lab.trial import TrialFilter, filter_size

_REPORT_EVERY = 256  # blocks


def replay(
    db: DB,
    keys: Sequence[bytes],
    settings: Sequence[FilterSetting],
    progress: Progress = lambda _done, _total, _phase: None,
) -> Replay:
    """Look ``keys`` up under each setting, in the store as it is now.

    Nothing is written, no counter is increased and no block enters the block cache.  ``progress``
    is called with bytes, after each table and now and then within one.  Raises
    :class:`~lsmkv.CorruptionError` for a damaged table, with its path and offset, and
    :class:`~lsmkv.IOError`.  Cost: every data block is read once, and for each setting every key is
    hashed and added to a filter.

    >>> import lsmkv
    >>> from lsmkv.filter_lab import parse_settings
    >>> with lsmkv.DB(":memory:") as db:
    ...     db.put(b"a key", b"value")
    ...     db.flush()
    ...     found = replay(db, [b"a key"] * 3, parse_settings("none block:10"))
    >>> [one.blocks_read for one in found.results]
    [3, 3, 3]
    """
    store = db._open_store()
    read = store.read_view()  # pins the version, whose files stay until it is released
    try:
        return _Run(store, read.view, keys, settings, progress).run()
    except OSError as error:
        store.raise_failure(error)
    finally:
        read.release()


class _Lookup(NamedTuple):
    """A Get that reaches a table: its number among the Gets, and where its key would be."""

    get: int
    block: int
    """The data block's number."""


class _Visit(NamedTuple):
    """The Gets that reach one table, under one setting."""

    table: Table
    reads: TableReads
    lookups: list[_Lookup]
    kinds: dict[int, int]
    """The kind of the version that a Get finds in the table, by its number; no entry for those
    that find none."""


class _Run:
    """One replay."""

    def __init__(
        self,
        store: Store,
        view: View,
        keys: Sequence[bytes],
        settings: Sequence[FilterSetting],
        progress: Progress,
    ) -> None:
        self._store = store
        self._view = view
        self._keys = keys
        self._settings = settings
        self._progress = progress
        self._done = 0  # bytes of the tables that are finished
        self._results = [SettingReads(AS_STORED), *(SettingReads(str(one)) for one in settings)]
        self._answered = [bytearray(len(keys)) for _ in self._results]
        self._found = 0
        self._entries = 0

    def run(self) -> Replay:
        """Table after table, in the order in which Gets ask them."""
        version = self._view.version
        from_memory, reaching = self._distribute()
        newest = len(version.levels[0])
        # All that a Get asks one table of, as the builders of tables see it.
        runs = [*(file.size for file in version.levels[0]), *version.sizes[1:]]
        for level, files in enumerate(version.levels):
            for index, file in enumerate(files):
                place = (level << PLACE_BITS) + index + 1
                own = index if level == 0 else newest + level - 1
                trials = [
                    TrialFilter(one.policy(level, runs, own), one.layout) for one in self._settings
                ]
                self._replay_in(level, file, trials, reaching.pop(place, []))
                self._done += file.size
                self._progress(self._done, version.size, "")
        order = self._store.comparator.user_comparator
        return Replay(
            len(self._keys),
            from_memory,
            self._found,
            self._entries,
            self._results,
            None if equal_means_identical(order) else order.name,
        )

    def _distribute(self) -> tuple[int, dict[int, list[int]]]:
        """The number of Gets that memtables answer, and the others by the places of the files
        whose ranges cover their keys."""
        view = self._view
        version = view.version
        from_memory = 0
        reaching: dict[int, list[int]] = defaultdict(list)
        for get, key in enumerate(self._keys):
            tagged = view.memtable.get(key, MAX_SEQUENCE)
            if tagged is None and view.immutable is not None:
                tagged = view.immutable.get(key, MAX_SEQUENCE)
            if tagged is not None:
                from_memory += 1
                self._found += tagged[0] == KIND_VALUE
                continue
            sort_key = self._store.order.of(key)
            place = version.next_candidate(0, sort_key, MAX_SEQUENCE)
            while place > 0:
                reaching[place].append(get)
                place = version.next_candidate(place, sort_key, MAX_SEQUENCE)
        return from_memory, reaching

    def _replay_in(
        self, level: int, file: FileMetaData, trials: list[TrialFilter], gets: list[int]
    ) -> None:
        table = self._store.tables.peek(file)
        lookups = [_Lookup(get, self._block_for(table, self._keys[get])) for get in gets]
        kinds = self._read_blocks(table, trials, lookups)
        visit = _Visit(table, TableReads(level, file.number), lookups, kinds)
        self._ask(0, visit, table.filters if table.has_filter else None)
        for at, trial in enumerate(trials, 1):
            visit = visit._replace(reads=TableReads(level, file.number))
            self._ask(at, visit, trial.finish(table))

    def _block_for(self, table: Table, key: bytes) -> int:
        return table.index.block_for(self._store.order.of(key), MAX_SEQUENCE)

    def _read_blocks(
        self, table: Table, trials: list[TrialFilter], lookups: list[_Lookup]
    ) -> dict[int, int]:
        """Feed every data block to the trial filters; the kinds of the versions that Gets find in
        the table, by the Gets' numbers."""
        order = self._store.order
        by_block: dict[int, list[int]] = defaultdict(list)
        for lookup in lookups:
            by_block[lookup.block].append(lookup.get)
        counters = ReadCounters()
        kinds: dict[int, int] = {}
        for number in range(table.num_blocks):
            block = table.read(number, counters)
            try:
                user_keys = [user_key_of(key) for key in block.entries()[0]]
                for get in by_block.get(number, ()):
                    tag, value = block.get(self._keys[get], MAX_SEQUENCE, order)
                    if value is not None:
                        kinds[get] = tag & 0xFF
                for trial in trials:
                    trial.add_block(table.index.offsets[number], user_keys)
            except CorruptionError as error:
                raise table.damaged(error, number) from None
            self._entries += len(user_keys)
            if number % _REPORT_EVERY == 0:
                done = self._done + table.index.offsets[number]
                self._progress(done, self._view.version.size, "")
        return kinds

    def _ask(self, at: int, visit: _Visit, filters: TableFilters | None) -> None:
        """The Gets that reach a table under one setting: index, filter, then the data block.

        As in :meth:`~lsmkv.engine.table.reader.Table.get`, a filter of 64-bit hashes for the whole
        table is asked before the index.
        """
        table, reads, lookups, kinds = visit
        answered = self._answered[at]
        filter_first = filters is not None and filters.need_no_block
        counters = ReadCounters()
        for get, block in lookups:
            if answered[get]:
                continue
            reads.tables_asked += 1
            if block == table.num_blocks and not filter_first:
                continue
            at_block = 0 if filter_first else block
            if filters is not None and not filters.may_match(
                at_block, KeyHashes(self._keys[get]), counters
            ):
                continue
            if block == table.num_blocks:
                continue
            reads.blocks_read += 1
            reads.bytes_read += table.index.sizes[block]
            if get in kinds:
                answered[get] = 1
                self._found += at == 0 and kinds[get] == KIND_VALUE
            else:
                reads.wasted_reads += 1
        reads.filters_asked = counters.filters_asked
        reads.filter_negatives = counters.filter_negatives
        reads.false_positives = 0 if filters is None else reads.wasted_reads
        reads.filter_bytes = 0 if filters is None else filter_size(filters)
        self._results[at].tables.append(reads)
