"""Executors of this machine, and the adapter for Ray's interface."""

from __future__ import annotations

import os
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deadly_tasks import die, pairs_unless_killed
from processes import start

import lsmkv.bulk
import lsmkv.shards
from lsmkv.shards.building.workers import RayExecutor, Workers


def test_dead_processes_are_replaced() -> None:
    with Workers(2) as workers:
        for n in range(3):
            with pytest.raises(BrokenProcessPool):
                workers.submit(die, n).result()
            assert workers.submit(abs, -n).result() == n
    with pytest.raises(RuntimeError, match="shut down"):
        workers.submit(abs, 1)


def test_a_pool_has_a_process() -> None:
    with pytest.raises(ValueError, match="processes must be 1 or more"):
        Workers(0)


_BUILDER = """
import os, sys
from concurrent.futures import wait
from lsmkv.bulk import Workers

if __name__ == "__main__":
    workers = Workers(2)
    print(*{workers.submit(os.getpid).result() for _ in range(20)}, flush=True)
    sys.stdin.read()
"""


def is_alive(process: int) -> bool:
    """Whether it runs: one that was ended, and is not waited for, does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_workers_end_with_a_process_that_is_killed() -> None:
    with start(_BUILDER) as builder:
        assert builder.stdout is not None
        workers = [int(word) for word in builder.stdout.readline().split()]
        assert workers
        assert all(map(is_alive, workers))
        builder.kill()
    ends = time.monotonic() + 20
    while any(map(is_alive, workers)) and time.monotonic() < ends:
        time.sleep(0.01)
    assert not any(map(is_alive, workers))


def parts(directory: Path, times: int) -> list[Any]:
    names = [str(directory / f"killed{number}") for number in (0, 1)]
    killed = [partial(pairs_unless_killed, 0, names[0], times)]
    killed += [partial(pairs_unless_killed, 100, names[1], times)]
    return [*killed, partial(pairs_unless_killed, 200, "", 0)]


def pools() -> list[Any]:
    spawn = partial(ProcessPoolExecutor, 2, get_context("spawn"))
    return [pytest.param(partial(Workers, 2), id="Workers"), pytest.param(spawn, id="plain pool")]


@pytest.mark.parametrize("pool", pools())
def test_a_build_goes_on_when_a_worker_is_killed(tmp_path: Path, pool: Any) -> None:
    with pool() as executor:
        lsmkv.bulk.build(parts(tmp_path, 1), tmp_path / "set", shards=2, executor=executor)
    with lsmkv.shards.open(tmp_path / "set") as found:
        assert sum(1 for _ in found) == 300
    assert sorted(os.listdir(tmp_path / "set")) == ["shards", "versions"]


@pytest.mark.parametrize("pool", pools())
def test_a_task_that_kills_each_worker_ends_the_build(tmp_path: Path, pool: Any) -> None:
    with (
        pool() as executor,
        pytest.raises(lsmkv.Error, match=r"bulk task [0-8] has lost its worker 2 times"),
    ):
        lsmkv.bulk.build(parts(tmp_path, 9), tmp_path / "set", executor=executor, attempts=2)


class TakesNothing(Executor):
    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        raise BrokenExecutor("a worker died")


def test_an_executor_that_takes_nothing_more_ends_the_build(tmp_path: Path) -> None:
    with pytest.raises(lsmkv.Error, match=r"takes no more tasks \(lsmkv.bulk.Workers"):
        lsmkv.bulk.build([(b"k", b"v")], tmp_path / "set", executor=TakesNothing())


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
