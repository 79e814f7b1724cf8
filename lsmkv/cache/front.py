"""Values beside their heads, and the reclaiming of their space: :class:`Front`.

A value of 1 KiB to 1 MiB is stored under its number, which grows with time.  ``flush_prefix`` makes
tables of such values alone.  These overlap no other table, so they go directly to a deep level, and
no compaction rewrites them.  An entry that is replaced or removed loses its head and its indexes,
and its value stays: nothing is deleted one by one.

The entries are in the order of eviction as their values are in the tables.  So all values before
that of the first entry are dead, and go as whole tables (:meth:`lsmkv.DB.delete_range`).  The
floor, a key of the store, says up to where they go: a step that stores a value reads it and takes a
number above it.  So a value is stored before the floor is raised, and then the second look at the
first entry finds it, or the step fails, and runs again.

Where values are replaced and the first entries stay, dead values are between live ones.  Then the
first entries are put last, or removed, to make way (as in a log-structured store: M. Rosenblum and
J. K. Ousterhout, The Design and Implementation of a Log-Structured File System, 1992).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from lsmkv.cache.atomic_steps import Step, Steps
from lsmkv.cache.culling import Removed, evict_first
from lsmkv.cache.keys import (
    CHUNK,
    EVICTION,
    EVICTION_END,
    FLOOR,
    MICROSECOND,
    NUMBER_SIZE,
    POSITION_SIZE,
    VALUE,
    moment,
    number_moment,
    position_number,
)

_START: Final = CHUNK + bytes([0xFF]) * (NUMBER_SIZE + 5)
"""Before all values, and not one of their keys: it is deleted, and goes into another table."""
_STEP: Final = 100
"""Entries that a step which makes way looks at."""


class Front:
    """The first entries in the order of eviction.  Any thread may call any method."""

    def __init__(self, steps: Steps, clock: Callable[[], float]) -> None:
        self._steps = steps
        self._clock = clock
        self._start = EVICTION
        """A key before the first entry, as far as this handle knows."""

    def evict(self, limit: int, excess: Callable[[], int], keeps: bool = False) -> Removed:
        """One step of :func:`~lsmkv.cache.culling.evict_first` at the first ``limit`` entries."""

        def step_of(step: Step) -> Removed:
            return evict_first(step, self._start, limit, excess(), self._clock(), keeps)

        evicted = self._steps.run(step_of)
        self._start = evicted.end if evicted.looked else EVICTION
        return evicted

    def has_values(self) -> bool:
        """True if there are values beside heads, which are not deleted one by one."""
        if not self._steps.keeps_values:
            return False
        scan = self._steps.db.iterator(prefix=VALUE, include_value=False, limit=1)
        return next(iter(scan), None) is not None

    def advance(self) -> None:
        """Drop the values before the first entry's.  Cost: that of ``DB.delete_range``."""
        floor = self._first()
        self._steps.run(partial(_raise_floor, floor))
        floor = min(floor, self._first())
        self._steps.db.delete_range(_START, VALUE + floor, tables_only=True)

    def make_way(self, size: int, keeps: bool, goes_on: Callable[[], bool]) -> None:
        """Have ``size`` bytes of values before the first entry's.

        The entries there are put last; those that were not read are removed unless ``keeps``.
        """
        end = EVICTION + moment(self._clock())
        while goes_on() and self._start < end and self._dead() < size:
            if not self.evict(_STEP, lambda: 1 << 62, keeps).looked:
                return

    def stay(self, now: float) -> float:
        """The seconds since the first entry was stored or put last."""
        floor = self._steps.db.get(FLOOR)
        if floor is not None:
            self._start = max(self._start, EVICTION + number_moment(floor))
        scan = self._steps.db.iterator(start=self._start, stop=EVICTION_END, include_value=False)
        for key in scan:
            self._start = key
            return now - position_number(key[1 : 1 + POSITION_SIZE]) / 1e6
        return 0.0

    def _dead(self) -> int:
        """Bytes of tables with values before the first entry's."""
        return self._steps.db.approximate_size(VALUE, VALUE + _nanoseconds(self._start[1:]))

    def _first(self) -> bytes:
        """The nanosecond before which no value is one of an entry."""
        for key in self._steps.db.iterator(prefix=EVICTION, include_value=False, limit=1):
            self._start = key
            return _nanoseconds(key[1:])
        return _nanoseconds(moment(self._clock()))


def _nanoseconds(position: bytes) -> bytes:
    micro = position_number(position[:POSITION_SIZE]) if len(position) >= POSITION_SIZE else 0
    return min(micro * MICROSECOND, (1 << 64) - 1).to_bytes(8, "big")


def _raise_floor(floor: bytes, step: Step) -> None:
    before = step.get(FLOOR)
    if before is None or before < floor:
        step.put(FLOOR, floor)
        step.changed = True
