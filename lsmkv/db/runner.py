"""The thread in which background work is done, as far as its end is waited for."""

from __future__ import annotations

import threading


class Runner:
    """A thread that runs jobs, for those who wait for its end."""

    def __init__(self, owner: object) -> None:
        # A handle whose last reference goes while its own runner holds the lock would wait, in its
        # finalizer, for that lock: the runner keeps it alive.
        self._owner = owner
        self._ended = threading.Lock()
        self._ended.acquire()
        self._ident = 0

    def begin(self) -> None:
        """Called by the thread first of all."""
        self._ident = threading.get_ident()

    def end(self) -> None:
        """Called by the thread last of all, without any lock: the owner may be finalized here."""
        self._ended.release()
        self._owner = None

    def wait(self) -> None:
        """Until the thread has ended; not for itself."""
        if self._ident != threading.get_ident():
            with self._ended:
                pass
