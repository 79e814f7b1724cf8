"""The handle of an open store: it opens the store, closes it, and gives it up in a forked child.

:class:`~lsmkv.DB` derives from :class:`~lsmkv.db.admin.maintenance.Maintenance`, and that from
:class:`Handle`.  Any thread may call any method; those that close exclude each other.
"""

from __future__ import annotations

import atexit
import os
import threading
import warnings
import weakref
from types import TracebackType
from typing import Self, Unpack

from mypy_extensions import mypyc_attr

from lsmkv.db.opening.open import OpenStore, open_store
from lsmkv.db.reader import Reader
from lsmkv.db.store import Store
from lsmkv.db.writer import Writer
from lsmkv.errors import ClosedError, ReadOnlyError, raise_typed
from lsmkv.options import OptionArguments, Options
from lsmkv.util.introspection import described


@described
@mypyc_attr(native_class=False)  # so that users may derive from it and refer to it weakly
class Handle:
    """An open store.  It is closed by :meth:`close`, by a ``with`` block, or at the exit."""

    _store: Store | None = None  # until it is open
    _reader: Reader | None = None

    def __init__(self, path: str | os.PathLike[str], **options: Unpack[OptionArguments]) -> None:
        """Open the store in directory ``path``, or ``':memory:'`` for one that is gone when closed.

        The keywords are explained by :class:`~lsmkv.Options`; a misspelt one is a ``TypeError``
        that names the nearest.
        Raises :class:`NotFoundError` (no store there, and not ``create_if_missing``),
        :class:`LockedError`, :class:`CorruptionError`, :class:`ComparatorMismatchError`,
        :class:`ForeignFormatError`, :class:`IOError`, and for wrong arguments ``TypeError`` or
        ``ValueError``.  Cost: replays the log, at most about ``write_buffer_size`` of it.
        """
        self._pid = os.getpid()
        self._close_lock = threading.Lock()
        self._arguments = options
        self.path: str = os.fsdecode(path)
        """The directory, as it was given."""
        self._superseded: list[Store] = []  # earlier views of a read-only store
        try:
            self._opened = open_store(self.path, options)
        except OSError as error:
            raise_typed(error)
        self.options: Options = self._opened.options
        """The settings in force."""
        self._adopt(self._opened)
        _open_handles.add(self)

    # Closing

    @property
    def name(self) -> str:
        """The directory, as it was given: plyvel's name for ``path``.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.name
        ':memory:'
        """
        return self.path

    @property
    def closed(self) -> bool:
        """Whether the store was closed.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.closed
        False
        >>> db.closed
        True
        """
        store = self._store
        return store is None or store.view is None

    def close(self) -> None:
        """Sync the log, stop background work at its next step, and give up the lock.

        Iterators and snapshots of the store raise :class:`ClosedError` from then on.  A call that
        runs in another thread either ends normally or raises that error.  Closing twice is
        harmless.  Cost: one wait for the disk; a running compaction is abandoned, not waited for.

        Raises :class:`IOError` if the log cannot be synced: the newest writes may not be durable
        then.  The store is closed all the same.  The error of a failed flush or compaction is
        not raised here: the logger ``lsmkv`` has reported it, and nothing is lost, since a write
        that is in no table is in a synced log, which the next open replays.

        >>> import lsmkv
        >>> db = lsmkv.DB(":memory:")
        >>> db.close()
        >>> db.get(b"k")
        Traceback (most recent call last):
        lsmkv.errors.ClosedError: the database is closed
        """
        if self._writer is None or not self._writer.is_ingesting():
            with self._close_lock:
                self._close()
        # Else the progress callback of an ingest closes, and another thread may be closing already
        # and waiting for the ingest.
        elif self._close_lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._close_lock.release()

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
        if store is not None and store.view is not None:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)
            self.close()

    def __repr__(self) -> str:
        state = " (closed)" if self.closed else " (read-only)" if self._writer is None else ""
        return f"<lsmkv.DB {self.path!r}{state}>"

    # Opening

    def _adopt(self, opened: OpenStore) -> None:
        self._store = opened.store
        self._reader = opened.reader
        self._writer = opened.writer
        self._background = opened.background
        if opened.background is not None:
            opened.background.owner = weakref.ref(self)

    def _open_store(self) -> Store:
        store = self._store
        if store is None:
            raise ClosedError("the database is closed")
        store.open_view()
        return store

    def _open_reader(self) -> Reader:
        reader = self._reader
        if reader is None:
            raise ClosedError("the database is closed")
        reader.store.open_view()
        return reader

    def _open_writer(self) -> Writer:
        self._open_store()
        if self._writer is None:
            raise ReadOnlyError(f"{self.path} is open for reading only")
        return self._writer

    def _close(self) -> None:
        """See :meth:`close`.  Caller holds ``_close_lock``."""
        store = self._store
        if store is None or store.view is None:
            return
        if os.getpid() != self._pid:
            self._abandon(store)
            return
        with store.lock:
            store.closing = True
            store.changed.notify_all()
        try:
            if self._background is not None:
                self._background.stop()
            if self._writer is not None:
                self._writer.close()
        except OSError as error:
            raise_typed(error)
        finally:
            for view in (*self._superseded, store):
                view.view = None
                view.tables.clear()
            self._superseded = []
            store.versions.close()
            store.info_log.close()
            self._opened.release()

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


def _close_handles_after_fork() -> None:
    """In a forked child: the stores belong to the parent, and the child must not touch them."""
    for handle in list(_open_handles):
        if handle._store is not None:
            handle._abandon(handle._store)


def _close_handles_at_exit() -> None:
    for handle in list(_open_handles):
        handle.close()


atexit.register(_close_handles_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_handles_after_fork)
