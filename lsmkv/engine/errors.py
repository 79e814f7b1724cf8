"""Every exception that lsmkv raises, under one root: :class:`Error`.

An exception also inherits from the builtin that a Python programmer would catch in its place
(``OSError``, ``FileNotFoundError``, ``BlockingIOError``, ``RuntimeError``), so code that does not
know lsmkv still handles it.  Wrong *types* raise plain ``TypeError`` and wrong *values*
``ValueError``: these are mistakes in the program, not states of a store.
"""

from __future__ import annotations

import errno as _errno
import os as _os
from collections.abc import Iterable
from typing import Any, NoReturn

from lsmkv.engine.former_paths import keep_paths

__all__ = [
    "ClosedError",
    "ComparatorMismatchError",
    "ConflictError",
    "CorruptionError",
    "DeadlockError",
    "DirectoryReplacedError",
    "Error",
    "ForeignFormatError",
    "ForkedError",
    "IOError",
    "IteratorInvalidError",
    "LockedError",
    "NotFoundError",
    "OutcomeUnknownError",
    "PermissionDeniedError",
    "ReadOnlyError",
    "RecoveryWarning",
    "SequenceTooOldError",
    "StaleViewError",
    "UnsupportedCompressionError",
    "UnsupportedValueError",
]

_FULL_DISK = (_errno.ENOSPC, _errno.EDQUOT)


class Error(Exception):
    """Root of all lsmkv exceptions.

    >>> import lsmkv
    >>> try:
    ...     lsmkv.DB("no such directory")
    ... except lsmkv.Error as error:
    ...     type(error).__name__
    'NotFoundError'
    """


class CorruptionError(Error):
    """Bytes on disk are not what their format allows.

    ``path`` is the damaged file and ``offset`` the byte position of the damage in it; either is
    ``None`` where it is unknown (for bytes that never came from a file).

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> lsmkv.DB("store", create_if_missing=True, env=env).close()
    >>> with env.open_directory("store") as directory:
    ...     directory.remove("CURRENT")
    ...     with directory.create("CURRENT") as file:
    ...         file.append(b"damage")
    >>> try:
    ...     lsmkv.DB("store", env=env)
    ... except lsmkv.CorruptionError as error:
    ...     error.path, error.offset, error.reason
    ('store/CURRENT', 0, "CURRENT does not name a MANIFEST: b'damage'")
    """

    def __init__(self, reason: str, path: str | None = None, offset: int | None = None) -> None:
        self.reason = reason
        self.path = path
        self.offset = offset
        super().__init__(reason, path, offset)

    def __str__(self) -> str:
        """File, reason and offset, as far as they are known."""
        where = "" if self.path is None else f"{self.path}: "
        at = "" if self.offset is None else f" (at offset {self.offset})"
        return f"{where}{self.reason}{at}"

    def located(self, path: str, base: int = 0) -> CorruptionError:
        """The same damage with its file; ``base`` is added to the offset.

        An error with a path is returned unchanged: the code closest to the bytes set it.

        >>> print(CorruptionError("a block of odd length", None, 7).located("000005.ldb", base=100))
        000005.ldb: a block of odd length (at offset 107)
        """
        if self.path is not None:
            return self
        return type(self)(self.reason, path, base + (self.offset or 0))


class UnsupportedCompressionError(Error):
    """A block names a codec that this installation cannot decode.  The data may be sound.

    >>> from lsmkv.engine.util.compression import decompress
    >>> decompress(b"block", 77, 100)
    Traceback (most recent call last):
    lsmkv.errors.UnsupportedCompressionError: unknown compression type 77
    """


class UnsupportedValueError(Error, TypeError):
    """A value that the codec of a cache does not take; nothing was stored.

    ``kind`` is the name of its type, ``where`` its place in the value that was given, and ``takes``
    says what the codec takes.

    >>> from lsmkv.cache.codecs import DefaultCodec
    >>> try:
    ...     DefaultCodec().encode({"names": [object()]})
    ... except UnsupportedValueError as error:
    ...     error.kind, error.where
    ('object', "value['names'][0]")
    """

    def __init__(self, kind: str, where: str, takes: str) -> None:
        super().__init__(kind, where, takes)
        self.kind = kind
        self.where = where
        self.takes = takes

    def __str__(self) -> str:
        """The type, its place, and what the codec takes."""
        article = "an" if self.kind[:1].lower() in "aeiou" else "a"
        return f"{article} {self.kind} at {self.where}: {self.takes}"


