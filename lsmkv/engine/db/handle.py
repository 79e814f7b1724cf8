"""The handle of an open store: opens and closes the store, and abandons it in a forked child.

:class:`~lsmkv.DB` derives from :class:`~lsmkv.engine.db.admin.maintenance.Maintenance`, and that
from :class:`Handle`.  Any thread may call any method; those that close exclude each other.
"""

from __future__ import annotations

import atexit
import os
import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar, Unpack

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.handles.named_leases import (
    Holders,
    NamedLease,
    NamedLeases,
    Request,
    Wait,
    checked,
    thread_caller,
)
from lsmkv.engine.db.handles.transaction_turns import Turns
from lsmkv.engine.db.opening.dropped import RecoveryReport
from lsmkv.engine.db.opening.open import OpenStore, import_late_parts, open_store
from lsmkv.engine.db.read.reader import Reader
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.write.write_path import WritePath
from lsmkv.engine.db.write.writer import Writer
from lsmkv.engine.errors import (
    ClosedError,
    CorruptionError,
    Error,
    ReadOnlyError,
    StaleViewError,
    raise_typed,
)
from lsmkv.engine.format.filenames import parse_filename
from lsmkv.engine.options import OptionArguments, Options
from lsmkv.engine.options.shown import KeywordSignature
from lsmkv.engine.util.introspection import described
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import ThreadLock

T = TypeVar("T")


