"""A few of the kills of ``queue_kills.py``; ``make test-queues`` has as many as are wanted."""

from __future__ import annotations

from pathlib import Path

import pytest
from queue_child import LIBRARIES
from queue_kills import JAVASCRIPT, Sitting, missing

KILLS = 2
POPPED = {
    "celery": 3 * KILLS,
    "huey": 6 * KILLS,
    "huey_priority": 6 * KILLS,
    "channels_redis": 2 * KILLS,
    "saq": 3 * KILLS,
}
"""Jobs that may be lost.

Celery takes a job out of its list, and notes in a second step that it has it.  A kill between the
two loses the job, on Redis too: one for each worker, of which a dying server has two.  So does
channels_redis, which has one.  Huey takes no notes, and has two threads in each of two consumers.
saq takes a job that nobody finishes out of its lists, waits, and then puts it back.
"""
MODULES = {"huey_priority": "huey", "redis_py_lock": "redis"}
"""What is imported, where it has another name."""


@pytest.mark.parametrize("library", [*LIBRARIES, *JAVASCRIPT])
def test_nothing_is_lost_when_servers_and_workers_are_killed(library: str, tmp_path: Path) -> None:
    absent = missing(library)
    if absent is not None:
        pytest.skip(f"{absent} is not installed")
    if library not in ("arq", *JAVASCRIPT):
        pytest.importorskip(MODULES.get(library, library))
    figures = Sitting(library, "lsmkv", tmp_path).run(KILLS)
    assert figures.wrong == []
    assert figures.again == []
    assert len(figures.lost) <= POPPED.get(library, 0)
    assert figures.kept > KILLS


def test_libraries_in_javascript_are_left_out_without_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert [missing(library) for library in JAVASCRIPT] == ["node, for bullmq", "node, for bull"]
