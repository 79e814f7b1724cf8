"""The memory that a store's filters take, and their expected rate of false positives.

A filter's own bits say how many of the keys that it does not hold are expected to pass.  The size
of a table's filters is that of their blocks, which an open table holds in memory: LevelDB's filters
with their array of offsets, and without block trailers.  Filters of prefixes are not counted.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lsmkv import BinaryFusePolicy, Bloom64Policy, BloomFilterPolicy, TableInfo
from lsmkv.files import Filter, StoreFiles, Table


@dataclass(frozen=True)
class TableFilters:
    """The filters of one table."""

    number: int
    """The number of filters; those without keys are not counted."""
    size: int
    """The bytes of their blocks, the array of offsets included."""
    rate: float
    """The share of absent keys that are expected to pass; 1.0 without a filter, and if the policy
    is not known."""
    policy: str = ""
    """The name of the policy that made them; empty without a filter, or if they are of several."""
    codec: str = ""
    """The compression of the table's blocks; empty if the table is gone."""
    kind: str = ""
    """The kind in the words of ``filter-lab``, such as ``block`` or ``fuse``, or the policy's name;
    empty without a filter."""
    known: bool = False
    """True if ``rate`` is that of filters whose policy is known."""


NONE = TableFilters(0, 0, 1.0)
_BLOOM, _BLOOM64 = BloomFilterPolicy().name, Bloom64Policy().name
_FUSE = BinaryFusePolicy().name
_SAMPLE = 32  # filters of a table that stand for all of them


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

        A table that a compaction has just removed counts as one without filters.
        """
        figures: dict[TableInfo, TableFilters] = {}
        with StoreFiles(self._path) as files:
            for table in tables:
                known = self._known.get(table)
                figures[table] = _read(files, table) if known is None else known
        self._known = figures
        return figures


def _read(files: StoreFiles, table: TableInfo) -> TableFilters:
    with contextlib.suppress(FileNotFoundError), Table(files.open(table.name)) as file:
        return _figures_of(file)
    return NONE


def _figures_of(table: Table) -> TableFilters:
    all_filters = [
        one for one in table.filters() if isinstance(one, Filter) and one.kind != "prefix"
    ]
    filters = [one for one in all_filters if one.data]
    rate = 1.0
    known = False
    kinds: list[str] = []
    for covers_all in (True, False):  # the two layouts, as if they erred independently
        of_layout = [one for one in filters if (one.first is None) == covers_all]
        policies = {one.policy_name for one in of_layout}
        kinds += sorted(_kind(policy, covers_all) for policy in policies)
        for policy in policies:
            mean = _mean_rate([one for one in of_layout if one.policy_name == policy])
            if mean is not None:
                known = True
                rate *= mean
    policies = {one.policy_name for one in filters}
    return TableFilters(
        len(filters),
        sum(len(one.data) for one in filters) + _offsets(all_filters),
        rate,
        policies.pop() if len(policies) == 1 else "",
        table.codec,
        "+".join(kinds),
        known,
    )


def _offsets(filters: Sequence[Filter]) -> int:
    """The bytes of the arrays of offsets: four a filter, where the array starts, and the base."""
    by_block = Counter(one.block for one in filters if one.first is not None)
    return sum(4 * number + 5 for number in by_block.values())


def _kind(policy: str, covers_all: bool) -> str:
    """The kind of filters of a policy, in the words of ``filter-lab``."""
    layout = "table" if covers_all else "block"
    if policy == _BLOOM:
        return layout
    if policy == _BLOOM64:
        return f"{layout}64"
    return "fuse" if policy == _FUSE else policy


def _mean_rate(filters: Sequence[Filter]) -> float | None:
    """The mean of what the bits of a sample say."""
    every = len(filters) // _SAMPLE + 1
    rates = [one.expected_rate for one in filters[::every]]
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known else None


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


@dataclass(frozen=True)
class LevelFilters:
    """The filters of one kind on one level."""

    level: int
    kind: str
    number: int
    size: int
    expected: float | None
    """The share of absent keys that are expected to pass; None if the policy is not known."""


def by_level_and_kind(
    tables: Iterable[TableInfo], figures: dict[TableInfo, TableFilters]
) -> list[LevelFilters]:
    """The filters level by level, and on each level kind by kind; tables without any are left out.

    Expected rates are means, weighted with the sizes of tables.
    """
    groups: dict[tuple[int, str], list[tuple[TableInfo, TableFilters]]] = {}
    for table in tables:
        if figures[table].number:
            groups.setdefault((table.level, figures[table].kind), []).append(
                (table, figures[table])
            )
    return [
        LevelFilters(
            level,
            kind,
            sum(one.number for _, one in group),
            sum(one.size for _, one in group),
            mean_by_size([(table.size, one.rate) for table, one in group])
            if all(one.known for _, one in group)
            else None,
        )
        for (level, kind), group in sorted(groups.items(), key=lambda pair: pair[0])
    ]
