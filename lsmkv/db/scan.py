"""Reading a range of a view, from any place and either way."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator as Iteration
from operator import itemgetter
from typing import TYPE_CHECKING

from lsmkv.db.batch import BytesLike, as_bytes
from lsmkv.db.keys import oldest_rank_hidden
from lsmkv.db.merge import Cursor, KeyOrder, Pair, Position, merge_back, merge_forward, visible
from lsmkv.db.run import Run, RunBack, RunReader
from lsmkv.db.store import Store, View
from lsmkv.stats import NUM_LEVELS
from lsmkv.table.walk import NO_LIMIT

if TYPE_CHECKING:
    from mypy_extensions import i64


class Bounds:
    """The range of an iterator, as two places between keys; None is no bound."""

    __slots__ = ("lower", "upper")

    def __init__(self, lower: Position | None, upper: Position | None) -> None:
        self.lower = lower
        self.upper = upper


def bounds_of(
    start: BytesLike | None,
    stop: BytesLike | None,
    include_start: bool,
    include_stop: bool,
    prefix: BytesLike | None,
    order: KeyOrder,
) -> Bounds:
    """The range for these arguments of ``iterator``.  A prefix goes with neither start nor stop.

    The keys of a prefix are found in the bytewise order and in its reverse; for a comparator of the
    user's they are taken to lie as in the bytewise order.
    """
    if prefix is not None:
        if start is not None or stop is not None:
            raise TypeError("give a prefix, or start and stop, not both")
        first = as_bytes(prefix, "prefix")
        end = after_prefix(first)
        if order.is_reverse:
            return Bounds(
                None if end is None else Position(end, after=True), Position(first, after=True)
            )
        return Bounds(
            Position(first, after=False), None if end is None else Position(end, after=False)
        )
    lower = None
    upper = None
    if start is not None:
        lower = Position(as_bytes(start, "start key"), after=not include_start)
    if stop is not None:
        upper = Position(as_bytes(stop, "stop key"), after=include_stop)
    return Bounds(lower, upper)


def after_prefix(prefix: bytes) -> bytes | None:
    """The smallest key that sorts after all keys with this prefix; None if there is none.

    >>> after_prefix(b"ab"), after_prefix(b"a\\xff"), after_prefix(b"\\xff")
    (b'ac', b'b', None)
    """
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


class Scan:
    """The entries of a view at a sequence, from any place and either way."""

    def __init__(
        self,
        store: Store,
        view: View,
        sequence: int,
        current: bool,
        bounds: Bounds,
        fill_cache: bool,
    ) -> None:
        """``current`` says that the view holds nothing newer than ``sequence`` in its tables."""
        self._store = store
        self._current = current
        self._view = view
        self._sequence = sequence
        self._hidden = oldest_rank_hidden(sequence)
        self._bounds = bounds
        self._fill_cache = fill_cache

    @property
    def order(self) -> KeyOrder:
        """The store's order of keys."""
        return self._store.order

    def forward(self, start: Position | None) -> Iteration[list[Pair]]:
        """Pairs after ``start`` and below the upper bound, a handful at a time."""
        level = self._view.version.only_level
        if level >= 0 and self._in_tables_alone():
            return Run(self._run(level), start, self._bounds.upper)
        return self._merged(start)

    def backward(self, before: Position | None) -> Iteration[list[Pair]]:
        """Pairs before ``before`` and above the lower bound; the last first, each list rising."""
        level = self._view.version.only_level
        if level >= 0 and self._in_tables_alone():
            return RunBack(self._run(level), before, self._bounds.lower)
        return self._merged_back(before)

    def _merged(self, start: Position | None) -> Iteration[list[Pair]]:
        upper = self._bounds.upper
        for entries in merge_forward(self._cursors(start), self.order):
            pairs = visible(entries, self._hidden, self.order)
            if upper is not None:
                cut = self.count_before(pairs, upper)
                if cut < len(pairs):
                    yield pairs[:cut]
                    return
                if self.is_at_or_after(entries[-1][0], upper):
                    yield pairs
                    return
            yield pairs

    def _merged_back(self, before: Position | None) -> Iteration[list[Pair]]:
        lower = self._bounds.lower
        for entries in merge_back(self._cursors_back(before), self.order):
            pairs = visible(entries, self._hidden, self.order)
            if lower is not None:
                cut = self.count_before(pairs, lower)
                if cut > 0:
                    yield pairs[cut:]
                    return
                if not self.is_at_or_after(entries[0][0], lower):
                    yield pairs
                    return
            yield pairs

    def count_before(self, pairs: list[Pair], position: Position) -> int:
        """How many of these pairs lie before a position."""
        find = bisect_right if position.after else bisect_left
        order = self.order
        if order.is_bytewise:
            return find(pairs, position.user_key, key=itemgetter(0))
        return find(pairs, order.of(position.user_key), key=lambda pair: order.of(pair[0]))

    def is_at_or_after(self, user_key: bytes, position: Position) -> bool:
        """Whether a key lies on the far side of a position."""
        compared = self.order.compare(user_key, position.user_key)
        return compared > 0 or (compared == 0 and not position.after)

    def _in_tables_alone(self) -> bool:
        view = self._view
        return view.memtable.empty and view.immutable is None and self.order.is_bytewise

    def _run(self, level: i64) -> RunReader:
        store = self._store
        return RunReader(
            store.tables,
            self._view.version,
            level,
            NO_LIMIT if self._current else self._sequence,
            store.counters.reads[level],
            self._fill_cache,
        )

    def _cursors(self, start: Position | None) -> list[Cursor]:
        view = self._view
        tables = self._store.tables
        reads = self._store.counters.reads
        cursors: list[Cursor] = [view.memtable.scan(start)]
        if view.immutable is not None:
            cursors.append(view.immutable.scan(start))
        for file in view.version.levels[0]:
            cursors.append(tables.scan(file, start, reads[0], self._fill_cache))
        for level in range(1, NUM_LEVELS):
            if view.version.levels[level]:
                cursors.append(
                    tables.scan_level(view.version, level, start, reads[level], self._fill_cache)
                )
        return cursors

    def _cursors_back(self, before: Position | None) -> list[Cursor]:
        view = self._view
        tables = self._store.tables
        reads = self._store.counters.reads
        cursors: list[Cursor] = [view.memtable.scan_back(before)]
        if view.immutable is not None:
            cursors.append(view.immutable.scan_back(before))
        for file in view.version.levels[0]:
            cursors.append(tables.scan_back(file, before, reads[0], self._fill_cache))
        for level in range(1, NUM_LEVELS):
            if view.version.levels[level]:
                cursors.append(
                    tables.scan_level_back(
                        view.version, level, before, reads[level], self._fill_cache
                    )
                )
        return cursors
