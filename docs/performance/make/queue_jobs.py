"""How many jobs a second a task queue does: ``python queue_jobs.py LIBRARY PORT JOBS``.

Jobs that do nothing are put into the queue of a server of Redis' protocol, and a worker does them,
which is started by the library's own command.  Celery's worker has two processes and is there from
the start; RQ's, which forks for each job, is started with ``--burst`` when all jobs wait.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import celery
import redis
from rq import Queue

URL = os.environ.get("QUEUE_URL", "")
"""The server's, for Celery's worker, which imports this module."""

app = celery.Celery("queue_jobs", broker=URL, backend=URL)


def nothing() -> None:
    """The job."""


task: Any = app.task(nothing, name="queue_jobs.nothing")


@contextmanager
def worker(module: str, words: str, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker, started as ``python -m``."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *words.split()],
        env=os.environ | {"PYTHONPATH": os.path.dirname(__file__), "QUEUE_URL": url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def of_celery(url: str, jobs: int) -> float:
    """Jobs a second, from the first request to the last result."""
    app.conf.update(broker_url=url, result_backend=url)
    words = "--app queue_jobs worker --concurrency 2 --without-gossip --without-mingle"
    with worker("celery", words, url):
        task.delay().get(timeout=300)
        started = time.perf_counter()
        for result in [task.delay() for _ in range(jobs)]:
            result.get(timeout=300)
        return jobs / (time.perf_counter() - started)


def of_rq(url: str, jobs: int) -> float:
    """Jobs a second, from the first request to the end of the worker."""
    with redis.Redis.from_url(url) as client:
        queue = Queue(connection=client)
        started = time.perf_counter()
        for _ in range(jobs):
            queue.enqueue("queue_jobs.nothing")
        with worker("rq.cli", f"worker --burst --quiet --url {url}", url) as process:
            process.wait()
        took = time.perf_counter() - started
        assert queue.finished_job_registry.count == jobs
        client.flushdb()
    return jobs / took


LIBRARIES: dict[str, Callable[[str, int], float]] = {"Celery": of_celery, "RQ": of_rq}

if __name__ == "__main__":
    _, library, port, jobs = sys.argv
    rate = LIBRARIES[library](f"redis://127.0.0.1:{port}/0", int(jobs))
    sys.stdout.write(f"{rate}\n")
