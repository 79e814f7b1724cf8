"""The info log: the file ``LOG``, in which people read what the engine did.

``LOG.old`` is the one of the run before.  The background thread, writers and recovery write to it.
"""

from __future__ import annotations

import sys
import threading
import time

from lsmkv.env.base import Directory, WritableFile
from lsmkv.errors import is_full_disk
from lsmkv.format.filenames import LOG, LOG_OLD

# The levels of ``logging``, which is imported only when it is needed.
_DEBUG = 10
INFO = 20
WARNING = 30


class InfoLog:
    """Writes a line for each event, with local time and thread, to the file and to ``logging``.

    Any thread may call any method.  A LOG that cannot be written is given up, and the store goes on
    without it; on a full disk only the lines are missing that found no room.
    """

    def __init__(self, directory: Directory, to_file: bool = True) -> None:
        """Without ``to_file`` events go to ``logging`` alone, and the directory is not changed."""
        self._path = directory.path
        self._lock = threading.Lock()
        self._file: WritableFile | None = None
        self._torn = False  # whether a part of a line may stand at the end
        if not to_file:
            return
        try:
            if directory.exists(LOG):
                directory.rename(LOG, LOG_OLD)
            self._file = directory.create(LOG)
        except OSError as error:
            self._log(f"no LOG is written: {error}", WARNING)

    def write(self, message: str, level: int = _DEBUG) -> None:
        """Note an event.  ``level`` is the level of the ``logging`` record."""
        self._log(message, level)
        now = time.time()
        stamp = time.strftime("%Y/%m/%d-%H:%M:%S", time.localtime(now)) + f".{now % 1:.6f}"[2:]
        line = f"{stamp} {threading.get_native_id():x} {message}\n"
        with self._lock:
            if self._file is None:
                return
            try:
                text = "\n" + line if self._torn else line
                self._file.append(text.encode("utf-8", "backslashreplace"))
                self._torn = False
            except OSError as error:
                self._torn = True
                if not is_full_disk(error):
                    self._file.close()
                    self._file = None

    def warn(self, message: str) -> None:
        """Note an event that the user should know about."""
        self.write(message, WARNING)

    def _log(self, message: str, level: int) -> None:
        """Pass it to ``logging``.  Without it in the program, only warnings are."""
        if level >= WARNING or "logging" in sys.modules:
            import logging  # noqa: PLC0415 - a sixth of the time that importing lsmkv takes

            logging.getLogger("lsmkv").log(level, "%s: %s", self._path, message)

    def close(self) -> None:
        """Close the file.  Later events go to ``logging`` alone."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
