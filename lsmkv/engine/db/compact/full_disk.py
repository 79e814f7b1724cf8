"""Background work on a full disk: which of it waits for space, and when it is retried.

A flush or a compaction that finds no space has removed what it wrote, and lost nothing: the log has
every write, and the inputs of a compaction stay.  It is *put off*, and later begun from the start,
with new files.  There is no timer, and no thread waits for space: the next attempt is made

* for a writer or a call of ``flush`` that cannot continue without that work.  A writer first asks
  whether the directory has more space than before the last attempt.  So a program that continues to
  write to a full disk is refused at once, and does not fill and clear the disk repeatedly;
* by the background thread itself, once other work has changed how much space there is.

``Background`` calls :class:`FullDisk`, and ``Writer`` :class:`WorkOnDisk`.  Only errors of making
tables come here: after one of the MANIFEST its content is unknown, and one of the log is the
writer's.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable

from lsmkv.engine.db.compact.picking import compaction_is_due
from lsmkv.engine.db.tree.info_log import INFO
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import IOError, is_full_disk

_ASK_AGAIN = 1.0
"""Seconds after which an attempt is made even if there seems to be no more space: not every file
system reports everything that it frees."""


class NoRoom(Exception):
    """Tables could not be made because the disk is full.  ``error`` is what callers raise.

    Neither it nor its cause has a traceback: frames would keep a version alive, and so the tables
    that only this version names, whose space is needed.
    """

    def __init__(self, error: IOError) -> None:
        super().__init__(error)
        self.error = error


def raise_if_no_room(error: OSError, directory: Directory, waiting: str) -> None:
    """Raise :class:`NoRoom` if ``error``, of making tables, is a full disk's.

    ``waiting`` says what will be done once there is space.
    """
    if is_full_disk(error):
        assert error.errno is not None
        text = f"{os.strerror(error.errno)}: {waiting} once this directory has more space"
        typed = IOError(error.errno, text, directory.path)
        typed.__cause__ = OSError(error.errno, error.strerror, error.filename)
        raise NoRoom(typed) from error


def _copy(error: IOError) -> IOError:
    """Return the same error for one more caller, whose traceback it gets."""
    copy = IOError(error.errno, error.strerror, error.filename)
    copy.__cause__ = error.__cause__
    return copy


class WorkOnDisk:
    """One kind of background work, flushes or compactions, and its last attempt.

    The caller of a method holds the store's lock, except for the two that ask the file system:
    :meth:`free_bytes` and :meth:`refuse_if_hopeless`.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.attempts = 0
        """Number of attempts begun."""
        self.error: IOError | None = None
        """The error of the last attempt, if it found no space; None if it found some."""
        self.put_off = False
        """True if the work waits for :meth:`resume`."""
        self._failed = 0  # the attempt that raised ``error``
        self._failed_at = 0.0
        self._room: int | None = None  # bytes that were free before the last attempt, if known

    def free_bytes(self) -> int | None:
        """Bytes that new tables may take; None if that is unknown."""
        try:
            return self._directory.free_bytes()
        except OSError:
            return None

    def begin(self, room: int | None) -> int:
        """Begin an attempt, with this many free bytes; returns its number.

        So space that is freed during the attempt is seen as new.
        """
        self.attempts += 1
        self._room = room
        return self.attempts

    def fail(self, attempt: int, error: IOError) -> None:
        """Note that the attempt found no space."""
        self.error = error
        self.put_off = True
        self._failed = attempt
        self._failed_at = time.monotonic()
        if error.errno == errno.EDQUOT:
            self._room = None  # the bytes that are free are not those of the quota

    def succeed(self) -> None:
        """Note that the attempt found space, or that the work is no longer needed."""
        self.error = None
        self.put_off = False

    def resume(self) -> None:
        """Stop putting the work off."""
        self.put_off = False

    def resume_for(self, since: int) -> None:
        """Resume for a caller that waits since ``attempts`` was ``since``.

        Raises the error of an attempt that began later and found no space.
        """
        if self.error is not None and self.put_off:
            if self._failed > since:
                raise _copy(self.error)
            self.put_off = False

    def refuse_if_hopeless(self) -> None:
        """Raise the error of the last attempt if there seems to be no more space than before it."""
        error, room = self.error, self._room
        if error is None or not self.put_off or room is None:
            return
        if time.monotonic() - self._failed_at < _ASK_AGAIN:
            now = self.free_bytes()
            if now is not None and now <= room:
                raise _copy(error)


class FullDisk:
    """The two kinds of background work that a full disk puts off, and the attempts of each."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.flushes = WorkOnDisk(store.directory)
        self.compactions = WorkOnDisk(store.directory)
        """Those that the version needs; a manual compaction that finds no space fails its
        caller."""

    @property
    def error(self) -> IOError | None:
        """The error for which work waits; None if none waits.  Cleared by the first attempt that
        finds space."""
        return self.flushes.error or self.compactions.error

    def attempt(self, work: WorkOnDisk, job: Callable[[], None]) -> bool:
        """Do the work, or put it off if there is no space: the threads that wait for it get the
        error.  Returns whether it was done."""
        store = self._store
        room = work.free_bytes()
        with store.lock.nested, store.lock.guard:
            attempt = work.begin(room)
        try:
            job()
        except NoRoom as failure:
            self._put_off(work, attempt, failure.error)
            return False
        if self.error is not None:
            self._note_space(work)
        return True

    def resume(self, work: WorkOnDisk) -> None:
        """Stop putting the work off: other work has changed how much space there is."""
        with self._store.lock.nested, self._store.lock.guard:
            work.resume()

    def _put_off(self, work: WorkOnDisk, attempt: int, error: IOError) -> None:
        store = self._store
        is_new = self.error is None
        with store.lock.nested, store.lock.guard:
            work.fail(attempt, error)
            store.changed.notify_all()
        if is_new:
            store.info_log.warn(
                f"No space for new tables ({error.__cause__}): reads continue, and so do writes"
                " while memory and log have space for them"
            )

    def _note_space(self, work: WorkOnDisk) -> None:
        """Note that the work has found space.  If nothing else waits for space, the disk is no
        longer full."""
        store = self._store
        with store.lock.nested, store.lock.guard:
            work.succeed()
            view = store.view
            if view is not None and not compaction_is_due(view.version, store.options):
                self.compactions.succeed()
            still = self.error is not None
        if not still:
            store.info_log.write("There is space for new tables again", INFO)