@described
@mypyc_attr(native_class=False)  # so that users may derive from it and refer to it weakly
class Handle:
    """An open store.  It is closed by :meth:`close`, by a ``with`` block, or when it is collected.

    When the interpreter exits, every write is made durable; code that still runs may use the store.
    """

    _store: Store | None = None  # until it is open
    _reader: Reader | None = None
    _writer: WritePath | None = None
    _at_exit = False  # whether the interpreter is exiting
    __signature__: Any = KeywordSignature(OptionArguments)

    def __init__(self, path: str | os.PathLike[str], **options: Unpack[OptionArguments]) -> None:
        """Open the store in directory ``path``; ``':memory:'`` is a store that closing discards.

        :class:`~lsmkv.Options` explains the keywords; a misspelled one raises a ``TypeError`` that
        suggests the nearest.
        Raises :class:`NotFoundError` (no store there, and not ``create_if_missing``),
        :class:`LockedError`, :class:`CorruptionError`, :class:`ComparatorMismatchError`,
        :class:`ForeignFormatError`, :class:`IOError`, and for wrong arguments ``TypeError`` or
        ``ValueError``.  If a log is damaged, it issues a :class:`RecoveryWarning` and leaves out
        what follows the damage: see :attr:`recovery`.
        Cost: a replay of the log, at most about ``write_buffer_size`` of it.
        """
        try:
            import_late_parts(options)
            self._import_for_methods()
        except Exception:  # gone already: the store is opened, and a method that needs more says so
            pass
        self._pid = os.getpid()
        self._close_lock = ThreadLock()
        self._close_asked = False  # by a nested call
        self._turns = self._new_turns()
        self._leases = NamedLeases()
        self._holders = Holders()
        self._arguments = options
        self.path: str = os.fsdecode(path)
        """The directory as it was given."""
        with deferred:
            try:
                self._opened = self._open_parts()
            except OSError as error:
                raise_typed(error)
            self.options: Options = self._opened.options
            """The settings in force."""
            self._adopt(self._opened)
            _open_handles.add(self)
            try:
                deferred.deliver()
            except BaseException:
                self._close()  # no caller gets the handle
                raise

    @staticmethod
    def _import_for_methods() -> None:
        """Import what methods need and importing lsmkv leaves out: each class for its own.

        Later its files may be out of reach: a program changes its root or its user, or its release
        is replaced.
        """

    def _new_turns(self) -> Turns:
        """The queue of ``run`` and ``update``."""
        return Turns()

    # Closing

    @property
    def name(self) -> str:
        """The directory as it was given; this is plyvel's name for ``path``.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.name
        ':memory:'
        """
        return self.path

    @property
    def recovery(self) -> RecoveryReport:
        """Report of what this open left out of a damaged log; falsy if nothing.  Plain data.

        In a store that is open for reading only, it is what the last :meth:`refresh` left out.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     bool(db.recovery), db.recovery.dropped
        (False, ())
        """
        return self._opened.recovery

    @property
    def closed(self) -> bool:
        """True if the store was closed.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.closed
        False
        >>> db.closed
        True
        """
        store = self._store
        return store is None or store.view is None or self._close_asked

    def close(self) -> None:
        """Sync the log, stop background work at its next step, and release the lock.

        Iterators and snapshots of the store raise :class:`ClosedError` from then on.  A call that
        runs in another thread either ends normally or raises that error.  Closing twice is
        harmless.  Cost: one wait for the disk; a running compaction is abandoned, not waited for.

        If Ctrl-C ends the wait for background work or for another thread's ingest, nothing is
        closed under them: another ``close`` goes on, or the collection of the handle.  Every other
        call raises :class:`ClosedError` until then.

        A signal handler or finalizer that has interrupted another call of its thread may also close
        the store.  If closing would have to wait for that call, the store is closed when the call
        ends, before it returns or raises.  Until then every other call raises :class:`ClosedError`.

        Raises :class:`IOError` if the log cannot be synced; the newest writes may then not be
        durable.  The store is closed all the same.  The error of a failed flush or compaction is
        not raised here: the logger ``lsmkv`` has reported it.  Nothing is lost, since every write
        that is in no table is in a synced log, which the next open replays.

        >>> import lsmkv
        >>> db = lsmkv.DB(":memory:")
        >>> db.close()
        >>> db.get(b"k")
        Traceback (most recent call last):
        lsmkv.errors.ClosedError: the database is closed
        """
        store = self._store
        if store is None or self._opened.released:
            return
        lock = self._close_lock
        if lock.mine() or store.lock.must_not_wait:
            self._close_afterwards(store)
            return
        writer = self._opened.writer
        if writer is not None and writer.is_ingesting() and lock.taken():
            # The progress callback of an ingest calls this, but another thread is already closing
            # and waits for the ingest.
            return
        with lock.guard, deferred:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        store = self._store
        if store is None or self._opened.released or self._at_exit:
            return
        if not self.closed:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)
        try:
            self.close()
        finally:
            self.close()  # if a signal has ended the first call

    def __repr__(self) -> str:
        state = " (closed)" if self.closed else " (read-only)" if self._writer is None else ""
        return f"<lsmkv.DB {self.path!r}{state}>"

    # Opening

    def _open_parts(self) -> OpenStore:
        return open_store(self.path, self._arguments)

    def _adopt(self, opened: OpenStore) -> None:
        self._store = opened.store
        self._reader = opened.reader
        self._writer = opened.writer
        self._background = opened.background
        if opened.background is not None:
            opened.background.owner = weakref.ref(self)

    @property
    def _is_nested(self) -> bool:
        """True if this is a call by a signal handler or finalizer that must not wait."""
        store = self._store
        return store is not None and store.lock.must_not_wait

    def _open_store(self) -> Store:
        store = self._store
        if store is None:
            raise ClosedError("the database is closed")
        if self._close_asked:
            self._raise_closed(store)
        store.open_view()
        return store

    def _open_reader(self) -> Reader:
        reader = self._reader
        if reader is None:
            self._open_store()
            raise ClosedError("the database is closed")
        reader.store.open_view()
        return reader

    def _newer_reader(self, error: StaleViewError) -> Reader:
        """The reader in a newer view, after the writer has removed a table of the current one.

        The caller has not taken a snapshot of the view, so its reads may move forward.  Raises
        :class:`CorruptionError` if the newest view also needs the missing table.
        """
        self._open_reader()
        self._move_on(error)
        return self._open_reader()

    def _move_on(self, error: StaleViewError) -> None:
        """Refresh a store whose view lacks a table; see :meth:`_newer_reader`."""
        store = self._open_store()
        assert self._opened.follower is not None
        if store.lock.must_not_wait:
            raise error
        try:
            self._opened.follower.refresh(store)
        except OSError as failure:
            store.raise_failure(failure)
        parsed = parse_filename(os.path.basename(error.path))
        if parsed is not None and parsed[0] in store.open_view().version.numbers:
            raise CorruptionError("the table is missing", error.path) from None

    def _open_writer(self) -> WritePath:
        self._open_store()
        writer = self._writer
        if writer is None:
            self._open_store()  # another thread may be closing
            raise ReadOnlyError(f"{self.path} is open for reading only")
        return writer

    def _own_writer(self) -> Writer:
        """The writer of this process; :class:`ReadOnlyError` if it has none."""
        self._open_writer()
        writer = self._opened.writer
        assert writer is not None
        return writer

    # Named leases (``handles/named_leases.py``)

    def _hold(
        self,
        name: bytes,
        *,
        holder: bytes | None = None,
        timeout: float | None = None,
        limit: float | None = None,
        permits: int = 1,
        label: str = "",
        wait: Wait | None = None,
        owned: bool = False,
    ) -> NamedLease | None:
        """Wait for a named lease; None if it does not come within ``timeout`` seconds.

        It ends after ``limit`` seconds, if not before.  At most ``permits`` callers have it.  A
        ``holder`` that has it gets it once more.  ``label`` is what messages call it.  The caller
        is the calling thread, or that of ``wait``; if ``owned``, no other caller releases it.
        Raises :class:`ClosedError` if the store is closed, before or meanwhile,
        :class:`DeadlockError` if the wait cannot end, and ``ValueError`` for other arguments.
        Caller defers signals.
        """
        checked(name, permits, limit, timeout)
        self._open_store()
        lease = self._holders.held(name, holder)
        if lease is None:
            wait = Wait(thread_caller()) if wait is None else wait
            request = Request(name, permits, limit, label, wait, self._lease_place)
            lease = self._take_lease(request, timeout)
            if lease is not None:
                self._holders.note(lease, holder)
                if owned:
                    lease.belong_to(wait.caller, self._lease_place)
        return lease

    @property
    def _lease_place(self) -> object:
        """An object that is the same for all handles that grant the same leases."""
        return self._leases

    def _take_lease(self, request: Request, timeout: float | None) -> NamedLease | None:
        return self._leases.take(request, timeout)

    # Leases on numbers, which only processes that share a store need

    def _lease_number(self, number: int) -> Callable[[], None] | None:
        """Note that this process works at what has that number, until it ends or calls the result.

        None if no other process can ask.  Caller defers signals.
        """
        return None

    def _is_number_leased(self, number: int) -> bool:
        """Return True if the number is leased by a process through any handle except this one."""
        return False

    def _close_afterwards(self, store: Store) -> None:
        """Close the store when the interrupted call ends; on a thread of the store, when the owner
        makes its next call."""
        self._close_asked = True
        # Calls check these attributes, so that None stops them.
        self._reader = None
        self._writer = None
        if not self._close_lock.mine():  # else that call is closing, or will
            store.lock.closer = self.close
            store.lock.due = True

    def _raise_closed(self, store: Store) -> NoReturn:
        """Close the store if a nested call has requested it and nothing prevents it."""
        if store.lock.closer is not None and not store.lock.must_not_wait:
            self.close()
        raise ClosedError("the database is closed")

    def _close(self) -> None:
        """See :meth:`close`.  Caller holds ``_close_lock``."""
        store = self._store
        if store is None or self._opened.released:
            return
        if os.getpid() != self._pid:
            self._abandon(store)
            return
        # If an interrupt ends the wait for other threads, this is all that has happened.
        self._close_asked = True
        self._reader = None
        self._writer = None
        self._leases.close()
        self._opened.close()

    def _settle_at_exit(self) -> None:
        """Make every write durable and stop background work, but stay open.

        Exit handlers registered before the import of lsmkv, and finalizers of globals, may still
        read and write.  A flush that becomes due runs in the call, since no thread can be started
        at that point.  The store is kept alive, so that it is not collected before them.  The end
        of the process closes its files, and the next open reads the log.
        """
        store = self._store
        if store is None or store.view is None:
            return
        self._at_exit = True
        _kept_at_exit.append(self)
        try:
            if self._background is not None:
                self._background.go_inline()
            if self._opened.writer is not None:
                self._opened.writer.sync()
            self._opened.end_observation()
        except Error as error:
            store.info_log.warn(f"At the exit of the interpreter: {error}")

    def _abandon(self, store: Store) -> None:
        """In a forked child: drop the parent's store, and write nothing.

        No lock is taken: the thread that held it at the fork does not exist here.
        """
        store.forked = True
        store.view = None
        if self._background is not None:
            self._background.abandon()
        self._opened.release()


_open_handles: weakref.WeakSet[Handle] = weakref.WeakSet()
_kept_at_exit: list[Handle] = []


def _close_handles_after_fork() -> None:
    """In a forked child: the stores belong to the parent, and the child must not touch them."""
    for handle in list(_open_handles):
        if handle._store is not None:
            handle._abandon(handle._store)


def _settle_handles_at_exit() -> None:
    for handle in list(_open_handles):
        handle._settle_at_exit()


atexit.register(_settle_handles_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_handles_after_fork)
