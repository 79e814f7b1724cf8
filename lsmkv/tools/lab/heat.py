"""Read heat: where Gets and prefix scans waste their reads, by level and by table.

A Get asks filters.  A scan does not: for a prefix that no key has, it reads a block of each level
to see that there is nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.tools.filter_lab import SettingReads


class TableHeat(NamedTuple):
    """The wasted reads of one table."""

    level: int
    number: int
    """The table's file number."""
    gets: int
    """Blocks that Gets read and that did not hold the key."""
    scans: int
    """Blocks that scans of absent prefixes read."""


class LevelHeat(NamedTuple):
    """The wasted reads of one level."""

    level: int
    tables: int
    """The number of its tables."""
    gets: int
    scans: int


class Heat(NamedTuple):
    """The wasted reads, table by table, in the order in which Gets ask them."""

    gets: int
    """The number of Gets."""
    scans: int
    """The number of scans of absent prefixes."""
    tables: list[TableHeat]

    def levels(self) -> list[LevelHeat]:
        """The levels that have tables, from 0 on."""
        found: dict[int, LevelHeat] = {}
        for table in sorted(self.tables, key=lambda table: table.level):
            level = found.get(table.level, LevelHeat(table.level, 0, 0, 0))
            found[table.level] = LevelHeat(
                table.level, level.tables + 1, level.gets + table.gets, level.scans + table.scans
            )
        return list(found.values())


def read_heat(stored: SettingReads, gets: int, scans: int, by_scans: dict[int, int]) -> Heat:
    """The heat of a replay's Gets, and of the scans of :func:`lsmkv.filter_lab.scan_absent`,
    of the same store."""
    tables = [
        TableHeat(one.level, one.number, one.wasted_reads, by_scans.get(one.number, 0))
        for one in stored.tables
    ]
    return Heat(gets, scans, tables)