class ComparatorMismatchError(Error):
    """The store was made with a different comparator than the one given; the error names both.

    With no comparator given, the store has one that lsmkv does not provide.

    ``path`` is the MANIFEST that records the comparator, ``stored`` the name in it, and ``given``
    the name of the comparator that was passed.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> lsmkv.DB("store", create_if_missing=True, env=env).close()
    >>> try:
    ...     lsmkv.DB("store", env=env, comparator=lsmkv.ReverseBytewiseComparator())
    ... except lsmkv.ComparatorMismatchError as error:
    ...     error.stored, error.given
    ('leveldb.BytewiseComparator', 'leveldb.ReverseBytewiseComparator')
    """

    def __init__(self, path: str, stored: str, given: str) -> None:
        self.path = path
        self.stored = stored
        self.given = given
        super().__init__(path, stored, given)

    def __str__(self) -> str:
        """Both names, and the file."""
        return (
            f"{self.path}: the database is ordered by {self.stored!r},"
            f" the comparator given is {self.given!r}"
        )


class ConflictError(Error):
    """Another writer changed something that this write depends on; nothing was written.

    A transaction read or wrote a key, or iterated over a range with a key, that was written since
    it began; or another build published the next version of a shard set first.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:") as db:
    ...     try:
    ...         with db.transaction() as transaction:
    ...             transaction.put(b"k", b"mine")
    ...             db.put(b"k", b"theirs")
    ...     except lsmkv.ConflictError:
    ...         db.get(b"k")
    b'theirs'
    """


class DeadlockError(Error, RuntimeError):
    """A wait for a lease with a name could not end: callers wait for each other in a circle.

    The caller that would have closed the circle gets the error, and does not wait; the others go on
    once it releases what it holds.  ``waits`` are pairs of a process id and what is waited for
    there: each is held by the next caller, and the last one by the first.

    >>> import lsmkv
    >>> from lsmkv.cache.recipes import Lock
    >>> with lsmkv.Cache(shared=False) as cache, Lock(cache, "report"):
    ...     try:
    ...         with Lock(cache, "report"):
    ...             pass
    ...     except lsmkv.DeadlockError as error:
    ...         [key for pid, key in error.waits]
    ["Lock 'report'"]
    """

    def __init__(self, waits: Iterable[tuple[int, str]]) -> None:
        self.waits = tuple((pid, key) for pid, key in waits)
        super().__init__(self.waits)

    def __str__(self) -> str:
        """Return the cycle of waits: each process, the name it waits for, and its holder."""
        pids = [pid for pid, _ in self.waits]
        holders = pids[1:] + pids[:1]
        parts = [
            f"process {pid} waits for {key}, which process {holder} holds"
            for (pid, key), holder in zip(self.waits, holders, strict=True)
        ]
        return f"deadlock: {'; '.join(parts)}"


class ForeignFormatError(Error):
    """The directory is not damaged, but belongs to another engine: RocksDB, Pebble or Riak.  Or
    goleveldb made it with more levels than LevelDB has; ``read_only=True`` opens such a store.

    >>> issubclass(ForeignFormatError, CorruptionError)
    False
    """


class _ClassOfErrno(type):
    """The type of :class:`IOError`, calls of which choose a class, as calls of ``OSError`` do.

    A ``__new__`` of ``IOError`` could not: with one, ``OSError`` takes its arguments there, and no
    longer from the ``__init__`` of a subclass.
    """

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        """An instance of ``cls``; of ``IOError`` itself, of the subclass for its errno."""
        if cls is IOError:
            builtin = type(OSError(*arguments))
            cls = _IO_ERRORS.get(builtin) or _add_io_error(builtin)
        return type.__call__(cls, *arguments, **named)


class IOError(Error, OSError, metaclass=_ClassOfErrno):
    """A call to the operating system failed; see ``errno``, ``strerror`` and ``filename``.

    The error is also an instance of the built-in class that ``OSError`` has for its ``errno``:
    ``PermissionError``, ``FileNotFoundError``, ``FileExistsError``, ``TimeoutError``, and so on.

    >>> isinstance(IOError(13, "Permission denied"), PermissionError)
    True
    >>> import errno
    >>> import lsmkv
    >>> with lsmkv.DB("store", create_if_missing=True, env=lsmkv.MemoryEnv()) as db:
    ...     db.checkpoint("copy")
    ...     try:
    ...         db.checkpoint("copy")
    ...     except OSError as error:
    ...         type(error).__name__, errno.errorcode[error.errno], error.filename
    ('IOError', 'EEXIST', 'copy')
    """


