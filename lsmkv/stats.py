"""Statistics: the counters of a store at one moment, as records that users get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

from lsmkv.util.markup import table
from lsmkv.util.record import Record
from lsmkv.util.text import count, percent, size


@dataclass(frozen=True)
class LevelStats(Record):
    """One level: what it holds, and what was done to it since the store was opened.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:") as db:
    ...     for key in (b"ant", b"cow"):
    ...         db.put(key, b"v")
    ...     db.flush()
    ...     missed = db.get(b"bee")
    ...     (level,) = (level for level in db.stats().levels if level.files > 0)
    >>> level.level, f"expected {level.expected_rate:.1%}", f"measured {level.measured_rate:.1%}"
    (2, 'expected 0.5%', 'measured 0.0%')
    """

    level: int
    files: int
    bytes: int
    tables_asked: int
    """Lookups that found the level to cover their key."""
    filters_asked: int
    filter_negatives: int
    filter_positives: int
    filter_false_positives: int
    blocks_read: int
    """Data blocks read from files by lookups and iterators."""
    bytes_read: int
    block_cache_hits: int
    flushes: int
    """Memtables made into tables of this level."""
    flush_seconds: float
    flush_bytes: int
    compactions: int
    """Compactions into this level; neither flushes nor trivial moves are among them."""
    compaction_seconds: float
    compaction_bytes_read: int
    compaction_bytes_written: int
    expected_rate: float | None = None
    """The false-positive rate that the bits of the filters promise, those of the tables that are
    open; None if no such table has a filter whose rate is known."""

    @property
    def measured_rate(self) -> float | None:
        """The false positives among the filters asked for absent keys; None before the first.

        Sequential keys can make it far higher than :attr:`expected_rate` (docs/filters.md).
        """
        return _share(self.filter_false_positives, _absent(self))


@dataclass(frozen=True)
class Stats(Record):
    """A store's counters at one moment: ``db.stats()``.

    It is plain data: reading it costs nothing more, and raises nothing.  ``str`` is a table.
    What a thousand Gets of absent keys cost, with filters:

    >>> import lsmkv
    >>> db = lsmkv.DB(":memory:", compression=None)
    >>> for n in range(1000):
    ...     db.put(b"key%d" % (2 * n), bytes(100))
    >>> db.flush()
    >>> before = db.stats()
    >>> found = [db.get(b"key%d" % (2 * n + 1)) for n in range(1000)]
    >>> cost = db.stats() - before
    >>> cost.gets, cost.filters_asked, cost.filter_negatives, cost.filter_false_positives
    (1000, 999, 990, 9)
    >>> f"expected {cost.expected_rate:.2%}, measured {cost.measured_rate:.2%}"
    'expected 0.99%, measured 0.90%'
    >>> cost.blocks_read, cost.bytes_read, cost.block_cache_hits, cost.read_amplification
    (8, 33481, 1, 0.009)
    >>> round(db.stats().write_amplification, 2)
    2.29
    >>> db.close()
    """

    levels: tuple[LevelStats, ...]
    gets: int
    gets_found: int
    gets_from_memory: int
    """Gets that a memtable answered, with a value or with a deletion."""
    gets_from_rows: int
    """Gets answered by the row cache: the key is asked for again and again."""
    iterators: int
    """Iterators opened."""
    tables_opened: int
    metadata_reads: int
    """Reads of footers, indexes and filters: they happen when a table is opened."""
    metadata_bytes_read: int
    block_cache_bytes: int
    """Bytes in the block cache now."""
    memtable_bytes: int
    """Size of the memtables now, counted as for ``write_buffer_size``."""
    writes: int
    """Batches written; a put or a delete is a batch of one."""
    operations: int
    """Puts and deletions in them."""
    user_bytes: int
    """Bytes of their keys and values."""
    mapped_log: bool
    """Whether the log is mapped into memory; for a read-only store, whether lsmkv would map it."""
    compression: str
    """The codec of new tables, as ``compression=`` takes it; in a read-only store, a writer's, if
    the store is in a local directory."""
    log_bytes: int
    log_writes: int
    """Writes to the log: fewer than batches when several threads write."""
    log_syncs: int
    slowdowns: int
    """Writes held up for a millisecond, for level 0 to thin out."""
    stalls: int
    """Writes that waited for a flush or a compaction."""
    stall_seconds: float
    flushes: int
    """Memtables made into tables."""
    flush_bytes: int
    compactions: int
    """Tables merged into the next level.  Flushes and trivial moves are not among them."""
    trivial_moves: int
    """Files that went down a level as they are, in place of a compaction."""
    seek_compactions: int
    """Compactions and moves that lookups called for."""
    compaction_bytes_read: int
    compaction_bytes_written: int

    @property
    def blocks_read(self) -> int:
        """Data blocks read from files by lookups and iterators, all levels."""
        return sum(level.blocks_read for level in self.levels)

    @property
    def bytes_read(self) -> int:
        """Bytes of those blocks."""
        return sum(level.bytes_read for level in self.levels)

    @property
    def block_cache_hits(self) -> int:
        """Data blocks found in the block cache, all levels."""
        return sum(level.block_cache_hits for level in self.levels)

    @property
    def filters_asked(self) -> int:
        """Filters asked, all levels."""
        return sum(level.filters_asked for level in self.levels)

    @property
    def filter_negatives(self) -> int:
        """Filters that said no, all levels."""
        return sum(level.filter_negatives for level in self.levels)

    @property
    def filter_false_positives(self) -> int:
        """Filters that said maybe for a key that the block does not hold, all levels."""
        return sum(level.filter_false_positives for level in self.levels)

    @property
    def measured_rate(self) -> float | None:
        """The false positives among all filters asked for absent keys; None before the first."""
        return _share(self.filter_false_positives, sum(map(_absent, self.levels)))

    @property
    def expected_rate(self) -> float | None:
        """The rate to compare :attr:`measured_rate` with: that of each level, as often as it counts
        there; None before the first such filter is asked."""
        known = [
            (_absent(level), level.expected_rate)
            for level in self.levels
            if level.expected_rate is not None
        ]
        asked = sum(number for number, _ in known)
        return sum(number * rate for number, rate in known) / asked if asked else None

    @property
    def write_amplification(self) -> float:
        """Bytes written to log and tables, per byte that the user wrote; 0.0 before the first."""
        if self.user_bytes == 0:
            return 0.0
        written = self.log_bytes + self.flush_bytes + self.compaction_bytes_written
        return written / self.user_bytes

    @property
    def read_amplification(self) -> float:
        """Data blocks searched per Get and iterator, cached ones included; 0.0 before the first."""
        reads = self.gets + self.iterators
        return (self.blocks_read + self.block_cache_hits) / reads if reads else 0.0

    def __sub__(self, before: Stats) -> Stats:
        """What happened since ``before``.

        Counters are the differences; what says how things stand (files and bytes of a level, bytes
        in cache and memtables) is that of the later one.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     before = db.stats()
        ...     db.put(b"k", b"v")
        ...     (db.stats() - before).writes
        1
        """
        levels = [
            _difference(later, earlier)
            for later, earlier in zip(self.levels, before.levels, strict=False)
        ]
        levels += self.levels[len(levels) :]  # goleveldb has added a level meanwhile
        return replace(_difference(self, before), levels=tuple(levels))

    def __repr__(self) -> str:
        """One line; ``str`` is a table."""
        files = sum(level.files for level in self.levels)
        return (
            f"<lsmkv.Stats: {count(self.gets, 'Get')}, {count(self.writes, 'write')},"
            f" {count(files, 'table')} of {size(sum(level.bytes for level in self.levels))}>"
        )

    def __str__(self) -> str:
        """A table of the levels that hold or did anything, and the other counters below it."""
        lines = [_row(_LEVELS, _LEVELS)]
        lines += [_row(_LEVELS, self._cells(level)[:5]) for level in self._shown]
        lines.append(_row(_LEVELS, self._cells()[:5]))
        lines += ["", _row(_FILTERS, _FILTERS)]
        lines += [_row(_FILTERS, self._filter_cells(level)) for level in self._shown]
        lines.append(_row(_FILTERS, self._filter_cells()))
        lines += [
            "",
            f"gets           {self.gets:,}: {self.gets_found:,} found",
            f"answered by    memtables {self.gets_from_memory:,},"
            f" the row cache {self.gets_from_rows:,}",
            f"iterators      {self.iterators:,}",
            f"tables opened  {self.tables_opened:,}: {count(self.metadata_reads, 'read')},"
            f" {size(self.metadata_bytes_read)}",
            f"writes         {self.writes:,}: {count(self.operations, 'operation')},"
            f" {size(self.user_bytes)}",
            f"log            {count(self.log_writes, 'write')}, {size(self.log_bytes)},"
            f" {count(self.log_syncs, 'sync')}{self._log()}",
            f"waits          {count(self.slowdowns, 'slowdown')}, {count(self.stalls, 'stall')},"
            f" {self.stall_seconds:,.1f} s",
            f"flushes        {self.flushes:,}: {size(self.flush_bytes)} written",
            f"compression    {self.compression} in new tables",
            f"compactions    {self.compactions:,}: {size(self.compaction_bytes_read)} read,"
            f" {size(self.compaction_bytes_written)} written",
            f"trivial moves  {self.trivial_moves:,}",
            f"by seeks       {self.seek_compactions:,} of the compactions and moves",
            f"memory         {size(self.block_cache_bytes)} in the block cache,"
            f" {size(self.memtable_bytes)} in memtables",
            f"amplification  {self._amplification()}",
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The levels as a small table with bars of their sizes, for a notebook."""
        most = max((level.bytes for level in self.levels), default=0)
        rows: list[list[str | float]] = []
        for level in self._shown:
            cells = self._cells(level)
            rows.append([*cells[:3], level.bytes / most if most else 0.0, *cells[3:]])
        cells = self._cells()
        rows.append([*cells[:3], 0.0, *cells[3:]])
        told = (
            f"{count(self.gets, 'Get')}, {count(self.writes, 'write')};"
            f" amplification: {self._amplification()}."
            " Expected and measured are the rates of the filters' false positives."
        )
        return f"{table(_HEADINGS, rows)}<p>{told}</p>"

    def _log(self) -> str:
        """How the log is written: a store that only reads does not know."""
        if not self.log_writes:
            return ""
        return "; mapped" if self.mapped_log else "; written"

    def _amplification(self) -> str:
        figures: list[str] = []
        if self.gets + self.iterators:
            figures.append(f"{self.read_amplification:,.2f} blocks per read")
        if self.user_bytes:
            figures.append(f"{self.write_amplification:,.2f} bytes written per byte")
        return ", ".join(figures) or "-"

    def _cells(self, level: LevelStats | None = None) -> list[str]:
        """The figures of a level, or of all, for :data:`_HEADINGS`."""
        levels = self.levels if level is None else (level,)
        return [
            "all" if level is None else f"{level.level}",
            f"{sum(one.files for one in levels):,}",
            size(sum(one.bytes for one in levels)),
            f"{sum(one.blocks_read for one in levels):,}",
            f"{sum(one.block_cache_hits for one in levels):,}",
            *self._filter_cells(level)[1:],
        ]

    def _filter_cells(self, level: LevelStats | None = None) -> list[str]:
        """The figures of a level's filters, or of all, for :data:`_FILTERS`."""
        of: LevelStats | Stats = self if level is None else level
        return [
            "all" if level is None else f"{level.level}",
            f"{of.filters_asked:,}",
            f"{of.filter_negatives:,}",
            f"{of.filter_false_positives:,}",
            percent(of.expected_rate),
            percent(of.measured_rate),
        ]

    @property
    def _shown(self) -> list[LevelStats]:
        """The levels that hold or did anything."""
        return [level for level in self.levels if level.files or level.tables_asked]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON: every field, and every property by its name.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     plain = db.stats().to_dict()
        >>> plain["writes"], plain["blocks_read"], plain["levels"][0]["files"]
        (1, 0, 0)
        """
        plain = asdict(self)
        for level, shown in zip(self.levels, plain["levels"], strict=True):
            shown["measured_rate"] = level.measured_rate
        for name in (
            "blocks_read",
            "bytes_read",
            "block_cache_hits",
            "filters_asked",
            "filter_negatives",
            "filter_false_positives",
            "expected_rate",
            "measured_rate",
            "write_amplification",
            "read_amplification",
        ):
            plain[name] = getattr(self, name)
        return plain


def _row(headings: Sequence[str], cells: Sequence[str]) -> str:
    """Cells below headings, as wide as these need and their figures may be."""
    return "".join(
        f"{cell:>{max(len(heading) + 2, 5 if at == 0 else 13)}}"
        for at, (heading, cell) in enumerate(zip(headings, cells, strict=True))
    )


def _absent(level: LevelStats) -> int:
    """The filters that were asked for keys that their blocks do not hold."""
    return level.filter_negatives + level.filter_false_positives


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


_LEVELS = ("level", "tables", "size", "blocks read", "cached")
_FILTERS = ("level", "filters asked", "said no", "false positives", "expected", "measured")
_HEADINGS = [*_LEVELS[:3], "", *_LEVELS[3:], *_FILTERS[1:]]
"""HTML column headings."""

_GAUGES = frozenset(
    {
        "level",
        "files",
        "bytes",
        "levels",
        "block_cache_bytes",
        "memtable_bytes",
        "mapped_log",
        "compression",
        "expected_rate",
    }
)
"""Fields that say how things stand, rather than count what happened."""

_Record = TypeVar("_Record", LevelStats, Stats)


def _difference(later: _Record, earlier: _Record) -> _Record:
    """``later`` with its counters less those of ``earlier``."""
    changes = {
        field.name: getattr(later, field.name) - getattr(earlier, field.name)
        for field in fields(later)
        if field.name not in _GAUGES
    }
    return replace(later, **changes)
