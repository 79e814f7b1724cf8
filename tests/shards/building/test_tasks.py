"""Running tasks: order, what is run again, and what is not."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from lsmkv.errors import CorruptionError
from lsmkv.shards.building.tasks import TaskRunner, may_pass


class KilledWorker(Exception):
    """As an executor's own error."""


class Inline(Executor):
    """Runs a call when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


class DyingPool(Inline):
    """Loses its first calls, all at once, as a pool does when one of its processes dies."""

    def __init__(self, calls: int) -> None:
        self.lost: list[Future[Any]] = []
        self.calls = calls

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if len(self.lost) == self.calls:
            return super().submit(fn, *args, **kwargs)
        self.lost.append(Future())
        if len(self.lost) == self.calls:
            for future in self.lost:
                future.set_exception(BrokenExecutor("a process died"))
        return self.lost[-1]


class Pure(Inline):
    """Answers a call that equals an earlier one with the same future, as Dask does."""

    def __init__(self) -> None:
        self.known: dict[object, Future[Any]] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        call = (fn, args)
        if call not in self.known:
            self.known[call] = super().submit(fn, *args, **kwargs)
        return self.known[call]


def runner(
    executor: Executor | None, function: Callable[[int], int], attempts: int = 3
) -> tuple[TaskRunner[int, int], list[tuple[int, int]]]:
    reports: list[tuple[int, int]] = []
    return TaskRunner(executor, function, attempts, lambda *step: reports.append(step)), reports


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_results_come_in_the_order_of_the_tasks(threads: int) -> None:
    if threads == 0:
        tasks, reports = runner(None, lambda n: n * n)
        assert tasks.run(range(600)) == [n * n for n in range(600)]
    else:
        with ThreadPoolExecutor(threads) as pool:
            tasks, reports = runner(pool, lambda n: n * n)
            assert tasks.run(range(600)) == [n * n for n in range(600)]
    assert reports[-1] == (600, 600)
    assert [done for done, _ in reports] == list(range(1, 601))


def test_no_tasks_have_no_results() -> None:
    assert runner(None, abs)[0].run([]) == []
    assert runner(Inline(), abs)[0].run([]) == []


@pytest.mark.parametrize("error", [KilledWorker("lost"), OSError(errno.ECONNRESET, "reset")])
def test_a_lost_task_is_run_again(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []

    def fail_twice(n: int) -> int:
        calls.append(n)
        if n == 1 and calls.count(1) < 3:
            raise error
        return n

    with caplog.at_level(logging.WARNING, "lsmkv"):
        assert runner(Inline(), fail_twice, attempts=3)[0].run(range(3)) == [0, 1, 2]
    assert calls.count(1) == 3
    assert "bulk task 1 is run again" in caplog.text


def test_all_tasks_that_a_pool_loses_at_once_are_run_again() -> None:
    assert runner(DyingPool(100), abs, attempts=2)[0].run(range(100)) == list(range(100))


def test_an_attempt_is_no_repetition_of_the_one_before() -> None:
    calls: list[int] = []

    def fail_once(n: int) -> int:
        calls.append(n)
        if len(calls) == 1:
            raise KilledWorker("lost")
        return n

    assert runner(Pure(), fail_once)[0].run([7]) == [7]
    assert calls == [7, 7]


def test_a_task_that_is_always_lost_ends_the_build() -> None:
    calls: list[int] = []

    def fail(n: int) -> int:
        calls.append(n)
        raise KilledWorker(f"task {n}")

    with pytest.raises(KilledWorker):
        runner(Inline(), fail, attempts=4)[0].run([7])
    assert calls == [7] * 4


@pytest.mark.parametrize(
    "error",
    [
        ValueError("wrong"),
        TypeError("wrong"),
        CorruptionError("damaged"),
        PermissionError(errno.EACCES, "denied"),
        FileNotFoundError(errno.ENOENT, "missing"),
        MemoryError(),
        KeyboardInterrupt(),
    ],
)
def test_an_error_of_the_task_itself_is_raised_at_once(error: BaseException) -> None:
    calls: list[int] = []

    def fail(n: int) -> int:
        calls.append(n)
        raise error

    with pytest.raises(type(error)):
        runner(Inline(), fail)[0].run([1, 2])
    assert calls == [1, 2]  # both had been submitted


def test_what_may_pass() -> None:
    assert may_pass(BrokenExecutor("a worker died"))
    assert may_pass(TimeoutError(errno.ETIMEDOUT, "late"))
    assert not may_pass(OSError(errno.ENOTSUP, "never"))


def test_waiting_tasks_are_cancelled_after_an_error() -> None:
    with ThreadPoolExecutor(1) as pool:
        begun: list[int] = []

        def work(n: int) -> int:
            begun.append(n)
            if n == 0:
                raise ValueError("no")
            return n

        with pytest.raises(ValueError, match="no"):
            runner(pool, work)[0].run(range(200))
        pool.submit(int).result()
    assert len(begun) < 200
