"""The observer of one open store: it is told of each operation, and keeps what is known of them.

The reader and the writer of ``observed.py`` and the scans of ``seeks.py`` call
:meth:`Observer.note`, in any thread; the publisher reads the latencies.
"""

from __future__ import annotations

import time

from lsmkv.db.observe.histogram import Histogram
from lsmkv.db.observe.trace import OPERATIONS
from lsmkv.db.observe.trace_writer import TraceWriter


class Observer:
    """Latencies of each operation, and the trace, if one is written."""

    def __init__(self, trace: TraceWriter | None) -> None:
        self._trace = trace
        self.latencies = [Histogram() for _ in OPERATIONS]
        """By the operation's number less one."""
        self.stalled_since = 0.0
        """When the write stall under way began (``time.monotonic``); 0.0 if there is none."""

    def note(self, operation: int, key: bytes, started: int, size: int, operations: int) -> None:
        """An operation that began at ``started`` (``time.perf_counter_ns``) has just ended.

        ``size`` and ``operations`` are those of :class:`TraceRecord`; a size of -1 is none.
        """
        duration = time.perf_counter_ns() - started
        self.latencies[operation - 1].add(duration)
        if self._trace is not None:
            self._trace.add((operation, key, started, duration, size, operations))

    @property
    def stalled_seconds(self) -> float:
        """For how long writers have been waiting; 0.0 if none waits."""
        since = self.stalled_since
        return time.monotonic() - since if since > 0 else 0.0