def _add_io_error(builtin: type[OSError]) -> type[IOError]:
    """Make the class of those errors that are both :class:`IOError` and ``builtin``.

    It has the name of ``IOError`` and pickles as ``IOError``, which chooses the same class from the
    same arguments.
    """

    def reduce(self: IOError) -> Any:
        return (IOError, *builtin.__reduce__(self)[1:])

    members = {"__module__": IOError.__module__, "__doc__": IOError.__doc__, "__reduce__": reduce}
    made: Any = _ClassOfErrno(IOError.__name__, (IOError, builtin), members)
    return _IO_ERRORS.setdefault(builtin, made)


_IO_ERRORS: dict[type[OSError], type[IOError]] = {OSError: IOError}
"""The class of an ``IOError``, by the class of an ``OSError`` with the same arguments."""


class NotFoundError(Error, FileNotFoundError):
    """There is no database at this path, and ``create_if_missing`` is false.

    >>> import lsmkv
    >>> lsmkv.DB("no such directory")
    Traceback (most recent call last):
    lsmkv.errors.NotFoundError: [Errno 2] no database here, ...: 'no such directory'
    """


class LockedError(IOError, BlockingIOError):
    """Another process, or another ``DB`` in this process, has the store open.

    ``pid`` is the holder's process id, or ``None`` where it is unknown; ``shared`` says whether the
    holder shares the store, so that a :class:`lsmkv.SharedDB` can join it.

    >>> import os
    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.DB("store", create_if_missing=True, env=env):
    ...     try:
    ...         lsmkv.DB("store", env=env)
    ...     except lsmkv.LockedError as error:
    ...         error.pid == os.getpid()
    True
    """

    def __init__(
        self, path: str, pid: int | None = None, shared: bool = False, reason: str | None = None
    ) -> None:
        who = "this process" if pid == _os.getpid() else f"process {pid}"
        holder = "" if pid is None else f" (held by {who})"
        if shared:
            who = "other processes" if pid is None else who
            holder = f" (shared by {who}: open it with lsmkv.SharedDB)"
        super().__init__(_errno.EAGAIN, reason or f"the database is in use{holder}", path)
        self.pid = pid
        self.shared = shared
        self._reason = reason

    def __reduce__(self) -> tuple[type[LockedError], tuple[str, int | None, bool, str | None]]:
        return type(self), (self.filename, self.pid, self.shared, self._reason)


class DirectoryReplacedError(IOError):
    """A store that is open for reading only is no longer the one at its path.

    The directory was renamed, removed or replaced by another, or the store in it was destroyed;
    ``errno`` is ``ESTALE``.  ``refresh`` raises it, and so does a read that opens a file.  Data in
    memory stays readable.  Close the store, and open the path again.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> lsmkv.DB("store", create_if_missing=True, env=env).close()
    >>> with lsmkv.DB("store", read_only=True, env=env) as db:  # doctest: +ELLIPSIS
    ...     env.rename_directory("store", "old")
    ...     lsmkv.DB("store", create_if_missing=True, env=env).close()
    ...     db.refresh()
    Traceback (most recent call last):
    lsmkv.errors.DirectoryReplacedError: [Errno ...] another directory...: 'store'
    """

    def __init__(self, path: str, destroyed: bool = False) -> None:
        reason = "another directory, or none, is at this path now: open the store again"
        if destroyed:
            reason = "the store was destroyed: open it again"
        super().__init__(_errno.ESTALE, reason, path)
        self._destroyed = destroyed

    def __reduce__(self) -> tuple[type[DirectoryReplacedError], tuple[str, bool]]:
        return type(self), (self.filename, self._destroyed)


