"""The statistics of an open store: its counters at one moment, as ``DB.stats`` returns them.

Any thread may call it; it takes the current view, and no lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsmkv.engine.counters import LEVEL_COUNTERS, STORE_COUNTERS, Counters, LevelCounts
from lsmkv.engine.db.tree.store import Store, View
from lsmkv.engine.db.tree.stored_codec import in_stored_codec
from lsmkv.engine.db.tree.version import total_size
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.util.compression import codec_name

if TYPE_CHECKING:
    from lsmkv.engine.stats import Stats

_MOST_RATED = 32  # tables of a level whose filters are looked at for a rate


def collect_stats(store: Store, mapped_log: bool) -> Stats:
    """The counters as they are now; ``mapped_log`` is one of them."""
    from lsmkv.engine.stats import LevelStats, Stats  # noqa: PLC0415 - dataclasses comes with it

    view = store.open_view()
    counters = store.counters
    options = store.options
    # Elsewhere, each read of a table may be a request to an object store.
    if options.read_only and type(options.env) in (type(None), LocalEnv):
        options = in_stored_codec(options, store.directory, view.version.numbers)
    levels: list[LevelStats] = []
    for level in range(len(view.version.levels)):
        files = view.version.levels[level]
        counts = counters.levels[level]
        levels.append(
            LevelStats(
                level=level,
                files=len(files),
                bytes=total_size(files),
                filter_positives=counts.filters_asked - counts.filter_negatives,
                expected_rate=_expected_rate(store, files),
                **_values(counts, LEVEL_COUNTERS),
            )
        )
    return Stats(
        levels=tuple(levels),
        block_cache_bytes=block_cache_bytes(store),
        memtable_bytes=memtable_bytes(view),
        mapped_log=mapped_log,
        compression=codec_name(options.compression),
        **_values(counters, STORE_COUNTERS),
    )


def _values(counts: Counters | LevelCounts, names: list[str]) -> dict[str, Any]:
    return {name: getattr(counts, name) for name in names}


def _expected_rate(store: Store, files: list[FileMetaData]) -> float | None:
    """The mean rate of false positives that the filters of open tables promise, by size.

    If there are many tables, a sample represents all.  Nothing is opened, and a table computes its
    rate once.
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
    """Return the number of bytes in the block cache."""
    cache = store.options.block_cache
    return 0 if cache is None else cache.usage


def memtable_bytes(view: View) -> int:
    """Return the number of bytes that the memtables use."""
    immutable = view.immutable
    return view.memtable.usage + (0 if immutable is None else immutable.usage)
