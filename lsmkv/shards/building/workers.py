"""Executors for bulk builds: processes on this machine, and Ray's tasks.

Any other :class:`concurrent.futures.Executor` also works: for Dask, ``Client.get_executor()``.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from threading import Lock
from typing import Any, Never, ParamSpec, TypeVar

from lsmkv.engine.util.copying import refuse_copy

P = ParamSpec("P")
T = TypeVar("T")


class _Renewing(Executor):
    """A pool that is replaced by a new one when a submitted task finds it broken."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._lock = Lock()
        self._shut = False
        self._pool = pool

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call ``fn`` in a process: see :meth:`concurrent.futures.Executor.submit`."""
        with self._lock, _without_interrupts():
            if self._shut:
                raise RuntimeError("the workers were shut down")
            try:
                return self._pool.submit(fn, *args, **kwargs)
            except BrokenProcessPool:
                self._end_pool(wait=True, cancel_futures=False)  # all its processes are dead
                self._pool = self._new_pool()
                return self._pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes.  A second call has no effect."""
        with self._lock:
            self._shut = True
        self._end_pool(wait, cancel_futures)

    def _end_pool(self, wait: bool, cancel_futures: bool) -> None:
        self._pool.shutdown(wait, cancel_futures=cancel_futures)

    def _new_pool(self) -> ProcessPoolExecutor:
        raise NotImplementedError


class Workers(_Renewing):
    """Processes on this machine that are replaced when they die.

    :class:`~concurrent.futures.ProcessPoolExecutor` is unusable once one of its processes was
    killed, for example because memory ran out: every task under way fails.  Here the next task that
    is submitted finds a new pool.  Costs what that pool costs: 0.1 s for each process.  The errors
    are the pool's; ``RuntimeError`` after ``shutdown``.

    They import the program's main module, so a script must do its work under ``if __name__ ==
    "__main__":``.  They end with the process that made them, even if it is killed.

    >>> with Workers(2) as workers:
    ...     workers.submit(abs, -7).result()
    7
    >>> workers.shutdown()
    """

    def __init__(self, processes: int) -> None:
        """``ValueError`` for fewer than one process."""
        if processes < 1:
            raise ValueError(f"processes must be 1 or more, not {processes}")
        self._processes = processes
        super().__init__(self._new_pool())

    def __reduce__(self) -> Never:
        refuse_copy("an executor", "it holds processes: create another one in that process")

    def _new_pool(self) -> ProcessPoolExecutor:
        # A fork would copy the locks of this process's threads.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._processes, mp_context=context, initializer=_begin_worker)


class RenewedPool(_Renewing):
    """A :class:`~concurrent.futures.ProcessPoolExecutor` that is replaced by a similar one if it
    breaks.

    ``shutdown`` ends a pool that was made here.  The given pool belongs to the caller.
    """

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        super().__init__(pool)
        self._given = pool

    def _end_pool(self, wait: bool, cancel_futures: bool) -> None:
        if self._pool is not self._given:
            super()._end_pool(wait, cancel_futures)

    def _new_pool(self) -> ProcessPoolExecutor:
        given: Any = self._given  # its settings have no public names
        return ProcessPoolExecutor(
            given._max_workers, given._mp_context, given._initializer, given._initargs
        )


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Keep SIGINT from processes that the block starts, until they are ready for it.

    Ctrl-C goes to all processes of a terminal.  In this process, another thread takes it, or it
    arrives at the end of the block.  Windows cannot hold a signal back.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker() -> None:
    """End this process silently at Ctrl-C: the process that started it reports the interruption.

    End it also with that process.  The pipe from which it reads tasks does not close then, because
    every process of the pool also has the other end.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, name="lsmkv parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        signal.raise_signal(signal.SIGINT)


class RayExecutor(Executor):
    """Runs each call as a Ray task.  The caller connects with ``ray.init``.

    ``ray`` is the module, and ``options`` are those of ``ray.remote``, such as ``num_cpus=1``.  A
    call costs what a task of Ray costs, about a millisecond; it raises Ray's errors.

    >>> from concurrent.futures import Future
    >>> from types import SimpleNamespace
    >>> class Reference:  # as Ray has them, but made here
    ...     def __init__(self, function, *arguments):
    ...         self.made = Future()
    ...         self.made.set_result(function(*arguments))
    ...     def future(self):
    ...         return self.made
    >>> def remote(**options):
    ...     return lambda call: SimpleNamespace(remote=lambda *args: Reference(call, *args))
    >>> with RayExecutor(SimpleNamespace(remote=remote, cancel=None)) as executor:
    ...     executor.submit(pow, 2, 5).result()
    32
    >>> executor.shutdown()
    """

    def __init__(self, ray: Any, **options: Any) -> None:
        self._remote = ray.remote(**{"num_cpus": 1, **options})(_call)
        self._cancel = ray.cancel
        self._references: dict[Future[Any], Any] = {}

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call ``fn`` in a task: see :meth:`concurrent.futures.Executor.submit`."""
        reference = self._remote.remote(fn, args, kwargs)
        future: Future[T] = reference.future()
        self._references[future] = reference
        future.add_done_callback(lambda done: self._references.pop(done, None))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the tasks, or cancel them; Ray stays connected."""
        for future, reference in list(self._references.items()):
            if cancel_futures:
                self._cancel(reference)
            if wait:
                future.exception()

    def __reduce__(self) -> Never:
        refuse_copy("an executor", "it belongs to one process: create another one in that process")


def _call(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    return function(*args, **kwargs)
