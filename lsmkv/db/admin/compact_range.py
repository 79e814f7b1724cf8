"""A manual compaction of all levels, one after the other, and how far it has come."""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.db.background import Background
from lsmkv.db.store import Store
from lsmkv.db.version import Version, total_size
from lsmkv.util.progress import Progress


def compact_range(
    store: Store,
    background: Background,
    begin: bytes | None,
    end: bytes | None,
    progress: Progress | None,
) -> None:
    """Merge what each level holds of the user keys [begin, end] into the next, down to the deepest.

    ``progress(done, total, phase)`` is called in this thread, at the start of each level and while
    its merge goes on: bytes read, bytes to read, ``"level <n>"`` for the merge of level n into the
    next.  The total is an estimate, so ``done`` makes a step where a level ends; it never falls,
    and ``(total, total, "done")`` comes last.  An exception out of it, or Ctrl-C, ends the work at
    its next step; the levels before it stay merged.
    """
    # No version is held meanwhile: its files could not be removed.
    meter = Meter(progress, plan_of_range(store.open_view().version, begin, end))
    for level in range(len(meter.plan)):
        meter.begin(level)
        background.compact_level(level, begin, end, meter.advance)
    meter.finish()


class LevelPlan(NamedTuple):
    """What the merge of a level into the next will cost, as far as that is known before."""

    to_move: int
    """Bytes of tables that go down: the level's own, and what came down to it before."""
    to_read: int
    """Bytes of tables that the merge reads: those, and the next level's."""


def plan_of_range(version: Version, begin: bytes | None, end: bytes | None) -> list[LevelPlan]:
    """The plans of level 0, 1 and so on, for the user keys [begin, end].  Not empty.

    Nothing is subtracted for what the merges will drop, which nobody knows before.
    """
    plan: list[LevelPlan] = []
    coming = total_size(version.overlapping(0, begin, end))
    for level in range(version.deepest_level(begin, end)):
        below = total_size(version.overlapping(level + 1, begin, end))
        plan.append(LevelPlan(coming, coming + below if coming > 0 else 0))
        coming += below
    return plan


class Meter:
    """Turns what a level's merge has moved into calls of ``progress``.

    Call order: ``(begin advance*)* finish``.  A merge goes in steps, of which two may read one
    table of the next level, so bytes read would run ahead of the plan; those moved do not.
    """

    def __init__(self, progress: Progress | None, plan: list[LevelPlan]) -> None:
        self.plan = plan
        self._progress = progress
        self._total = _to_read(plan)
        self._before = 0  # what the levels before this one were to read
        self._level = 0
        self._told = 0

    def begin(self, level: int) -> None:
        """The merge of ``level`` begins."""
        self._level = level
        self._before = _to_read(self.plan[:level])
        self._tell(self._before, f"level {level}")

    def advance(self, moved: int) -> None:
        """The merge has moved ``moved`` bytes so far; more than planned is not told."""
        to_move, to_read = self.plan[self._level]
        if to_move > 0:
            done = self._before + to_read * min(moved, to_move) // to_move
            if done > self._told:
                self._tell(done, f"level {self._level}")

    def finish(self) -> None:
        """Everything is merged."""
        self._tell(self._total, "done")

    def _tell(self, done: int, phase: str) -> None:
        self._told = done
        if self._progress is not None:
            self._progress(done, self._total, phase)


def _to_read(plan: list[LevelPlan]) -> int:
    return sum([level.to_read for level in plan])
