"""The files of a local store that were read from lately, kept open."""

from __future__ import annotations

import threading
from collections import OrderedDict

from lsmkv.env.base import RandomAccessFile

MOST_OPEN = 64
"""Files that are kept open while no request uses them."""


class OpenFiles:
    """Open files by the names of objects; any thread may use it.

    A file that leaves is closed with its last reference: another thread may be reading it.
    """

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._most = most
        self._mutex = threading.Lock()
        self._files: OrderedDict[str, RandomAccessFile] = OrderedDict()
        self._closed = False
        self._changes = 0  # how many names were forgotten

    def find(self, name: str) -> tuple[RandomAccessFile | None, int]:
        """The file of this name, if it is held; and a number to pass to :meth:`add`."""
        with self._mutex:
            file = self._files.get(name)
            if file is not None:
                self._files.move_to_end(name)
            return file, self._changes

    def add(self, name: str, file: RandomAccessFile, changes: int) -> None:
        """Hold a file, unless a name was forgotten since ``find`` returned ``changes``.

        It could then be the file of an object that was replaced.
        """
        with self._mutex:
            if self._closed or changes != self._changes:
                return
            self._files[name] = file
            self._files.move_to_end(name)
            while len(self._files) > self._most:
                self._files.popitem(last=False)

    def forget(self, name: str) -> None:
        """Let go of a file: the name stands for another object now, or for none."""
        with self._mutex:
            self._changes += 1
            self._files.pop(name, None)

    def close(self) -> None:
        """Let go of all files, and hold no more."""
        with self._mutex:
            self._closed = True
            self._files.clear()
