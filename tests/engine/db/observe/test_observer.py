"""lsmkv.engine.db.observe.observer: it keeps what it receives, by operation."""

from __future__ import annotations

import time

from threads import run_threads

from lsmkv.engine.db.observe.observer import Observer
from lsmkv.engine.db.observe.trace import GET, OPERATIONS, SEEK


def test_latencies_are_kept_by_operation() -> None:
    observer = Observer(None)
    before = time.perf_counter_ns() - 5_000_000
    observer.note(GET, b"k", before, 3, 1)
    observer.note(GET, b"k", before, -1, 1)
    observer.note(SEEK, b"", before, 1, 1)
    counts = dict(zip(OPERATIONS, [it.count for it in observer.latencies], strict=True))
    assert counts == {"get": 2, "put": 0, "delete": 0, "write": 0, "seek": 1}
    assert observer.latencies[GET - 1].percentile(1) >= 5_000_000


def test_threads_may_note_at_the_same_time() -> None:
    observer = Observer(None)

    def note() -> None:
        for _ in range(1000):
            observer.note(GET, b"k", time.perf_counter_ns(), 0, 1)

    assert run_threads(note, note, note) == []
    assert 2000 < observer.latencies[GET - 1].count <= 3000
