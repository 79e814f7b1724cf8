"""Information about an open store: properties, approximate sizes and tables.

The handle's methods of these names call it, in any thread.  It takes the current view; only
:func:`written_keys` takes the store's lock, for a pin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lsmkv.engine.db.tree.merge import merge
from lsmkv.engine.db.tree.store import Store, View
from lsmkv.engine.db.tree.store_stats import block_cache_bytes, memtable_bytes
from lsmkv.engine.db.tree.version import total_size
from lsmkv.engine.format.filenames import old_table_name, table_name
from lsmkv.engine.util.introspection import described

if TYPE_CHECKING:
    pass

_FILES_AT_LEVEL = "num-files-at-level"
_MOST_DIGITS = 9
_PREFIX = "leveldb."
_MB = 1048576.0
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
    digits = name.removeprefix(_FILES_AT_LEVEL)
    if digits != name:
        if not digits.isdigit() or not digits.isascii() or len(digits) > _MOST_DIGITS:
            return None
        level = int(digits)
        levels = view.version.levels
        return str(len(levels[level])) if level < len(levels) else None
    if name == "stats":
        return _stats_table(store, view)
    if name == "sstables":
        return str(view.version)
    if name == "approximate-memory-usage":
        return str(block_cache_bytes(store) + memtable_bytes(view))
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
            reads = store.counters.levels[level]
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


def _stats_table(store: Store, view: View) -> str:
    """``leveldb.stats``: as in LevelDB, a flush counts for the level that it lands on."""
    lines = [
        "                               Compactions",
        "Level  Files Size(MB) Time(sec) Read(MB) Write(MB)",
        "--------------------------------------------------",
    ]
    for level in range(len(view.version.levels)):
        files = view.version.levels[level]
        into = store.counters.levels[level]
        if files or into.flushes or into.compactions:
            seconds = into.flush_seconds + into.compaction_seconds
            written = into.flush_bytes + into.compaction_bytes_written
            lines.append(
                f"{level:3d} {len(files):8d} {total_size(files) / _MB:8.0f} {seconds:9.0f}"
                f" {into.compaction_bytes_read / _MB:8.0f} {written / _MB:9.0f}"
            )
    return "\n".join(lines) + "\n"


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
