"""Counts of a replay: for each setting and each table, the filters asked and the blocks read."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

AS_STORED = "as stored"
"""The name of the setting that the store's own filters make up."""


@dataclass
class TableReads:
    """Counts of the Gets in one table, under one setting.

    >>> TableReads(level=1, number=7, filters_asked=5, filter_negatives=4).blocks_read
    0
    """

    level: int
    number: int
    """The table's file number."""
    tables_asked: int = 0
    """Gets that reached the table: its key range covers the key, and no newer table has it."""
    filters_asked: int = 0
    filter_negatives: int = 0
    blocks_read: int = 0
    bytes_read: int = 0
    """Bytes of those blocks as stored."""
    wasted_reads: int = 0
    """Data blocks that were read but did not hold the key."""
    false_positives: int = 0
    """Wasted reads after a filter had said maybe."""
    filter_bytes: int = 0
    """The size of the table's filters, which an open table holds in memory."""


FIGURES = tuple(one.name for one in fields(TableReads) if one.name not in ("level", "number"))
"""The names of what is counted."""


@dataclass
class SettingReads:
    """Counts of all the Gets under one setting.

    >>> table = TableReads(1, 7, filters_asked=5, filter_negatives=4, blocks_read=1,
    ...                    wasted_reads=1, false_positives=1, filter_bytes=60)
    >>> reads = SettingReads("block:10", [table])
    >>> reads.blocks_read, reads.wasted_reads, reads.filter_bytes, reads.false_positive_rate
    (1, 1, 60, 0.2)
    >>> reads.total("filters_asked"), reads.to_dict(gets=5)["blocks_per_get"]
    (5, 0.2)
    """

    setting: str
    """Its text; :data:`AS_STORED` for the filters that the store has."""
    tables: list[TableReads] = field(default_factory=list)

    def total(self, figure: str) -> int:
        """The sum of one of the figures of :class:`TableReads` over all tables."""
        return sum(getattr(table, figure) for table in self.tables)

    @property
    def blocks_read(self) -> int:
        """Data blocks read, all tables."""
        return self.total("blocks_read")

    @property
    def wasted_reads(self) -> int:
        """Wasted reads, all tables."""
        return self.total("wasted_reads")

    @property
    def filter_bytes(self) -> int:
        """Memory of all filters."""
        return self.total("filter_bytes")

    @property
    def false_positive_rate(self) -> float | None:
        """The share of the filters asked about absent keys that said maybe; None if none was."""
        passed = self.total("false_positives")
        asked = passed + self.total("filter_negatives")
        return passed / asked if asked else None

    def to_dict(self, gets: int) -> dict[str, Any]:
        """The figures of all tables together, and per Get, for JSON."""
        figures = {name: self.total(name) for name in FIGURES}
        return (
            {"setting": self.setting}
            | figures
            | {
                "blocks_per_get": self.blocks_read / max(gets, 1),
                "false_positive_rate": self.false_positive_rate,
            }
        )


@dataclass
class Replay:
    """The same Gets under several settings; the first is the store as it is.

    >>> reads = SettingReads(AS_STORED, [TableReads(1, 7, blocks_read=3, wasted_reads=1)])
    >>> Replay(gets=5, from_memory=0, found=2, entries=2, results=[reads]).stored.wasted_reads
    1
    """

    gets: int
    from_memory: int
    """Gets that a memtable answered: they ask no table."""
    found: int
    """Gets that found a value, as the store is."""
    entries: int
    """Entries in the tables: all versions of all keys."""
    results: list[SettingReads]
    unsafe_order: str | None = None
    """The comparator's name, if it may call different bytes equal: a filter can miss such keys."""

    @property
    def stored(self) -> SettingReads:
        """The store as it is."""
        return self.results[0]
