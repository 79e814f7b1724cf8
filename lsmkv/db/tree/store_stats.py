"""The statistics of an open store: its counters at one moment, as ``DB.stats`` returns them.

Any thread may call it; it takes the current view, and no lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsmkv.db.tree.store import Store, View
from lsmkv.db.tree.stored_codec import in_stored_codec
from lsmkv.db.tree.version import total_size
from lsmkv.env.local import LocalEnv
from lsmkv.format.version_edit import FileMetaData
from lsmkv.util.compression import codec_name

if TYPE_CHECKING:
    from lsmkv.stats import Stats

_MOST_RATED = 32  # tables of a level whose filters are looked at for a rate


def collect_stats(store: Store, mapped_log: bool) -> Stats:
    """The counters as they are now; ``mapped_log`` is one of them."""
    from lsmkv.stats import LevelStats, Stats  # noqa: PLC0415 - dataclasses comes with it

    view = store.open_view()
    counters = store.counters
    options = store.options
    # Elsewhere, each read of a table may be a request to an object store.
    if options.read_only and type(options.env) in (type(None), LocalEnv):
        options = in_stored_codec(options, store.directory, view.version.numbers)
    levels: list[LevelStats] = []
    for level in range(len(view.version.levels)):
        files = view.version.levels[level]
        reads = counters.reads[level]
        flushed = counters.flushes_into[level]
        into = counters.compactions_into[level]
        levels.append(
            LevelStats(
                level=level,
                files=len(files),
                bytes=total_size(files),
                tables_asked=reads.tables_asked,
                filters_asked=reads.filters_asked,
                filter_negatives=reads.filter_negatives,
                filter_positives=reads.filter_positives,
                filter_false_positives=reads.filter_false_positives,
                blocks_read=reads.blocks_read,
                bytes_read=reads.bytes_read,
                block_cache_hits=reads.block_cache_hits,
                flushes=flushed.runs,
                flush_seconds=flushed.seconds,
                flush_bytes=flushed.bytes_written,
                compactions=into.runs,
                compaction_seconds=into.seconds,
                compaction_bytes_read=into.bytes_read,
                compaction_bytes_written=into.bytes_written,
                expected_rate=_expected_rate(store, files),
            )
        )
    return Stats(
        levels=tuple(levels),
        gets=counters.gets,
        gets_found=counters.gets_found,
        gets_from_memory=counters.gets_from_memory,
        gets_from_rows=counters.gets_from_rows,
        iterators=counters.iterators,
        tables_opened=counters.tables_opened,
        metadata_reads=counters.metadata_reads,
        metadata_bytes_read=counters.metadata_bytes_read,
        block_cache_bytes=block_cache_bytes(store),
        memtable_bytes=memtable_bytes(view),
        writes=counters.writes,
        operations=counters.operations,
        user_bytes=counters.user_bytes,
        mapped_log=mapped_log,
        compression=codec_name(options.compression),
        log_bytes=counters.log_bytes,
        log_writes=counters.log_writes,
        log_syncs=counters.log_syncs,
        slowdowns=counters.slowdowns,
        stalls=counters.stalls,
        stall_seconds=counters.stall_seconds,
        flushes=counters.flushes,
        flush_bytes=counters.flush_bytes,
        compactions=counters.compactions,
        trivial_moves=counters.trivial_moves,
        seek_compactions=counters.seek_compactions,
        compaction_bytes_read=counters.compaction_bytes_read,
        compaction_bytes_written=counters.compaction_bytes_written,
    )


def _expected_rate(store: Store, files: list[FileMetaData]) -> float | None:
    """The mean rate of false positives that the filters of open tables promise, by size.

    Some tables of many stand for all.  Nothing is opened, and a table computes its rate once.
    """
    total = 0.0
    weight = 0
    for file in files[:: len(files) // _MOST_RATED + 1]:
        table = store.tables.opened(file.number)
        rate = None if table is None else table.filters.expected_rate()
        if rate is not None:
            total += file.size * rate
            weight += file.size
    return total / weight if weight else None


def block_cache_bytes(store: Store) -> int:
    """What the block cache holds, in bytes."""
    cache = store.options.block_cache
    return 0 if cache is None else cache.usage


def memtable_bytes(view: View) -> int:
    """What the memtables take, in bytes."""
    immutable = view.immutable
    return view.memtable.usage + (0 if immutable is None else immutable.usage)
