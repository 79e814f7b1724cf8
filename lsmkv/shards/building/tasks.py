"""Runs the tasks of a bulk build on an executor, and repeats tasks that were lost with a worker."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import Generic, TypeVar

from lsmkv.engine.errors import Error
from lsmkv.shards.remote.objects.base import PERMANENT_ERRNOS

Task = TypeVar("Task")
Result = TypeVar("Result")

_LOG = logging.getLogger("lsmkv")
_WAIT = 0.5  # seconds between checks for Ctrl-C
_AHEAD = 256


class TaskRunner(Generic[Task, Result]):
    """Runs one function on many tasks; the results are in the order of the tasks."""

    def __init__(
        self,
        executor: Executor | None,
        function: Callable[[Task], Result],
        attempts: int,
        report: Callable[[int, int], None],
    ) -> None:
        """Without an ``executor`` the calls run here, one by one.

        ``report(done, begun)`` is called after each task.  A task whose worker died, or whose
        network failed, is run again.  After ``attempts`` failures without another completed task in
        between, its error is raised, or :class:`Error` if its worker died.  Other errors are raised
        immediately.  Raises :class:`Error` also if the executor takes no more tasks.
        """
        self._executor = executor
        self._function = function
        self._attempts = attempts
        self._report = report
        self._waiting: dict[Future[Result], tuple[int, Task]] = {}
        self._results: dict[int, Result] = {}
        self._failures: Counter[int] = Counter()  # per task, since any task has completed
        self._serial = itertools.count()

    def run(self, tasks: Iterable[Task]) -> list[Result]:
        """Run all tasks; after an error or Ctrl-C, cancel those that have not started."""
        if self._executor is None:
            return list(self._run_here(tasks))
        begun = 0
        try:
            for number, task in enumerate(tasks):
                begun += 1
                self._submit(self._executor, number, task)
                while len(self._waiting) >= _AHEAD:
                    self._collect(self._executor, begun)
            while self._waiting:
                self._collect(self._executor, begun)
        finally:
            for future in self._waiting:
                future.cancel()
        return [self._results[number] for number in range(begun)]

    def _run_here(self, tasks: Iterable[Task]) -> Iterator[Result]:
        for number, task in enumerate(tasks, 1):
            yield self._function(task)
            self._report(number, number)

    def _submit(self, executor: Executor, number: int, task: Task) -> None:
        try:
            call = executor.submit(_call, self._function, task, next(self._serial))
        except BrokenExecutor as error:
            reason = "the executor has lost a worker and takes no more tasks"
            raise Error(f"{reason} (lsmkv.bulk.Workers replaces them): {error}") from error
        self._waiting[call] = number, task

    def _collect(self, executor: Executor, begun: int) -> None:
        """Wait until some task has ended, and take the results of those that have."""
        ended, _ = wait(self._waiting, _WAIT, FIRST_COMPLETED)
        lost: list[tuple[int, Task]] = []
        for future in ended:
            number, task = self._waiting.pop(future)
            error = future.exception()
            if error is None:
                self._results[number] = future.result()
                self._failures.clear()
                self._report(len(self._results), begun)
            else:
                self._note(number, error)
                lost.append((number, task))
        for number, task in lost:
            self._submit(executor, number, task)

    def _note(self, number: int, error: BaseException) -> None:
        # A dead worker, or pool of workers, fails many tasks at once: each counts as one failure.
        self._failures[number] += 1
        if not may_pass(error):
            raise error
        if self._failures[number] >= self._attempts:
            if isinstance(error, BrokenExecutor):
                times = self._failures[number]
                raise Error(f"bulk task {number} has lost its worker {times} times") from error
            raise error
        _LOG.warning("bulk task %d is run again: %s: %s", number, type(error).__name__, error)


def _call(function: Callable[[Task], Result], task: Task, serial: int) -> Result:
    """Call the function.  ``serial`` differs between attempts.

    Dask treats equal calls as one, and would return the first attempt's error for the second.
    """
    return function(task)


def may_pass(error: BaseException) -> bool:
    """True if a task with this error may succeed when it is run again.

    True for a transient failure of a network or disk, and for the error of an executor that loses a
    worker.  An error from lsmkv or from Python would be repeated.
    """
    if isinstance(error, OSError):
        return error.errno not in PERMANENT_ERRNOS
    if isinstance(error, Error) or not isinstance(error, Exception):
        return False
    return type(error).__module__ not in ("builtins", "pickle", "_pickle")
