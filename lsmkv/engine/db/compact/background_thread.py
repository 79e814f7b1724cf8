"""A background thread: how it is started and waited for, and what an error becomes.

``Background`` makes a thread for each burst of work.  It is not a :class:`threading.Thread`, whose
``start`` waits: a KeyboardInterrupt in there would leave an unregistered thread running.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsmkv.engine.errors import Error, io_error
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import get_ident, new_lock, start_new_thread


class BackgroundThread:
    """A thread that runs jobs.  Call order: ``start``, and in the thread ``begin end``; ``wait`` in
    any other."""

    def __init__(self, owner: object, threads: list[Any]) -> None:
        """``threads`` are the numbers of the store's threads, of which this becomes one."""
        # A handle that lost its last reference while this thread held the store's lock would wait
        # forever for that lock in its finalizer: so the thread keeps the handle alive.
        self._owner = owner
        self._threads = threads
        self._ended = new_lock()
        self._ended.acquire()
        self._ident: Any = None

    def start(self, work: Callable[[BackgroundThread], None]) -> None:
        """Start the thread, which calls ``work``; ``RuntimeError`` if no more are possible."""
        start_new_thread(self._run, (work,))

    def _run(self, work: Callable[[BackgroundThread], None]) -> None:
        self.begin()
        try:
            work(self)
        finally:
            self.end()

    def begin(self) -> None:
        """Register the thread; it calls this before anything else."""
        self._ident = get_ident()
        self._threads.append(self._ident)

    def end(self) -> None:
        """Unregister the thread; called last, without any lock: the owner may be finalized here."""
        self._threads.remove(self._ident)
        self._ended.release()
        self._owner = None

    def wait(self) -> None:
        """Wait until the thread has ended; returns at once in that thread itself.  A signal's
        handler that raises ends the wait."""
        if self._ident != get_ident():
            deferred.wait_for(self._ended)


def typed_error(error: BaseException) -> BaseException:
    """The error that later writes raise, for one that has ended the thread."""
    if isinstance(error, OSError):
        return io_error(error)
    if isinstance(error, (Error, MemoryError)):
        return error
    wrapped = Error(f"background work failed: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
