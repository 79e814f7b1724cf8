"""A log whose bytes are reserved ahead of need and mapped: an append is one copy into memory.

``LocalDirectory.create_log`` makes it where the file system keeps what it has reserved
(``mounts.py``).  What was copied is in the page cache, so a killed process loses none of it, as
after a ``write``.  A full disk is met when room is reserved, before anything is copied.

The file is longer than its content: zeros follow, up to a multiple of 32 KiB.  They are cut off
when the file is closed, and stay if the process is killed; readers of logs take them for the end.

The one new danger is SIGBUS, which ends the process as a kill does: the device fails on a page that
was dropped and is touched again, or another process cuts the file.  So only a window at the file's
end is mapped, and what lies before it is never touched.  (``docs/reliability.md``)
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Callable

from lsmkv.env.base import NO_LIMIT
from lsmkv.env.local_file import LocalWritableFile, naming

_UNIT = 32 * 1024
"""Reserved sizes are multiples of a log's block: LevelDB, which goes on behind the zeros when it
reuses a log, reads what follows a zero header from the next block on."""
_FIRST = 64 * 1024
_MOST = 4 * 1024 * 1024
"""Bytes that are reserved at first, and in one step at most; each step doubles the file."""
_TOUCHED = 64 * 1024
"""Bytes ahead of the end whose pages are there: a store into a page that is not has to wait for it
with the interpreter's lock held."""


class LocalLogFile(LocalWritableFile):
    """A log in a window of memory.

    Nothing is reserved before the first append: a store that is only read reserves nothing.  If
    that cannot be done, the log is written to as any other file, for all its life.

    ``raw_write`` is the map's own ``write``, which copies bytes to its position and moves it.  So
    the position is where the content ends: ``size()``.
    """

    def __init__(self, fd: int, path: str, end: int = 0) -> None:
        """Take over the descriptor, which appends, of a file of ``end`` bytes."""
        super().__init__(fd, path)
        self._pid = os.getpid()
        self._map: mmap.mmap | None = None
        self._refused = False
        self._window = end  # the offset in the file at which the map begins
        self._reserved = end
        self._touched = end
        _open_logs.add(self)

    @property
    def mapped(self) -> bool:
        return not self._refused

    @property
    def raw_write(self) -> Callable[[bytes], int]:
        return self._append_all if self._map is None else self._map.write

    def reserve(self, length: int) -> int:
        if self._refused:
            return NO_LIMIT
        end = self.size()
        wanted = end + length
        if wanted > self._touched:
            mapped = self._map is not None
            try:
                self._make_room(end, wanted)
            except OSError as error:
                if mapped:
                    error.filename = self.path
                    raise
                self._give_back(end)
                return NO_LIMIT
        return self._touched

    def append(self, data: bytes) -> None:
        self.reserve(len(data))
        if self._map is None:
            super().append(data)
        else:
            self._map.write(data)

    def size(self) -> int:
        return super().size() if self._map is None else self._window + self._map.tell()

    def truncate(self, length: int) -> None:
        """Write zeros over what lies behind ``length``: the file never ends below its map."""
        if self._map is None:
            super().truncate(length)
            return
        size = self.size()
        if not 0 <= length <= size:
            raise ValueError(f"cannot cut {self.path} back to {length} bytes: it has {size}")
        if length < self._window:
            with naming(self.path):
                self._map_from(length)
        self._map.seek(length - self._window)
        self._map.write(bytes(size - length))
        self._map.seek(length - self._window)
        self._sync_begun = min(self._sync_begun, length)

    def close(self) -> None:
        """Cut the file to its content, and close it."""
        view, self._map = self._map, None
        if view is not None and os.getpid() == self._pid:
            end = self._window + view.tell()
            view.close()
            try:
                os.ftruncate(self._fd, end)
            except OSError:
                pass  # the zeros stay, which readers know
        super().close()

    def give_up(self) -> None:
        """In a forked child: let go of the parent's log, and change nothing in it."""
        view, self._map = self._map, None
        if view is not None:
            try:
                view.close()
            except BufferError:
                pass  # another thread, which this process does not have, was touching pages
        super().close()

    def _make_room(self, end: int, wanted: int) -> None:
        """Reserve, map and touch up to ``wanted`` at least."""
        if wanted > self._reserved:
            self._reserve_to(max(wanted, _FIRST))
        if self._map is None or wanted > self._window + len(self._map):
            self._map_from(end)
        self._touch(wanted)

    def _reserve_to(self, wanted: int) -> None:
        """Reserve room up to ``wanted``; as much as the file has again, if there is so much."""
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

    def _map_from(self, end: int) -> None:
        """Map the file from the page of ``end`` to what is reserved, and unmap what was mapped."""
        window = end - end % mmap.ALLOCATIONGRANULARITY
        view = mmap.mmap(self._fd, self._reserved - window, offset=window)
        view.seek(end - window)
        old, self._map, self._window = self._map, view, window
        self._touched = end
        if old is not None:
            old.close()

    def _touch(self, wanted: int) -> None:
        """Have the pages at hand up to ``wanted`` and a little more, without holding the lock.

        The system reads zeros of the file into the same zeros of the map: unlike a store, the call
        lets other threads run while it waits for pages.
        """
        assert self._map is not None
        start = self._touched
        stop = min(max(wanted, start + _TOUCHED), self._reserved)
        at = start
        with memoryview(self._map) as view:
            while at < stop:
                with view[at - self._window : stop - self._window] as rest:
                    done = os.preadv(self._fd, [rest], at)
                if done <= 0:
                    break  # what is left is there when it is stored to
                at += done
        self._touched = stop

    def _give_back(self, end: int) -> None:
        """Write to the file from now on."""
        self._refused = True
        view, self._map = self._map, None
        if view is not None:
            view.close()
        with naming(self.path):
            os.ftruncate(self._fd, end)


def _round_up(length: int) -> int:
    return -(-length // _UNIT) * _UNIT


_open_logs: weakref.WeakSet[LocalLogFile] = weakref.WeakSet()


def _give_up_after_fork() -> None:
    for log in list(_open_logs):
        log.give_up()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up_after_fork)
