"""A log whose bytes are reserved in advance and mapped: an append is one copy into memory.

``LocalDirectory.create_log`` makes it if the file system keeps reserved space (``mounts.py``).
Copied bytes are in the page cache, so a killed process loses none of them, as after a ``write``.  A
full disk is noticed when space is reserved, before anything is copied.

The file is longer than its content: zeros follow, up to a multiple of 32 KiB.  They are cut off
when the file is closed, and remain if the process is killed.  Readers of logs treat them as the
end.

The one new risk is SIGBUS, which ends the process like a kill.  It happens if the device fails on a
dropped page that is touched again, or if another process truncates the file.  So only a window at
the file's end is mapped, and the part before it is never touched.  (``docs/reliability.md``)
"""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from collections.abc import Callable

from lsmkv.engine.env.base import NO_LIMIT
from lsmkv.engine.env.local_file import LocalWritableFile, naming
from lsmkv.engine.util.signals import deferred

_UNIT = 32 * 1024
"""Reserved sizes are multiples of a log's block.  LevelDB continues after the zeros when it reuses
a log, and after a zero header it reads from the next block on."""
_FIRST = 64 * 1024
_MOST = 4 * 1024 * 1024
"""The bytes that are reserved first, and the most in one step; each step doubles the file."""
_PAGE = 4096
"""Logs in memory reserve pages."""
_TOUCHED = 64 * 1024
"""Bytes after the end whose pages are loaded: a store into another page would wait for it while
holding the interpreter's lock."""


