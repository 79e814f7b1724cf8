"""A manual compaction: compacts a key range from level to level, and reports its progress.

``DB.compact_range`` calls it without a lock.  The compactions themselves are run by the background
scheduler, one level at a time.
"""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.tree.version import Version, total_size
from lsmkv.engine.util.progress import Progress


def compact_range(
    store: Store,
    background: Background,
    begin: bytes | None,
    end: bytes | None,
    progress: Progress | None,
) -> None:
    """Compact the user keys [begin, end] of each level into the next, down to the deepest level.

    ``progress(done, total, phase)`` is called in this thread, at the start of each level and while
    its compaction runs: bytes read, bytes to read, and ``"level <n>"`` for the compaction of level
    n into the next.  The total is an estimate, so ``done`` may jump at the end of a level; it never
    decreases, and ``(total, total, "done")`` is the last call.  An exception in ``progress``, or
    Ctrl-C, ends the compaction at its next step; the levels before it stay compacted.
    """
    # No version is kept during the compaction: its files could not be removed.
    meter = Meter(progress, plan_of_range(store.open_view().version, begin, end))
    for level in range(len(meter.plan)):
        meter.begin(level)
        background.compact_level(level, begin, end, meter.advance)
    meter.finish()


class LevelPlan(NamedTuple):
    """The estimated cost of compacting a level into the next."""

    to_move: int
    """Bytes of the level's tables, including those that the compactions before it put there."""
    to_read: int
    """Bytes of tables that the compaction reads: these, and those of the next level."""


def plan_of_range(version: Version, begin: bytes | None, end: bytes | None) -> list[LevelPlan]:
    """The plans of level 0, 1 and so on, for the user keys [begin, end].  Not empty.

    Entries that the compactions will drop are counted too, since their number is not known before.
    """
    plan: list[LevelPlan] = []
    coming = total_size(version.overlapping(0, begin, end))
    for level in range(version.deepest_level(begin, end)):
        below = total_size(version.overlapping(level + 1, begin, end))
        plan.append(LevelPlan(coming, coming + below if coming > 0 else 0))
        coming += below
    return plan


class Meter:
    """Turns the bytes that a level's compaction has moved into calls of ``progress``.

    Call order: ``(begin advance*)* finish``.  A compaction runs in steps, and two steps may read
    the same table of the next level, so bytes read would run ahead of the plan; bytes moved do not.
    """

    def __init__(self, progress: Progress | None, plan: list[LevelPlan]) -> None:
        self.plan = plan
        self._progress = progress
        self._total = _to_read(plan)
        self._before = 0  # bytes that the levels before this one were to read
        self._level = 0
        self._reported = 0

    def begin(self, level: int) -> None:
        """Note that the compaction of ``level`` begins."""
        self._level = level
        self._before = _to_read(self.plan[:level])
        self._report(self._before, f"level {level}")

    def advance(self, moved: int) -> None:
        """Note that ``moved`` bytes were moved so far; bytes beyond the plan do not count."""
        to_move, to_read = self.plan[self._level]
        if to_move > 0:
            done = self._before + to_read * min(moved, to_move) // to_move
            if done > self._reported:
                self._report(done, f"level {self._level}")

    def finish(self) -> None:
        """Note that everything is compacted."""
        self._report(self._total, "done")

    def _report(self, done: int, phase: str) -> None:
        self._reported = done
        if self._progress is not None:
            self._progress(done, self._total, phase)


def _to_read(plan: list[LevelPlan]) -> int:
    return sum([level.to_read for level in plan])
