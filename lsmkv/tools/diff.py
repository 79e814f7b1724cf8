"""Comparison of two stores that reads as little as possible.

A store's answer for a key depends on all versions of the key: those in its memtables, and those in
each table whose range covers it.  A table that both stores hold, byte for byte, gives both the same
versions.  So a key can differ only if it is in a memtable or in a table that is *not* shared, of
either store.  A shared table alone does not settle its range, since other tables may have newer or
older versions.  Levels do not matter: the newest sequence wins, on whatever level it is.

The plan follows from this.  If a table that is not shared is *dense*, its whole range is read in
both stores, side by side.  If it is *sparse*, a small table across the range of many shared ones (a
flush of a few scattered writes, for example), its keys are listed and looked up one by one, like
the keys of the memtables.  Everything else is equal and is not read.  Damage in a shared table is
therefore not noticed.

A plan holds for one state of each store only, and writers may continue during the comparison.  So a
:class:`State` is taken of each first, and the plan and all reads use it.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import asdict, dataclass
from itertools import accumulate
from types import TracebackType
from typing import Any, NamedTuple, Self

from lsmkv import DB, Iterator, TableInfo
from lsmkv.engine.errors import ComparatorMismatchError, StaleViewError
from lsmkv.engine.util.pair_diff import Difference, pair_differences
from lsmkv.files import key_order

Same = Callable[[TableInfo, TableInfo], bool]
"""Return True if a table of A and one of B, of the same size and range, have the same bytes."""
KeyOf = Callable[[bytes], Any]

_SPARSE = 32
"""A lookup costs about as much as scanning this many entries, in both stores together."""
_BATCH = 100


class Range(NamedTuple):
    """Keys from ``first`` to ``last``, both included."""

    first: bytes
    last: bytes


@dataclass
class Extent:
    """The sizes of two stores, and the parts that are not read."""

    tables: int
    """The tables of both stores together."""
    bytes: int
    tables_identical: int
    """Tables of A that B also holds."""
    bytes_identical: int
    bytes_skipped: int
    """The size, in both stores, of the shared tables that no range touches."""

    def to_dict(self) -> dict[str, int]:
        """Plain data, for JSON."""
        return asdict(self)


@dataclass
class Plan:
    """The ranges and keys to compare."""

    ranges: list[Range]
    """Ranges to read in both stores; disjoint and in order."""
    keys: list[bytes]
    """Keys to look up in both stores unless a range covers them; in order."""
    extent: Extent


class State:
    """A store as it is now, opened with ``read_only=True``; use it in a ``with`` block.

    It, and reads through it, raise :class:`StaleViewError` once they need a table that the store's
    writer has removed.  This can happen in a store of many tables, not all of which are held open.
    Then refresh the stores, take new states and start over.
    """

    def __init__(self, db: DB) -> None:
        if not db.options.read_only:
            raise ValueError(f"{db.path}: must be opened with read_only=True")
        self._db = db
        self.path = db.path
        self.comparator = db.options.comparator
        self.snapshot = db.snapshot()  # first: it may move the view, and the tables must be its own
        self.tables = db.tables()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.snapshot.close()

    def written_keys(self, tables: list[TableInfo]) -> list[bytes]:
        """As ``DB.written_keys``."""
        try:
            keys = self._db.written_keys(tables)
        except ValueError:  # one of them is gone
            self._check_tables()
            raise
        self._check_tables()
        return keys

    def _check_tables(self) -> None:
        """Raise if the view has moved forward: only the lack of one of its tables moves it."""
        present = {table.number for table in self._db.tables()}
        for table in self.tables:
            if table.number not in present:
                raise StaleViewError(os.path.join(self.path, table.name))


def make_plan(a: State, b: State, same: Same) -> Plan:
    """The plan for comparing two stores.

    :class:`ComparatorMismatchError` if they are in different orders.
    """
    ours, theirs = a.comparator.name, b.comparator.name
    if ours != theirs:
        raise ComparatorMismatchError(b.path, theirs, ours)
    of = key_order(a.comparator)
    shared, rest_a, rest_b = _match(a.tables, b.tables, same)
    weights = _Weights(shared, of)
    sparse_a, dense_a = weights.split(rest_a)
    sparse_b, dense_b = weights.split(rest_b)
    ranges = _joined(dense_a + dense_b, of)
    keys = set(a.written_keys(sparse_a)) | set(b.written_keys(sparse_b))
    extent = Extent(
        tables=len(a.tables) + len(b.tables),
        bytes=sum(table.size for table in a.tables + b.tables),
        tables_identical=len(shared),
        bytes_identical=sum(table.size for table in shared),
        bytes_skipped=sum(2 * table.size for table in shared if not _touches(table, ranges, of)),
    )
    return Plan(ranges, sorted(keys, key=of), extent)


def differences(
    a: State, b: State, plan: Plan, advance: Callable[[int], None]
) -> Generator[Difference, None, None]:
    """The differences in the order of their keys; ``advance`` is called with the keys compared.

    Keys that the comparator calls equal are one key, shown as A spells it.
    """
    of = key_order(a.comparator)
    ranges = deque(plan.ranges)
    keys: list[bytes] = []
    for key in plan.keys:
        place = of(key)
        while ranges and of(ranges[0].last) < place:
            yield from _compare_keys(a, b, keys, advance)
            keys = []
            yield from _compare_range(a, b, ranges.popleft(), advance)
        if ranges and of(ranges[0].first) <= place:
            continue
        if keys and of(keys[-1]) == place:
            continue
        if len(keys) == _BATCH:
            yield from _compare_keys(a, b, keys, advance)
            keys = []
        keys.append(key)
    yield from _compare_keys(a, b, keys, advance)
    for rest in ranges:
        yield from _compare_range(a, b, rest, advance)


def _compare_keys(
    a: State, b: State, keys: list[bytes], advance: Callable[[int], None]
) -> Generator[Difference, None, None]:
    for key in keys:
        ours, theirs = a.snapshot.get(key), b.snapshot.get(key)
        if ours != theirs:
            yield Difference(key, ours, theirs)
    advance(len(keys))


def _compare_range(
    a: State, b: State, keys: Range, advance: Callable[[int], None]
) -> Generator[Difference, None, None]:
    with _pairs(a, keys) as ours, _pairs(b, keys) as theirs:
        yield from pair_differences(ours, theirs, a.comparator.compare, advance)


def _pairs(state: State, keys: Range) -> Iterator:
    return state.snapshot.iterator(
        start=keys.first, stop=keys.last, include_stop=True, fill_cache=False
    )


def _match(
    tables_a: list[TableInfo], tables_b: list[TableInfo], same: Same
) -> tuple[list[TableInfo], list[TableInfo], list[TableInfo]]:
    """The tables that both have, those of A alone, and those of B alone."""
    alike: defaultdict[tuple[int, bytes, bytes], list[TableInfo]] = defaultdict(list)
    for table in tables_b:
        alike[table.size, table.smallest, table.largest].append(table)
    shared: list[TableInfo] = []
    rest_a: list[TableInfo] = []
    for table in tables_a:
        candidates = alike[table.size, table.smallest, table.largest]
        twin = next((other for other in candidates if same(table, other)), None)
        if twin is None:
            rest_a.append(table)
        else:
            candidates.remove(twin)
            shared.append(table)
    return shared, rest_a, [table for rest in alike.values() for table in rest]


class _Weights:
    """Sizes of the shared tables that overlap a range."""

    def __init__(self, shared: list[TableInfo], of: KeyOf) -> None:
        self._of = of
        by_first = sorted(shared, key=lambda table: of(table.smallest))
        by_last = sorted(shared, key=lambda table: of(table.largest))
        self._firsts = [of(table.smallest) for table in by_first]
        self._lasts = [of(table.largest) for table in by_last]
        self._begun = [0, *accumulate(table.size for table in by_first)]
        self._ended = [0, *accumulate(table.size for table in by_last)]

    def split(self, tables: list[TableInfo]) -> tuple[list[TableInfo], list[TableInfo]]:
        """The sparse tables, and the dense ones."""
        sparse: list[TableInfo] = []
        dense: list[TableInfo] = []
        for table in tables:
            # Shared tables that begin by the end of this one, less those that end before it.
            begun = self._begun[bisect_right(self._firsts, self._of(table.largest))]
            ended = self._ended[bisect_left(self._lasts, self._of(table.smallest))]
            (sparse if begun - ended > _SPARSE * table.size else dense).append(table)
        return sparse, dense


def _joined(tables: Iterable[TableInfo], of: KeyOf) -> list[Range]:
    """The ranges of these tables in order, with those that overlap joined."""
    ranges: list[Range] = []
    for table in sorted(tables, key=lambda table: of(table.smallest)):
        if not ranges or of(ranges[-1].last) < of(table.smallest):
            ranges.append(Range(table.smallest, table.largest))
        elif of(ranges[-1].last) < of(table.largest):
            ranges[-1] = Range(ranges[-1].first, table.largest)
    return ranges


def _touches(table: TableInfo, ranges: list[Range], of: KeyOf) -> bool:
    at = bisect_left(ranges, of(table.smallest), key=lambda keys: of(keys.last))
    return at < len(ranges) and not of(table.largest) < of(ranges[at].first)
