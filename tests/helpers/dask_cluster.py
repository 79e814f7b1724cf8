"""A scheduler and workers of Dask on this machine, each a process that can be killed."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tethered import Tethered

_RUN = """
import runpy
sys.argv[:] = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
_QUIET = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file")


class DaskCluster:
    """One scheduler, and workers with one thread each, which no nanny restarts."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        self._directory = directory
        self._file = directory / "scheduler.json"
        self._begun = 0
        with contextlib.ExitStack() as stack:
            self._scheduler = stack.enter_context(self._start("dask_scheduler", "--port", "0"))
            self.address = self._read_address()
            self.workers = [stack.enter_context(self._start_worker()) for _ in range(workers)]
            stack.pop_all()

    def kill_worker(self, index: int) -> None:
        """End a worker by SIGKILL, and start another in its place."""
        assert self.workers[index].kill()
        self.workers[index] = self._start_worker()

    @contextlib.contextmanager
    def client(self) -> Iterator[Any]:
        """A ``distributed.Client``, once all workers are there."""
        import distributed

        with distributed.Client(self.address, timeout=30) as client:
            client.wait_for_workers(len(self.workers), timeout=60)
            yield client

    def close(self) -> None:
        """End all processes."""
        for process in (*self.workers, self._scheduler):
            process.kill()

    def _start_worker(self) -> Tethered:
        return self._start(
            "dask_worker",
            *("--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--death-timeout", "60"),
            *("--local-directory", str(self._directory)),
        )

    def _start(self, module: str, *options: str) -> Tethered:
        self._begun += 1
        log = self._directory / f"{module}-{self._begun}.log"
        words = (f"distributed.cli.{module}", *_QUIET, str(self._file), *options)
        return Tethered(_RUN, *words, log=log)

    def _read_address(self) -> str:
        """The scheduler's address, once it has written the file of it."""
        while self._scheduler.is_alive:
            try:
                return str(json.loads(self._file.read_text())["address"])
            except (FileNotFoundError, ValueError):
                time.sleep(0.02)
        raise RuntimeError((self._directory / "dask_scheduler-1.log").read_text())
