"""Decides which entries are stale: a block that cannot be read may have replaced them.

A lost block may have held a newer version of a key, or its deletion.  The older version is intact
but must not be served; it is *stale*.  The lost block's bounds, its filter and the level of its
table show which entries of other tables may be stale.  The plan of a repair calls this, in one
thread and without a lock.
"""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.engine.format.keys import MAX_SEQUENCE, TAG_SIZE, InternalKeyComparator, sequence_in
from lsmkv.files.repair.damaged_table import Hole
from lsmkv.files.repair.report import TableSurvey


class StaleTest:
    """Decides which entries of one table may be stale.  The caller asks in the table's order."""

    def __init__(self, comparator: InternalKeyComparator) -> None:
        self._compare = comparator.user_comparator.compare
        self._compare_internal = comparator.compare
        self.first = 0
        self.last = MAX_SEQUENCE
        """Every entry whose sequence is not between these two is set aside: writes of a log between
        it and those that are kept are lost."""
        self._runs: list[list[Shadow]] = []
        self._at: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._runs) or self.first > 0 or self.last < MAX_SEQUENCE

    @property
    def has_shadows(self) -> bool:
        """True if a lost block may have replaced any of the entries."""
        return bool(self._runs)

    def add(self, shadows: list[Shadow]) -> None:
        """Add the holes of one other table, in their order."""
        if shadows:
            self._runs.append(shadows)
            self._at.append(0)

    def restart(self) -> None:
        """Start again at the first entry of the table."""
        self._at = [0] * len(self._runs)

    def is_stale(self, internal_key: bytes) -> bool:
        """True if a lost block or write may have been a newer version of the same user key."""
        if not self.first <= sequence_in(internal_key[-TAG_SIZE:]) <= self.last:
            return True
        user_key = internal_key[:-8]
        for number, run in enumerate(self._runs):
            at = self._at[number]
            while at < len(run) and self._is_below(run[at], user_key):
                at += 1
            self._at[number] = at
            # Neighboring holes share a bound, so a key may lie in two of them.
            while at < len(run) and self._covers(run[at], user_key):
                if self._shadows(run[at], internal_key):
                    return True
                at += 1
        return False

    def _is_below(self, shadow: Shadow, user_key: bytes) -> bool:
        return shadow.upper is not None and self._compare(shadow.upper, user_key) < 0

    def _covers(self, shadow: Shadow, user_key: bytes) -> bool:
        return shadow.lower is None or self._compare(shadow.lower, user_key) <= 0

    def _shadows(self, shadow: Shadow, key: bytes) -> bool:
        if sequence_in(key[-TAG_SIZE:]) > shadow.hole.last_sequence:
            return False
        after = shadow.hole.lower
        if after is not None and self._compare_internal(key, after) <= 0:
            return False
        if shadow.behind is not None and self._compare_internal(key, shadow.behind) < 0:
            return False
        return shadow.hole.may_hold(key[:-8])


class Shadow:
    """The user keys, of one table, whose entries a hole may have replaced."""

    def __init__(
        self, hole: Hole, lower: bytes | None, upper: bytes | None, behind: bytes | None = None
    ) -> None:
        self.hole = hole
        self.lower = lower
        self.upper = upper
        self.behind = behind
        """Only the entry with this internal key, and those after it, are older than the hole.

        Without an index, the entry after a hole is all that is known about its position."""


def shadows_on(
    table: TableSurvey,
    other: TableSurvey,
    holes: list[Hole],
    by_levels: bool,
    comparator: InternalKeyComparator,
) -> list[Shadow]:
    """The user keys of ``table`` whose entries these holes of ``other`` may have replaced."""
    if by_levels:
        if table.level > 0 and table.level == other.level:
            return _boundary_shadows(table, holes, comparator)
        older = table.level > other.level or (
            table.level == other.level == 0 and table.number < other.number
        )
        if not older:
            return _boundary_shadows(table, holes, comparator) if table is other else []
    elif table is other:
        return _boundary_shadows(table, holes, comparator)
    # Without levels nothing shows how new a lost entry was.  Nor do its neighbors, because a
    # compaction puts old and new entries next to each other.
    shadows: list[Shadow] = []
    compare: Callable[[bytes, bytes], int] = comparator.user_comparator.compare
    for hole in holes:
        lower, upper = hole.user_range
        if (
            table.entries == 0
            or (upper is not None and compare(upper, table.smallest[:-8]) < 0)
            or (lower is not None and compare(table.largest[:-8], lower) < 0)
        ):
            continue
        shadows.append(Shadow(hole, lower, upper))
    return shadows


def _boundary_shadows(
    table: TableSurvey, holes: list[Hole], comparator: InternalKeyComparator
) -> list[Shadow]:
    """Find the boundary keys of holes, older versions of which may follow in the same table or in
    the next one."""
    shadows: list[Shadow] = []
    compare: Callable[[bytes, bytes], int] = comparator.user_comparator.compare
    for hole in holes:
        _, upper = hole.user_range
        if (
            hole.upper is not None
            and upper is not None
            and table.entries > 0
            and compare(table.smallest[:-8], upper) <= 0
            and compare(upper, table.largest[:-8]) <= 0
        ):
            shadows.append(Shadow(hole, upper, upper, hole.upper))
    return shadows
