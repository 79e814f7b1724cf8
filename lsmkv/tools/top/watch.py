"""Watches a live store: reads its owner's publications, and keeps their course over time.

The screen of ``lsmkv top`` asks :class:`Watch` for its figures.  Nothing here draws or prints.
"""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from lsmkv import Directory, Stats
from lsmkv.engine.errors import Error
from lsmkv.shared.owner import (
    OPERATIONS,
    Histogram,
    Owner,
    ProcessFigures,
    Published,
    read_owner,
)

RECENT = 10.0
"""Seconds over which hit rates and percentiles are taken."""
SILENT = 5.0
"""Seconds after which an owner that publishes once a second is called silent."""
_POINTS = 600


class Window(NamedTuple):
    """The activity in a span of time."""

    seconds: float
    stats: Stats
    """Counters of the span; figures of a state are as at its end."""
    latencies: dict[str, Histogram]
    """The latencies of each kind of operation."""
    processes: tuple[ProcessFigures, ...] = ()
    """The work of each process of a shared store."""

    def rate(self, number: float) -> float:
        """This number, per second."""
        return number / self.seconds

    def operations(self, operation: str) -> int:
        """Operations of this kind.  Of a shared store, Gets of all processes: the owner, which
        measures how long its own take, carries out all other kinds."""
        if operation == "get" and self.processes:
            return self.stats.gets
        return self.latencies[operation].count


class Watch:
    """A store that is watched.  Call order: ``look*``; between looks its fields are read."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.path: str = directory.path
        self.owner = Owner(None, None)
        """At the last look."""
        self.error: Error | None = None
        """The error of the last look, if it failed."""
        self.last: Window | None = None
        """From the publication before to the newest, or from the opening of the store to the first
        one seen; None if nothing is published."""
        self.recent: Window | None = None
        """The last ten seconds."""
        self.times: deque[float] = deque(maxlen=_POINTS)
        """The times of the publications to which rates and percentiles lead: seconds since 1970."""
        self.rates: dict[str, deque[float]] = {}
        """Operations a second, of each kind, from publication to publication."""
        self.p99: deque[float] = deque(maxlen=_POINTS)
        """The 99th percentile of the Gets, in nanoseconds; 0.0 where there were none."""
        self._seen: deque[Published] = deque()

    @property
    def published(self) -> Published | None:
        """The last publication of the live owner; None if there is no such owner."""
        return self._seen[-1] if self._seen else None

    @property
    def silent_seconds(self) -> float:
        """The time for which the owner has published nothing; 0.0 if it publishes regularly."""
        published = self.published
        if published is None:
            return 0.0
        age = time.time() - published.time
        return age if age > SILENT else 0.0

    def look(self) -> None:
        """Read what is published now."""
        try:
            self.owner = read_owner(self._directory)
            self.error = None
        except Error as error:
            self.error = error
            self._forget()
            return
        published = self.owner.published
        if published is None or not self.owner.publishes:
            self._forget()
            return
        before = self.published
        if before is not None and published.time == before.time:
            return
        same = before is not None and (before.pid, before.opened) == (
            published.pid,
            published.opened,
        )
        if before is None or not same or published.time < before.time:
            self._forget()  # another owner, or its clock was set back
            self._begin(published)
        else:
            self._go_on(before, published)

    def _forget(self) -> None:
        self._seen.clear()
        self.last = self.recent = None
        self.rates = {}
        self.times.clear()
        self.p99.clear()

    def _begin(self, published: Published) -> None:
        self._seen.append(published)
        self.last = self.recent = Window(
            max(0.001, published.time - published.opened),
            published.stats,
            {name: published.latencies.get(name, Histogram()) for name in OPERATIONS},
            published.processes,
        )
        self.rates = {operation: deque(maxlen=_POINTS) for operation in OPERATIONS}

    def _go_on(self, before: Published, published: Published) -> None:
        self._seen.append(published)
        while len(self._seen) > 2 and published.time - self._seen[1].time >= RECENT:
            self._seen.popleft()
        last = between(before, published)
        self.last = last
        self.recent = between(self._seen[0], published)
        self.times.append(published.time)
        for operation, rates in self.rates.items():
            rates.append(last.rate(last.operations(operation)))
        self.p99.append(float(last.latencies["get"].percentile(99)))


def between(before: Published, after: Published) -> Window:
    """The activity from one publication to a later one of the same owner."""
    latencies = {
        operation: after.latencies.get(operation, Histogram())
        - before.latencies.get(operation, Histogram())
        for operation in OPERATIONS
    }
    earlier = {(one.pid, one.role): one for one in before.processes}
    processes = [
        _less(one, earlier.get((one.pid, one.role), nothing_yet(one))) for one in after.processes
    ]
    return Window(
        *(max(0.001, after.time - before.time), after.stats - before.stats, latencies),
        tuple(processes),
    )


def nothing_yet(one: ProcessFigures) -> ProcessFigures:
    """The figures of a process that has done nothing."""
    return one._replace(counters={}, writes=Histogram(), without_owner=Histogram())


def _less(after: ProcessFigures, before: ProcessFigures) -> ProcessFigures:
    """The work of a process since; it may be another one with its number."""
    return after._replace(
        counters={
            name: max(0, number - before.counters.get(name, 0))
            for name, number in after.counters.items()
        },
        writes=after.writes - before.writes,
        without_owner=after.without_owner - before.without_owner,
    )
