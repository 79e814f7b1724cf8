"""Information about an open store: properties, approximate sizes, stats and tables.

The handle's methods of these names call it, in any thread.  It takes the current view; only
:func:`written_keys` takes the store's lock, for a pin.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from lsmkv.db.merge import merge
from lsmkv.db.store import Store, View
from lsmkv.db.stored_codec import in_stored_codec
from lsmkv.db.version import total_size
from lsmkv.env.local import LocalEnv
from lsmkv.format.filenames import old_table_name, table_name
from lsmkv.format.version_edit import FileMetaData
from lsmkv.util.compression import codec_name
from lsmkv.util.introspection import described

if TYPE_CHECKING:
    from lsmkv.stats import LevelStats, Stats

_FILES_AT_LEVEL = re.compile(r"num-files-at-level([0-9]{1,9})", re.ASCII)
_PREFIX = "leveldb."
_MB = 1048576.0
_MOST_RATED = 32  # tables of a level whose filters are looked at for a rate
_READAHEAD = 64 * 1024  # bytes of a table that are read at once
_CHUNK = 32 * 1024  # bytes of blocks that are decoded at a time


@described
class TableInfo(NamedTuple):
    """One table of a store: ``db.tables()``.  Plain data: it raises nothing and costs nothing.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:") as db:
    ...     db.put(b"k", b"v")
    ...     db.flush()
    ...     db.tables()[0].name
    '000006.ldb'
    """

    level: int
    number: int
    name: str
    """The name of its file in the store's directory."""
    size: int
    """Bytes."""
    smallest: bytes
    """The first user key."""
    largest: bytes
    """The last user key."""


def get_property(store: Store, name: str) -> str | None:
    """LevelDB's properties by their names; None for any other name."""
    if not name.startswith(_PREFIX):
        return None
    view = store.open_view()
    name = name[len(_PREFIX) :]
    at_level = _FILES_AT_LEVEL.fullmatch(name)
    if at_level is not None:
        level = int(at_level[1])
        levels = view.version.levels
        return str(len(levels[level])) if level < len(levels) else None
    if name == "stats":
        return _stats_table(store, view)
    if name == "sstables":
        return str(view.version)
    if name == "approximate-memory-usage":
        return str(_cache_bytes(store) + _memtable_bytes(view))
    return None


def approximate_size(store: Store, start: bytes, stop: bytes) -> int:
    """Bytes on disk between two user keys; 0 if ``stop`` does not lie after ``start``."""
    view = store.open_view()
    return max(0, _offset_of(store, view, stop) - _offset_of(store, view, start))


def list_tables(store: Store) -> list[TableInfo]:
    """The tables of the current version, level by level, in the order of their level."""
    names = frozenset(store.directory.names())
    tables: list[TableInfo] = []
    for level, files in enumerate(store.open_view().version.levels):
        for file in files:
            name, old_name = table_name(file.number), old_table_name(file.number)
            if name not in names and old_name in names:
                name = old_name
            tables.append(
                TableInfo(
                    level, file.number, name, file.size, file.smallest[:-8], file.largest[:-8]
                )
            )
    return tables


def written_keys(store: Store, numbers: frozenset[int]) -> list[bytes]:
    """The user keys of all versions in the memtables and in the tables of these numbers.

    ``ValueError`` for a table that is not in the current version.
    """
    read = store.read_view()
    try:
        view = read.view
        sources = [view.memtable.entries()]
        if view.immutable is not None:
            sources.append(view.immutable.entries())
        unknown = numbers - view.version.numbers
        if unknown:
            raise ValueError(f"not a table of this store as it is now: {min(unknown)}")
        for level, files in enumerate(view.version.levels):
            reads = store.counters.reads[level]
            for file in files:
                if file.number in numbers:
                    sources.append(store.tables.entries(file, reads, _READAHEAD, _CHUNK))
        keys: list[bytes] = []
        for entries in merge(sources, store.order):
            for entry in entries:
                if not keys or keys[-1] != entry[0]:
                    keys.append(entry[0])
    finally:
        read.release()
    return keys


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
        block_cache_bytes=_cache_bytes(store),
        memtable_bytes=_memtable_bytes(view),
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


def _stats_table(store: Store, view: View) -> str:
    """``leveldb.stats``: as in LevelDB, a flush counts for the level that it lands on."""
    lines = [
        "                               Compactions",
        "Level  Files Size(MB) Time(sec) Read(MB) Write(MB)",
        "--------------------------------------------------",
    ]
    for level in range(len(view.version.levels)):
        files = view.version.levels[level]
        flushed = store.counters.flushes_into[level]
        into = store.counters.compactions_into[level]
        if files or flushed.runs or into.runs:
            seconds = flushed.seconds + into.seconds
            written = flushed.bytes_written + into.bytes_written
            lines.append(
                f"{level:3d} {len(files):8d} {total_size(files) / _MB:8.0f} {seconds:9.0f}"
                f" {into.bytes_read / _MB:8.0f} {written / _MB:9.0f}"
            )
    return "\n".join(lines) + "\n"


def _cache_bytes(store: Store) -> int:
    cache = store.options.block_cache
    return 0 if cache is None else cache.usage


def _memtable_bytes(view: View) -> int:
    immutable = view.immutable
    return view.memtable.usage + (0 if immutable is None else immutable.usage)


def _offset_of(store: Store, view: View, user_key: bytes) -> int:
    """Bytes of all tables that lie before a key, by whole blocks."""
    compare = store.order.compare
    offset = 0
    for level, files in enumerate(view.version.levels):
        for file in files:
            if compare(file.largest[:-8], user_key) < 0:
                offset += file.size
            elif compare(file.smallest[:-8], user_key) < 0:
                offset += store.tables.find(file).approximate_offset(user_key)
            elif level > 0:
                break  # sorted: the files after it lie further on
    return offset
