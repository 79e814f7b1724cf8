"""One open log file: it appends and syncs records, and undoes a write that failed.

``LogRotation`` makes the files, ``Commit`` appends to the current one.  The framing of records is
``lsmkv/engine/format/log.py``'s.
"""

from __future__ import annotations

from lsmkv.engine.env.base import WritableFile
from lsmkv.engine.errors import Error, IOError, io_error, raise_typed
from lsmkv.engine.format.log import LogWriter


class WriteAheadLog(LogWriter):
    """One log file.  Used by one thread at a time, the holder of the writers' lock.

    ``append`` either puts a whole record into the file or leaves the file as it was: after an error
    or an interrupt (KeyboardInterrupt) the file is cut back to the last good record.  If that fails
    too, and after a failed ``sync``, the log is *poisoned*: nothing more is written to it or
    acknowledged from it, until the store is reopened.
    """

    def __init__(self, file: WritableFile, number: int, end: int = 0) -> None:
        """``end`` is the length of a file that is continued."""
        super().__init__(file, end)
        self.number = number
        self._poison: Error | None = None
        # A log that is continued may be a killed process's, which did not sync it.
        self._unsynced = end > 0
        self._torn = False  # whether there may be bytes after the last good record
        self._hidden_from = -1

    @property
    def visible_end(self) -> int:
        """The end of the last record that readers see: before one whose sync has failed."""
        return self.end if self._hidden_from < 0 else self._hidden_from

    def hide_from(self, offset: int) -> None:
        """Note that readers do not see what begins at ``offset``: its sync has just failed, so the
        log takes nothing more."""
        self._hidden_from = offset

    @property
    def mapped(self) -> bool:
        """True if the file is mapped into memory."""
        return self._file.mapped

    def append(self, record: bytes) -> None:
        """Append a record with one write.  Raises :class:`~lsmkv.errors.IOError`."""
        if self._torn:
            self.cut_back()
        if self._poison is not None:
            self._refuse_if_poisoned()
        self._torn = True
        self._unsynced = True
        try:
            # The record counts from the moment at which ``end`` goes beyond it.
            self.add_record(record)
        except OSError as error:
            self.cut_back()
            raise_typed(error)
        self._torn = False

    def sync(self) -> bool:
        """Make every record durable; False if they were already.  A failure poisons the log."""
        self._refuse_if_poisoned()
        if not self._unsynced:
            return False
        try:
            self._file.sync()
        except OSError as error:
            self._poison = io_error(error)
            raise_typed(error)
        self._unsynced = False
        return True

    def begin_sync(self) -> None:
        """Ask the system to begin writing what :meth:`sync` will wait for."""
        self._file.begin_sync()

    def cut_back(self) -> None:
        """Remove what an interrupted ``append`` may have left after the last good record."""
        if self._poison is not None:
            return
        try:
            if self._file.size() != self.end:
                self._file.truncate(self.end)
        except OSError as error:
            self._poison = io_error(error)
            return
        self._torn = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _refuse_if_poisoned(self) -> None:
        if self._poison is not None:
            raise IOError(
                self._poison.errno if isinstance(self._poison, IOError) else None,
                f"an earlier write to the log failed ({self._poison}); reopen the store",
                self._file.path,
            )
