"""The threads in which the calls of one store run, and how cancellation affects a call.

The event loop gives each call to a thread and awaits its result.  All methods run in the event loop
that opened the store, so they take no lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, ParamSpec, TypeVar

from lsmkv.engine.errors import ClosedError
from lsmkv.engine.util.signals import deferred

CALL_THREADS = 3
"""Threads for calls.  One more runs the long calls: ``compact_range``, ``delete_range``,
``ingest``, ``verify``, ``check``."""

P = ParamSpec("P")
T = TypeVar("T")


class CallThreads:
    """The threads of one store, and the calls that they run."""

    def __init__(self, threads: int = CALL_THREADS) -> None:
        self._calls = ThreadPoolExecutor(threads, thread_name_prefix="lsmkv-aio")
        self._long = ThreadPoolExecutor(1, thread_name_prefix="lsmkv-aio-long")
        self._waits = ThreadPoolExecutor(1, thread_name_prefix="lsmkv-aio-wait")
        self._pending: set[Future[Any]] = set()
        self._end: Future[None] | None = None

    @property
    def ended(self) -> bool:
        """True if :meth:`end` was called."""
        return self._end is not None

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in a thread and return its result.

        A cancelled call is dropped if no thread has started it; otherwise it is waited for.
        """
        self._refuse_if_ended()
        with deferred:
            call = self._calls.submit(function, *args, **kwargs)
            self._pending.add(call)
            call.add_done_callback(self._pending.discard)
            done = asyncio.wrap_future(call)
        return await outcome(call, done)

    async def run_long(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in the thread for long calls; it continues even if the caller is
        cancelled."""
        self._refuse_if_ended()
        with deferred:
            done = asyncio.wrap_future(self._long.submit(function, *args, **kwargs))
        return await done

    def wait_for(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Begin a call that waits until something happens, or the store is closed.

        Such calls have a separate thread, one for all of them.
        """
        self._refuse_if_ended()
        with deferred:
            return self._waits.submit(function, *args, **kwargs)

    async def end(self, last: Callable[[], None]) -> None:
        """Wait for the earlier calls, run ``last``, and end the threads.

        Long calls and waits are waited for only after ``last``, which ends them.  A cancelled end
        continues, and a second caller waits for the same end.
        """
        with deferred:
            if self._end is None:
                closer = ThreadPoolExecutor(1, thread_name_prefix="lsmkv-aio-close")
                self._end = closer.submit(self._end_in_thread, last)
                closer.shutdown(wait=False)
            done = asyncio.wrap_future(self._end)
        await outcome(self._end, done, may_drop=False)

    def _end_in_thread(self, last: Callable[[], None]) -> None:
        wait(list(self._pending))
        try:
            last()
        finally:
            self._calls.shutdown()
            self._long.shutdown()
            self._waits.shutdown()

    def _refuse_if_ended(self) -> None:
        if self._end is not None:
            raise ClosedError("the database is closed")


async def outcome(call: Future[T], done: asyncio.Future[T], may_drop: bool = True) -> T:
    """The result of a call in a thread, once the call is over; ``done`` is its future in the loop.

    If the awaiting task is cancelled meanwhile, the call is dropped if ``may_drop`` is true and no
    thread has started it.  Otherwise it is waited for, and the cancellation continues afterwards.
    """
    cancelled: asyncio.CancelledError | None = None
    while True:
        try:
            # Cancelling ``done`` drops a call that has not started.
            result = await (done if may_drop else asyncio.shield(done))
        except asyncio.CancelledError as error:
            cancelled = error
            if call.done():
                raise
            with deferred:
                done = asyncio.wrap_future(call)
        except BaseException:
            if cancelled is not None:  # a cancelled task does not need the error
                raise cancelled from None
            raise
        else:
            if cancelled is not None:
                raise cancelled
            return result
