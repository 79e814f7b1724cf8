"""The write-ahead logs of an open store: the current one, and the next.

``Writer`` and ``Commit`` call it, under the writers' lock.  Each memtable has its own log;
this module makes, syncs, and closes the files.  ``Writer`` says when a log ends, and background
work removes a log that no version needs any longer (``obsolete.py``).
"""

from __future__ import annotations

import time

from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.write.wal import WriteAheadLog
from lsmkv.engine.env.base import WritableFile
from lsmkv.engine.errors import Error, raise_typed
from lsmkv.engine.format.filenames import log_name


class LogRotation:
    """The log that writes go to, and the one that follows it."""

    def __init__(self, store: Store, background: Background, current: WriteAheadLog) -> None:
        self._store = store
        self._background = background
        self.current = current
        """The log of the memtable that takes writes."""
        self._next: WriteAheadLog | None = None  # made ahead of its use
        self._reuse_prevented: WriteAheadLog | None = None
        self.sync_seconds = 0.0
        """Duration of the last sync."""

    def sync(self) -> None:
        """Make every record of the current log durable."""
        started = time.monotonic()
        try:
            synced = self.current.sync()
        except Error:
            self._prevent_reuse()
            raise
        if synced:
            self.sync_seconds = time.monotonic() - started
            self._store.counters.log_syncs += 1

    def create(self) -> WriteAheadLog:
        """An empty log, its name durable.

        On a full disk, files that the last commit has made obsolete may take up the space that is
        needed: their removal is waited for.
        """
        background = self._background
        try:
            try:
                file, number = self._create_file()
            except OSError:
                if not background.has_obsolete_files:
                    raise
                background.wait_for_flush()
                file, number = self._create_file()
        except OSError as error:
            raise_typed(error)
        return self._sync_name(file, number)

    def create_ahead(self) -> None:
        """Make the next log now, unless it exists or the disk is full.

        A flush in progress may free the missing space; if it does not, :meth:`take_next` raises.
        """
        if self._next is None:
            try:
                file, number = self._create_file()
            except OSError:
                return
            self._next = self._sync_name(file, number)

    def take_next(self) -> WriteAheadLog:
        """The log that was made ahead, or a new one; it becomes :attr:`current` next."""
        log = self._next
        self._next = None  # before it is in use: after an interrupt it must not be taken twice
        return self.create() if log is None else log

    def remove(self, log: WriteAheadLog) -> None:
        """Remove an empty log that is not used after all; one that stays does no harm."""
        log.close()
        try:
            self._store.directory.remove(log_name(log.number))
        except OSError:
            pass

    def close(self) -> None:
        """Close the current log, and remove the next."""
        self.current.close()
        if self._next is not None:
            self.remove(self._next)

    def _create_file(self) -> tuple[WritableFile, int]:
        """An empty file and its number, always a new one: a failed attempt may leave its name."""
        store = self._store
        number = store.versions.new_file_number()
        name = log_name(number)
        return store.directory.create_log(name, store.options.mapped_log), number

    def _sync_name(self, file: WritableFile, number: int) -> WriteAheadLog:
        try:
            self._store.directory.sync()
        except OSError as error:
            file.close()
            raise_typed(error)
        return WriteAheadLog(file, number)

    def _prevent_reuse(self) -> None:
        """See that no later open takes up the current log, whose sync has failed.

        Records that could not be made durable may never become so, whatever a later sync reports.
        If a newer log exists, even an empty one, recovery writes the content of this one into a
        table instead of appending to it.
        """
        if self._reuse_prevented is self.current:
            return
        try:
            self.create().close()
        except Error:
            pass  # where no file can be made, nothing else can be tried
        self._reuse_prevented = self.current