class StaleViewError(Error):
    """A snapshot or an iterator of a store that is open for reading only needs a table that the
    store's writer has removed since.

    The writer does not know its readers: after a compaction it removes the old tables.  A plain
    read then continues with a newer view, as after ``refresh``, but a snapshot or an iterator has
    to keep its view.  Take a new one.  ``path`` is that of the table.

    >>> issubclass(StaleViewError, Error)
    True
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        """The table, and what happened to it."""
        return f"{self.path}: a table of this view was removed by the store's writer"


class ClosedError(Error, RuntimeError):
    """The store, iterator or snapshot was closed before this call.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:") as db:
    ...     keys = iter(db)
    >>> next(keys)
    Traceback (most recent call last):
    lsmkv.errors.ClosedError: the database of this iterator is closed
    """


class ForkedError(ClosedError):
    """The store was opened by the parent of this process; open it again after the fork.

    >>> issubclass(ForkedError, ClosedError)
    True
    """


class NestedCallError(Error, RuntimeError):
    """A call by a signal handler or finalizer would wait for the call that it has interrupted.

    Reads work in such a call.  ``close`` and writes without ``sync`` take effect when the
    interrupted call ends.  Any other call that cannot be completed before it returns raises this
    error and does nothing.

    >>> issubclass(NestedCallError, RuntimeError)
    True
    """


class OutcomeUnknownError(Error):
    """A write to a shared store has happened or not: its owner was lost before it answered, and
    no other process knows.  Or the owner has read the request and does not answer in time: the
    write has happened, or will, or never does.

    Read the store to find out.  Other losses of an owner are not noticed: the call finds out itself
    what became of the write (:class:`lsmkv.SharedDB`).

    >>> issubclass(OutcomeUnknownError, Error)
    True
    """


class ReadOnlyError(Error):
    """A write to a store that is open for reading only.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> lsmkv.DB("store", create_if_missing=True, env=env).close()
    >>> with lsmkv.DB("store", read_only=True, env=env) as db:
    ...     db.put(b"k", b"v")
    Traceback (most recent call last):
    lsmkv.errors.ReadOnlyError: store is open for reading only
    """


class PermissionDeniedError(ReadOnlyError, PermissionError):
    """A write to a shared store by a process that may only read its directory, or its opening while
    no other process shares the store.

    Such a process reads as any member does (:class:`lsmkv.SharedDB`); it can neither write nor own
    the store.

    >>> issubclass(PermissionDeniedError, OSError)
    True
    """


class SequenceTooOldError(Error):
    """The logs do not hold every write after a sequence any more: ``db.batches(since)``.

    A log is removed once a table has its writes, and no iterator needs it; and the writes of an
    ingest are in no log.  Read the store itself, then follow it from the sequence of that moment:
    ``snapshot.sequence``.  ``sequence`` is the one that was asked for.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:") as db:
    ...     db.put(b"k", b"v")
    ...     db.flush()
    ...     try:
    ...         batches = db.batches(0)
    ...     except lsmkv.SequenceTooOldError as error:
    ...         error.sequence, list(db.batches(db.sequence))
    (0, [])
    """

    def __init__(self, path: str, sequence: int) -> None:
        super().__init__(path, sequence)
        self.path = path
        self.sequence = sequence

    def __str__(self) -> str:
        """The store and the sequence."""
        return (
            f"{self.path}: no log has the write after sequence {self.sequence} any more: read the"
            " store itself, and follow it from there"
        )


class IteratorInvalidError(Error):
    """The iterator is not positioned on an entry, so it has no current key or value.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:") as db:
    ...     db.raw_iterator().key()
    Traceback (most recent call last):
    lsmkv.errors.IteratorInvalidError: the iterator is not at an entry: seek first
    """


def errno_of(error: OSError) -> int | None:
    """The number of an error; for one that was raised without a number, that of its class.

    >>> errno_of(TimeoutError("timed out")) == _errno.ETIMEDOUT, errno_of(OSError("reason"))
    (True, None)
    """
    if error.errno is not None:
        return error.errno
    return next(_ERRNO_OF_CLASS[kind] for kind in type(error).__mro__ if kind in _ERRNO_OF_CLASS)


_ERRNO_OF_CLASS: dict[type, int | None] = {
    **{type(OSError(one, "")): one for one in sorted(_errno.errorcode, reverse=True)},
    PermissionError: _errno.EACCES,
    ConnectionError: _errno.ECONNRESET,
    OSError: None,
}


def is_full_disk(error: OSError) -> bool:
    """Return True if a call failed because the file system is full or a quota is exhausted."""
    return error.errno in _FULL_DISK


class RecoveryWarning(UserWarning):
    """A store was opened without some writes, because a log is damaged: see ``db.recovery``.

    It is issued before anything is changed.  A program that turns it into an error
    (``warnings.simplefilter("error", lsmkv.RecoveryWarning)``) refuses such stores, as
    ``paranoid_checks=True`` does.

    >>> issubclass(RecoveryWarning, UserWarning)
    True
    """


def io_error(error: OSError) -> Error:
    """An error that an env raised, as :class:`IOError`; lsmkv's own errors stay as they are."""
    if isinstance(error, Error):
        return error
    names = (
        (error.filename,) if error.filename2 is None else (error.filename, None, error.filename2)
    )
    typed = IOError(errno_of(error), error.strerror or str(error), *names)
    typed.__cause__ = error
    return typed


def raise_typed(error: OSError) -> NoReturn:
    """Raise the :func:`io_error` of ``error``."""
    raise io_error(error)


keep_paths(*(globals()[name] for name in __all__))
