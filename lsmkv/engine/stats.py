"""Statistics: the counters of a store at one moment, as records that users get.

The counters are those of ``counters.py``, from which the records derive; what says how things stand
(files, bytes in memory) is declared here.  This module is not compiled: only at run time does a
frozen dataclass take the counters of a compiled class as its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from lsmkv.engine.counters import LevelCounts, StoreCounts, names_of
from lsmkv.engine.former_paths import keep_paths
from lsmkv.engine.util.markup import table
from lsmkv.engine.util.text import count, percent, size

T = TypeVar("T", bound=type)


class _CopiedByInit:
    """Makes a copy, or a pickled object, by ``__init__``: a frozen object refuses each field."""

    def __reduce__(self) -> tuple[Any, ...]:
        whole: Any = self
        return type(self), tuple([getattr(self, one.name) for one in fields(whole)])


def _counting(counts: StoreCounts | LevelCounts, after: str) -> Callable[[T], T]:
    """Makes the counters that a class inherits fields of the dataclass that it becomes, in their
    order, ``after`` one of its own fields."""

    def decorate(cls: T) -> T:
        counters = {name: type(getattr(counts, name)).__name__ for name in names_of(counts)}
        ordered: dict[str, Any] = {}
        for name, kind in cls.__annotations__.items():
            ordered[name] = kind
            if name == after:
                ordered |= counters
        cls.__annotations__ = ordered
        for name in counters:
            setattr(cls, name, field())  # else a compiled class's descriptor passes for a default
        return cls

    return decorate


@dataclass(frozen=True)
@_counting(LevelCounts(), after="bytes")
class LevelStats(LevelCounts, _CopiedByInit):
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
    """The number of the level."""
    files: int
    """Tables on this level now."""
    bytes: int
    """Bytes of the tables on this level now."""
    filter_positives: int
    """Filters that said maybe."""
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
@_counting(StoreCounts(), after="levels")
class Stats(StoreCounts, _CopiedByInit):
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
    block_cache_bytes: int
    """Bytes in the block cache now."""
    memtable_bytes: int
    """Size of the memtables now, counted as for ``write_buffer_size``."""
    mapped_log: bool
    """True if the log is mapped into memory; for a read-only store, True if lsmkv would map it."""
    compression: str
    """The codec of new tables, as ``compression=`` takes it; in a read-only store, a writer's, if
    the store is in a local directory."""

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
        """Return the changes since ``before``.

        Counters are the differences; fields of the current state (files and bytes of a level, bytes
        in cache and memtables) are those of the later one.

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
        levels += self.levels[len(levels) :]  # goleveldb has added a level since
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
            f"  identified   {count(self.identity_check_reads, 'identity check read')},"
            f" {size(self.identity_check_bytes_read)}",
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
        summary = (
            f"{count(self.gets, 'Get')}, {count(self.writes, 'write')};"
            f" amplification: {self._amplification()}."
            " Expected and measured are the rates of the filters' false positives."
        )
        return f"{table(_HEADINGS, rows)}<p>{summary}</p>"

    def _log(self) -> str:
        """Return the way in which the log is written; empty if nothing was written."""
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
        plain = asdict(self) | _properties(self)
        for level, shown in zip(self.levels, plain["levels"], strict=True):
            shown |= _properties(level)
        return plain


def _properties(record: LevelStats | Stats) -> dict[str, Any]:
    """The public properties of a record's own class, by name."""
    return {
        name: getattr(record, name)
        for name, member in vars(type(record)).items()
        if isinstance(member, property) and not name.startswith("_")
    }


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

_COUNTED = frozenset({*names_of(LevelCounts()), *names_of(StoreCounts()), "filter_positives"})
"""Fields that count events; the others describe the current state."""

R = TypeVar("R", LevelStats, Stats)


def _difference(later: R, earlier: R) -> R:
    """``later`` with its counters less those of ``earlier``."""
    changes = {
        one.name: getattr(later, one.name) - getattr(earlier, one.name)
        for one in fields(later)
        if one.name in _COUNTED
    }
    return replace(later, **changes)


keep_paths(LevelStats, Stats)
