"""Executors of this machine, and the adapter for Ray's interface."""

from __future__ import annotations

import os
import signal
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace
from typing import Any

import pytest

from lsmkv.bulk.workers import RayExecutor, Workers


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_dead_processes_are_replaced() -> None:
    with Workers(2) as workers:
        for n in range(3):
            with pytest.raises(BrokenProcessPool):
                workers.submit(die, n).result()
            assert workers.submit(abs, -n).result() == n
    with pytest.raises(RuntimeError, match="shut down"):
        workers.submit(abs, 1)


def test_a_pool_has_a_process() -> None:
    with pytest.raises(ValueError, match="a pool of 0 processes"):
        Workers(0)


class Reference:
    """What Ray's remote call returns, of a call that was made at once."""

    def __init__(self, call: Any) -> None:
        self.made: Future[Any] = Future()
        try:
            self.made.set_result(call())
        except Exception as error:
            self.made.set_exception(error)

    def future(self) -> Future[Any]:
        return self.made


def test_ray_runs_a_call_as_a_task() -> None:
    asked: list[dict[str, Any]] = []

    def remote(**options: Any) -> Any:
        asked.append(options)
        return lambda function: SimpleNamespace(
            remote=lambda *args: Reference(lambda: function(*args))
        )

    with RayExecutor(SimpleNamespace(remote=remote, cancel=None), memory=5) as executor:
        assert executor.submit(pow, 2, exp=5).result() == 32
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result()
    assert asked == [{"num_cpus": 1, "memory": 5}]
