"""Lets any number of tasks wait for the next write, in one thread for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future

from lsmkv.aio.threads import CallThreads
from lsmkv.engine.util.signals import deferred

_LONGEST_WAIT = 60.0
"""Seconds of one wait in the thread."""


class ChangeWatch:
    """Waits for changes of one store.  Its methods run in the event loop.

    One call at a time waits in the thread, for a write after the last one that is known; each task
    that it wakes compares the result with what the task waits for.
    """

    def __init__(self, threads: CallThreads, wait: Callable[[int, float], int]) -> None:
        """``wait`` waits for a write after a sequence, for so many seconds, and returns the last
        sequence."""
        self._threads = threads
        self._wait = wait
        self._last = -1
        self._call: Future[int] | None = None

    async def changed(self, sequence: int, known: int, seconds: float | None = None) -> int:
        """Wait for a write after ``sequence``, and return the last sequence.

        ``known`` is the last sequence that the caller knows of.  After so many ``seconds`` it
        returns the last that this process knows of.
        """
        loop = asyncio.get_running_loop()
        until = None if seconds is None else loop.time() + seconds
        self._last = max(self._last, known)
        while self._last <= sequence:
            left = None if until is None else until - loop.time()
            if left is not None and left <= 0:
                break
            call = self._call
            if call is None or call.done():
                call = self._threads.wait_for(self._wait, self._last, _LONGEST_WAIT)
                self._call = call
            # The call goes on when this task is cancelled: others may wait for it.
            with deferred:
                waiting = asyncio.wrap_future(call)
            waiting.add_done_callback(_retrieve)
            done, _ = await asyncio.wait({waiting}, timeout=left)
            for one in done:
                self._last = one.result()
        return self._last


def _retrieve(call: asyncio.Future[int]) -> None:
    """Retrieve the error of a wait whose task was cancelled, so that asyncio does not report it."""
    if not call.cancelled():
        call.exception()
