"""The info log: the file ``LOG``, in which people read what the engine did.

``LOG.old`` is the one of the run before.  The background thread, writers and recovery write to it.
"""

from __future__ import annotations

import sys
import time
from collections import deque

from librt.threading import Lock

from lsmkv.engine.env.base import Directory, WritableFile
from lsmkv.engine.errors import is_full_disk
from lsmkv.engine.format.filenames import LOG, LOG_OLD
from lsmkv.engine.util.threads import get_native_id

# The levels of ``logging``, which is imported only when it is needed.
_DEBUG = 10
INFO = 20
WARNING = 30


class InfoLog:
    """Writes a line for each event, with local time and thread, to the file and to ``logging``.

    Call order: ``(begin | write)* close``.  The first of them makes the file.

    Any thread may call any method, and waits for no other: the thread that writes to the file
    also writes the lines of the others.  A LOG that cannot be written is given up, and the store
    continues without it; on a full disk only the lines that found no space are missing.
    """

    def __init__(self, directory: Directory, to_file: bool = True) -> None:
        """Without ``to_file`` events go only to ``logging``, and the directory is not changed."""
        self._path = directory.path
        self._lock = Lock()
        self._lines: deque[bytes] = deque()
        self._closed = False
        self._torn = False  # whether part of a line may be at the end
        self._file: WritableFile | None = None
        self._unmade_in: Directory | None = directory if to_file else None

    def begin(self) -> None:
        """Make the file, unless it is made or none is wanted; the last run's becomes ``LOG.old``.

        Until then the directory is not changed: it may turn out to be another engine's.
        """
        if self._unmade_in is None or self._lock.locked():  # perhaps by the interrupted call
            return
        try:
            with self._lock:
                directory = self._unmade_in
                self._unmade_in = None
                if directory is None:
                    return
                if directory.exists(LOG):
                    directory.rename(LOG, LOG_OLD)
                self._file = directory.create(LOG)
        except OSError as error:
            self._log(f"no LOG is written: {error}", WARNING)

    def write(self, message: str, level: int = _DEBUG) -> None:
        """Note an event.  ``level`` is the level of the ``logging`` record."""
        self._log(message, level)
        self.begin()
        now = time.time()
        stamp = time.strftime("%Y/%m/%d-%H:%M:%S", time.localtime(now)) + f".{now % 1:.6f}"[2:]
        line = f"{stamp} {get_native_id():x} {message}\n"
        if self._file is None and not self._lock.locked():
            return
        self._lines.append(line.encode("utf-8", "backslashreplace"))
        self._write_lines()

    def warn(self, message: str) -> None:
        """Note an event that the user should know about."""
        self.write(message, WARNING)

    def _log(self, message: str, level: int) -> None:
        """Pass it to ``logging``.  Without it in the program, only warnings are."""
        if level >= WARNING or "logging" in sys.modules:
            import logging  # noqa: PLC0415 - a sixth of the time that importing lsmkv takes

            logging.getLogger("lsmkv").log(level, "%s: %s", self._path, message)

    def close(self) -> None:
        """Close the file.  Later events go only to ``logging``."""
        self._unmade_in = None
        self._closed = True
        self._write_lines()

    def _write_lines(self) -> None:
        """Write what is pending, and close the file if that was asked for, unless another call does
        so already: perhaps the one that this one has interrupted."""
        while (self._lines or self._closed) and self._file is not None and not self._lock.locked():
            with self._lock:
                self._write_as_holder()

    def _write_as_holder(self) -> None:
        file = self._file
        if file is None:
            return
        try:
            while self._lines:
                line = self._lines.popleft()
                file.append(b"\n" + line if self._torn else line)
                self._torn = False
        except OSError as error:
            self._torn = True
            self._lines.clear()
            self._closed = self._closed or not is_full_disk(error)
        if self._closed:
            self._file = None
            file.close()
