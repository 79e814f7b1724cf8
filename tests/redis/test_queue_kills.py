"""A few of the kills of ``queue_kills.py``; ``make test-queues`` has as many as are wanted."""

from __future__ import annotations

from pathlib import Path

import pytest
from queue_kills import Sitting

KILLS = 2
POPPED = {"celery": 3 * KILLS}
"""Jobs that may be lost.

Celery takes a job out of its list, and notes in a second step that it has it.  A kill between the
two loses the job, on Redis too: one for each worker, of which a dying server has two.
"""


@pytest.mark.parametrize("library", ["celery", "rq", "dramatiq"])
def test_no_job_is_lost_when_servers_and_workers_are_killed(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    figures = Sitting(library, "lsmkv", tmp_path).run(KILLS)
    assert figures.wrong == []
    assert figures.again == []
    assert len(figures.lost) <= POPPED.get(library, 0)
    assert figures.kept > KILLS
