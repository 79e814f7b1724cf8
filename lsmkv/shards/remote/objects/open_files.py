"""Keeps recently read files of a local store open."""

from __future__ import annotations

import threading
from collections import OrderedDict

from lsmkv.engine.env.base import RandomAccessFile

MOST_OPEN = 64
"""The most files that are kept open while no request uses them."""


class OpenFiles:
    """Open files by the names of objects; any thread may use it.

    An evicted file is closed with its last reference: another thread may be reading it.
    """

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._most = most
        self._mutex = threading.Lock()
        self._files: OrderedDict[str, RandomAccessFile] = OrderedDict()
        self._closed = False
        self._changes = 0  # how many names were forgotten

    def find(self, name: str) -> tuple[RandomAccessFile | None, int]:
        """The file of this name, if it is kept, and a number to pass to :meth:`add`."""
        with self._mutex:
            file = self._files.get(name)
            if file is not None:
                self._files.move_to_end(name)
            return file, self._changes

    def add(self, name: str, file: RandomAccessFile, changes: int) -> None:
        """Keep a file, unless a name was forgotten since ``find`` returned ``changes``.

        It could be the file of an object that was replaced since.
        """
        with self._mutex:
            if self._closed or changes != self._changes:
                return
            self._files[name] = file
            self._files.move_to_end(name)
            while len(self._files) > self._most:
                self._files.popitem(last=False)

    def forget(self, name: str) -> None:
        """Release a file: its name now refers to another object, or to none."""
        with self._mutex:
            self._changes += 1
            self._files.pop(name, None)

    def close(self) -> None:
        """Release all files, and keep no more."""
        with self._mutex:
            self._closed = True
            self._files.clear()
