"""The locks of a store, and what a nested call leaves to the call that it interrupts.

The *writers' lock* lets one writer at a time into log and memtable.  The *store's lock*, taken
inside it, is held for moments, when the view, the sequences or the memtable's order change.  Where
calls do the background work themselves, the one that does holds the *work lock* until it ends:
outside the store's lock, and inside the writers' lock only for an ingest, which blocks all writers.

A signal handler or a finalizer may call the store in the middle of another call of its thread: a
nested call.  If its own thread holds one of these locks, or is a thread of the store itself, the
nested call must not wait for any lock: the interrupted call cannot continue before it returns.

==========================  =======================================================================
the nested call             then
==========================  =======================================================================
reads                       answers, from a copy of the memtable if that is being changed
writes                      queues its batch: see :meth:`Writer.finish_nested`
writes with ``sync=True``,  raises :class:`~lsmkv.errors.NestedCallError`: what it promises cannot
flushes, compacts, ...      be true when it returns
closes                      asks for it (:attr:`StoreLock.closer`)
==========================  =======================================================================

What was queued and asked for is done when the interrupted call has released its locks, before that
returns or raises.  So a caller that takes the store's lock says::

    with store.lock.nested, store.lock.guard:
        ...

The guard is released first, and :attr:`StoreLock.nested` then does what has been left.  The holder
of the writers' lock leaves ``nested`` out: it has its own where it takes that lock.  What a thread
of the store leaves, it does at its next step, or the next writer does.

Two context managers, not one: an interrupt may come before the first instruction of an ``__exit__``
in Python, so only the interpreter's own may release a lock (``util/threads.py``).  ``nested``
loses nothing by an interrupt there: what was left stays due, and the next call does it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import NestedCallError
from lsmkv.engine.util.threads import ThreadLock, get_ident


class NestedCalls:
    """Does what nested calls have left, at the end of a ``with`` statement."""

    def __init__(self, lock: StoreLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        lock = self._lock
        if lock.due:
            lock.leave()


class StoreLock(ThreadLock):
    """The store's lock; it also has the writers' lock, and knows the store's own threads.

    It is taken in this way, except by the holder of the writers' lock, which may leave out the
    first part::

        with lock.nested, lock.guard:
            ...
    """

    def __init__(self) -> None:
        super().__init__()
        self.writers = ThreadLock()
        """The writers' lock."""
        self.threads: list[Any] = []
        """The numbers of the threads that the store has started and that run."""
        self.work = ThreadLock()
        """Held by the call that does a piece of background work itself."""
        self.directory: Directory | None = None
        """The store's directory, if its calls take a lock, as those of a :class:`MemoryEnv` do."""
        self.watched = False
        """True if ``work`` or ``directory`` may be held; if not, callers need not check."""
        self.due = False
        """True if a nested call has left work to be done."""
        self.finish: Callable[[], None] | None = None
        """Does the writes that nested calls have queued."""
        self.closer: Callable[[], None] | None = None
        """Closes the store, since a nested call has asked for it."""
        self.nested = NestedCalls(self)
        """Does what nested calls have left, once a lock is released: see above."""

    @property
    def is_held(self) -> bool:
        """True if the calling thread holds one of the two locks."""
        return self.mine() or self.writers.mine()

    @property
    def on_own_thread(self) -> bool:
        """True if the calling thread belongs to the store."""
        return bool(self.threads) and get_ident() in self.threads

    @property
    def must_not_wait(self) -> bool:
        """True if this is a call that must not wait for another one."""
        return (
            self.is_held
            or self.on_own_thread
            or (self.watched and self.work.mine())
            or (self.directory is not None and self.directory.is_entered)
        )

    def refuse_to_wait(self, what: str) -> None:
        """Raise :class:`NestedCallError` if ``what`` would wait for something that cannot
        continue."""
        if self.must_not_wait:
            raise NestedCallError(
                f"{what} is not possible here: a signal handler or finalizer has interrupted"
                " another call of this thread, and would wait for it"
            )

    def leave(self) -> None:
        """Do what nested calls have left, unless this thread still holds a lock: then the outer
        call does it."""
        if self.is_held:
            return
        self.due = False
        try:
            if self.finish is not None:
                self.finish()
            closer = self.closer
            if closer is not None:
                if self.must_not_wait:
                    self.due = True  # for the owner's next step
                else:
                    closer()
                    self.closer = None
        except BaseException:
            self.due = True
            raise