def may_be_reserved(size: int, zeros: int) -> bool:
    """True if so many zeros at the end of a log of ``size`` bytes may be space that was reserved.

    They are not if the file does not end where a step of :class:`LocalLogFile` would, or if they
    are more than a step.

    >>> may_be_reserved(2 * _FIRST, _FIRST), may_be_reserved(100_000, 50_000)
    (True, False)
    """
    return size % _PAGE == 0 and zeros <= max(_FIRST, min(size // 2, _MOST)) + _UNIT


class _MappedWindow:
    """The mapped part of a file.  It is replaced as a whole, so an interrupt finds the old or the
    new one."""

    __slots__ = ("start", "view")

    def __init__(self, start: int, view: mmap.mmap) -> None:
        self.start = start
        """The offset in the file."""
        self.view = view


class LocalLogFile(LocalWritableFile):
    """A log in a window of memory.

    Nothing is reserved before the first append: a store that is only read reserves nothing.  If
    reserving fails, the log is written like any other file from then on.

    ``raw_write`` is the map's own ``write``, which copies bytes to its position and moves it.  So
    the position is the end of the content: ``size()``.

    An interrupt (KeyboardInterrupt) between any two steps leaves a state from which the call can be
    repeated.
    """

    _window: _MappedWindow | None = None
    """The mapped part, which closing must unmap.  The default is for the finalizer of an object
    whose constructor was interrupted."""

    def __init__(self, fd: int, path: str, end: int = 0) -> None:
        """Take over an appending descriptor of a file of ``end`` bytes."""
        super().__init__(fd, path)
        self._pid = os.getpid()
        self._refused = False
        self._end = end  # the end of the content, while nothing is mapped
        self._reserved = end
        self._touched = end
        _open_logs.add(self)

    @property
    def mapped(self) -> bool:
        return not self._refused

    @property
    def raw_write(self) -> Callable[[bytes], int]:
        return self._append_all if self._window is None else self._window.view.write

    def reserve(self, length: int) -> int:
        if self._refused:
            return NO_LIMIT
        end = self.size()
        wanted = end + length
        if wanted > self._touched:
            was_mapped = self._window is not None
            try:
                self._make_room(end, wanted)
            except OSError as error:
                if was_mapped:
                    error.filename = self.path
                    raise
                self._give_back(end)
                return NO_LIMIT
        return self._touched

    def append(self, data: bytes) -> None:
        self.reserve(len(data))
        if self._window is None:
            super().append(data)
        else:
            self._window.view.write(data)

    def size(self) -> int:
        window = self._window
        if window is not None:
            return window.start + window.view.tell()
        return super().size() if self._refused or self._fd < 0 else self._end

    def truncate(self, length: int) -> None:
        """Write zeros over everything after ``length``: the file never ends before its map does."""
        if self._refused:
            super().truncate(length)
            return
        size = self.size()
        if not 0 <= length <= size:
            raise ValueError(f"cannot truncate {self.path} to {length} bytes: it has {size}")
        with naming(self.path):
            window = self._window
            if window is None:
                self._forget_room(length)
                return
            if length < window.start:
                window = self._map_from(length, size)
            window.view[length - window.start : size - window.start] = bytes(size - length)
            window.view.seek(length - window.start)
        self._sync_begun = min(self._sync_begun, length)

    def close(self) -> None:
        """Truncate the file to its content, and close it."""
        with deferred:
            window, self._window = self._window, None
            if window is not None and os.getpid() == self._pid:
                end = window.start + window.view.tell()
                window.view.close()
                try:
                    os.ftruncate(self._fd, end)
                except OSError:
                    pass  # the zeros stay; readers expect them
            super().close()

    def give_up(self) -> None:
        """In a forked child: drop the parent's log without changing anything in it."""
        window, self._window = self._window, None
        if window is not None:
            try:
                window.view.close()
            except BufferError:
                pass  # another thread, which this process lacks, was touching pages
        super().close()

    def _make_room(self, end: int, wanted: int) -> None:
        """Reserve, map and touch at least up to ``wanted``."""
        if wanted > self._reserved:
            self._reserve_to(max(wanted, _FIRST))
        window = self._window
        if window is None or wanted > window.start + len(window.view):
            window = self._map_from(end, end)
        self._touch(window, wanted)

    def _reserve_to(self, wanted: int) -> None:
        """Reserve space up to ``wanted``, or double the file if there is space for that."""
        if sys.platform != "linux":  # as keeps_reservations requires
            raise NotImplementedError
        reserved = self._reserved
        least = _round_up(wanted)
        for step in (_round_up(max(wanted, min(2 * reserved, reserved + _MOST))), least):
            try:
                os.posix_fallocate(self._fd, reserved, step - reserved)
            except OSError:
                if step == least:
                    raise
            else:
                self._reserved = step
                return

    def _map_from(self, offset: int, end: int) -> _MappedWindow:
        """Map the file from the page of ``offset`` to the end of the reserved space, and unmap the
        old map.

        The content ends at ``end``.
        """
        start = offset - offset % mmap.ALLOCATIONGRANULARITY
        view = mmap.mmap(self._fd, self._reserved - start, offset=start)
        view.seek(end - start)
        old = self._window
        self._touched = end
        self._window = window = _MappedWindow(start, view)
        if old is not None:
            old.view.close()
        return window

    def _touch(self, window: _MappedWindow, wanted: int) -> None:
        """Load the pages up to ``wanted`` and a little more, without holding the lock.

        The system reads zeros of the file into the same zeros of the map.  Unlike a store, the call
        lets other threads run while it waits for pages.
        """
        if sys.platform != "linux":
            raise NotImplementedError
        start = self._touched
        stop = min(max(wanted, start + _TOUCHED), self._reserved)
        at = start
        with memoryview(window.view) as view:
            while at < stop:
                with view[at - window.start : stop - window.start] as rest:
                    done = os.preadv(self._fd, [rest], at)
                if done <= 0:
                    break  # the rest is loaded when it is stored to
                at += done
        self._touched = stop

    def _give_back(self, end: int) -> None:
        """Write to the file from now on."""
        self._end = end
        window, self._window = self._window, None
        if window is not None:
            window.view.close()
        with naming(self.path):
            self._forget_room(end)
        self._refused = True

    def _forget_room(self, end: int) -> None:
        self._end = self._reserved = self._touched = end
        os.ftruncate(self._fd, end)


def _round_up(length: int) -> int:
    return -(-length // _UNIT) * _UNIT


_open_logs: weakref.WeakSet[LocalLogFile] = weakref.WeakSet()


def _give_up_after_fork() -> None:
    for log in list(_open_logs):
        log.give_up()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up_after_fork)
