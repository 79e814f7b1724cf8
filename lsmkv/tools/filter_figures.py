"""What the filters of a store's tables take, and how often they are expected to be wrong.

Nobody counts for a store that is only looked at, but the bits of its filters are there: a Bloom
filter's own bits predict how many of the keys that it does not hold it takes for held.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lsmkv.db.admin.properties import TableInfo
from lsmkv.env.base import Directory, RandomAccessFile
from lsmkv.env.local import LocalEnv
from lsmkv.filter.bloom import rate_from_fill
from lsmkv.filter.fuse import FINGERPRINT_BITS
from lsmkv.table.inspection import codec_in
from lsmkv.tools.dump.blocks import fuse_in, has_bits
from lsmkv.tools.dump.records import Filter
from lsmkv.tools.dump.tables import read_filters
from lsmkv.util.compression import codec_name

_SAMPLE = 64  # filters of each table whose bits are counted


@dataclass(frozen=True)
class TableFilters:
    """The filters of one table."""

    number: int
    """How many there are; those without keys are not counted."""
    size: int
    """Their bytes."""
    rate: float
    """The share of absent keys for which a data block is read in vain; 1.0 without a filter."""
    policy: str = ""
    """The name of the policy that made them; empty without a filter, or if they are of several."""
    codec: str = ""
    """The compression of the table's blocks; empty if the table is gone."""


NONE = TableFilters(0, 0, 1.0)


class FilterFigures:
    """The figures of tables, each read once: a table never changes.

    Raises :class:`OSError` and :class:`~lsmkv.CorruptionError`.  A look costs five reads of each
    new table or a few more: of footer, metaindex and filters, and for its codec.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[TableInfo, TableFilters] = {}

    def look(self, tables: Sequence[TableInfo]) -> dict[TableInfo, TableFilters]:
        """The figures of these tables.

        A table that a compaction has removed meanwhile counts as one without filters.
        """
        figures: dict[TableInfo, TableFilters] = {}
        with LocalEnv().open_directory(self._path) as directory:
            for table in tables:
                known = self._known.get(table)
                figures[table] = _read(directory, table) if known is None else known
        self._known = figures
        return figures


def _read(directory: Directory, table: TableInfo) -> TableFilters:
    with contextlib.suppress(FileNotFoundError), directory.open(table.name) as file:
        return _figures_of(file)
    return NONE


def _figures_of(file: RandomAccessFile) -> TableFilters:
    filters = [one for one in read_filters(file) if one.data and not one.extractor]
    rate = 1.0
    for covers_all in (True, False):  # the two layouts, as if they erred independently
        rate *= _mean_rate([one for one in filters if (one.first is None) == covers_all])
    policies = {one.policy.decode("utf-8", "replace") for one in filters}
    return TableFilters(
        len(filters),
        sum(len(one.data) for one in filters),
        rate,
        policies.pop() if len(policies) == 1 else "",
        codec_name(codec_in(file)),
    )


def _mean_rate(filters: Sequence[Filter]) -> float:
    """The mean of what the bits of a sample predict."""
    sample = filters[:: len(filters) // _SAMPLE + 1]
    rates = [_rate(one) for one in sample]
    return sum(rates) / len(rates) if rates else 1.0


def _rate(one: Filter) -> float:
    """What the bits of a filter predict; 1.0 where its policy is not known."""
    if fuse_in(one.policy, one.data) is not None:
        return 2.0**-FINGERPRINT_BITS
    return rate_from_fill(one.data) if has_bits(one.policy, one.data) else 1.0


def blocks_of_an_absent_key(
    tables: Iterable[TableInfo], figures: dict[TableInfo, TableFilters]
) -> tuple[float, float]:
    """The data blocks that a Get of an absent key searches: without filters, and with them.

    It is expected of a key that the range of each table of level 0 and of one table of each other
    level covers.
    """
    without = 0.0
    searched = 0.0
    of_level: dict[int, list[tuple[int, float]]] = {}
    for table in tables:
        if table.level == 0:
            without += 1
            searched += figures[table].rate
        else:
            of_level.setdefault(table.level, []).append((table.size, figures[table].rate))
    for sized in of_level.values():
        without += 1
        searched += mean_by_size(sized)
    return without, searched


def mean_by_size(sized: Sequence[tuple[int, float]]) -> float:
    """The mean of figures, each weighted with its size.

    >>> mean_by_size([(3, 0.0), (1, 1.0)])
    0.25
    """
    total = sum(size for size, _ in sized)
    return sum(size * figure for size, figure in sized) / total if total else 0.0
