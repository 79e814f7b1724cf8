"""The observer of one open store: it listens to each operation, and keeps what is known of them.

The store's reader, writer and scans call it, in any thread; the publisher reads the latencies.
"""

from __future__ import annotations

import time

from lsmkv.engine.db.observe.histogram import Histogram
from lsmkv.engine.db.observe.trace import DELETE, GET, OPERATIONS, PUT, SEEK, WRITE
from lsmkv.engine.db.observe.trace_writer import TraceWriter
from lsmkv.engine.db.tree.listener import CallListener
from lsmkv.engine.format.batch import Operation


class Observer(CallListener):
    """Latencies of each operation, and the trace, if one is written."""

    def __init__(self, trace: TraceWriter | None) -> None:
        self._trace = trace
        self.latencies = [Histogram() for _ in OPERATIONS]
        """By the operation's number less one."""

    def got(self, key: bytes, started: int, value: bytes | None) -> None:
        """Note a Get; also one of ``multi_get`` or of a snapshot."""
        self.note(GET, key, started, -1 if value is None else len(value), 1)

    def wrote(self, operations: list[Operation], started: int) -> None:
        """Note a put, a delete, or a batch of several."""
        if len(operations) == 1:
            key, value = operations[0]
            if value is None:
                self.note(DELETE, key, started, -1, 1)
            else:
                self.note(PUT, key, started, len(value), 1)
        elif operations:
            size = sum(len(key) + (0 if value is None else len(value)) for key, value in operations)
            self.note(WRITE, operations[0][0], started, size, len(operations))

    def sought(self, key: bytes, started: int, value: bytes | None) -> None:
        """Note a seek of an iterator."""
        self.note(SEEK, key, started, -1 if value is None else len(value), 1)

    def note(self, operation: int, key: bytes, started: int, size: int, operations: int) -> None:
        """Note an operation that began at ``started`` (``time.perf_counter_ns``) and has just
        ended.

        ``size`` and ``operations`` are those of :class:`TraceRecord`; a size of -1 means none.
        """
        duration = time.perf_counter_ns() - started
        self.latencies[operation - 1].add(duration)
        if self._trace is not None:
            self._trace.add((operation, key, started, duration, size, operations))
