"""Writes the trace of a store, in the threads that make the calls.

An operation is appended to a list, which takes no lock.  The thread that finds the list full, or a
second old, encodes and writes what is in it; meanwhile the others continue appending.  So a killed
process loses the operations of about its last second.  A trace that cannot be written is given up,
with a warning in the info log, and the store continues without it.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from typing import Final

from librt.threading import Lock

from lsmkv.engine.db.observe.trace import (
    OPERATIONS,
    Observed,
    encode_chunk,
    encode_header,
    is_header,
)
from lsmkv.engine.env.base import Directory, Env, WritableFile
from lsmkv.engine.format.log import LogReader, LogWriter

_CHUNK: Final = 512  # operations that are written at once
_CHUNK_BYTES: Final = 1 << 18  # of keys, beyond which fewer are
_LONGEST_WAIT: Final = 1_000_000_000  # nanoseconds until the next operation has them written


class TraceWriter:
    """One trace.  Any thread may call any method.

    In a forked child nothing more is written: the file is the parent's.
    """

    def __init__(self, file: WritableFile, sample: int, warn: Callable[[str], None]) -> None:
        """Writes the header.  ``warn`` is called if later writing fails."""
        self._file = file
        self._sample = sample
        self._warn = warn
        self._pid = os.getpid()
        self._log = LogWriter(file)
        self._epoch = time.perf_counter_ns()
        self._log.add_record(encode_header(time.time_ns() // 1000, sample))
        self._seen = [0] * (len(OPERATIONS) + 1)
        self._pending: list[Observed] = []
        self._pending_bytes = 0
        self._written_at = self._epoch
        self._lock = Lock()
        """Held while the pending operations are written."""
        self._ended = False

    def add(self, observed: Observed) -> None:
        """Note an operation, if it is one that the sample takes.  O(1), except for one call in
        many.

        The first operation of each kind is taken, then one in as many as the sample says.
        """
        operation = observed[0]
        seen = self._seen[operation]
        self._seen[operation] = seen + 1
        if seen % self._sample != 0 or self._ended:
            return
        pending = self._pending
        pending.append(observed)
        self._pending_bytes += len(observed[1])
        if (
            len(pending) >= _CHUNK
            or self._pending_bytes >= _CHUNK_BYTES
            or observed[2] - self._written_at >= _LONGEST_WAIT
        ):
            self._write()

    def close(self) -> None:
        """Write what is pending, and close the file.  A second close has no effect."""
        if os.getpid() == self._pid and not self._ended:
            self._write()
        self._ended = True
        self._file.close()

    def _write(self) -> None:
        """Write what is pending, unless another thread does so already."""
        # Not waited for: a signal's handler that operates on the store may have interrupted the
        # very thread that writes.
        if self._lock.locked():
            return
        with self._lock:
            # Only the holder of the lock removes: what others append stays.
            pending = self._pending
            size = len(pending)
            if size == 0 or self._ended or os.getpid() != self._pid:
                return
            chunk = pending[:size]
            del pending[:size]
            self._pending_bytes = 0
            self._written_at = time.perf_counter_ns()
            try:
                self._log.add_record(encode_chunk(chunk, self._epoch))
            except OSError as error:
                self._ended = True
                self._warn(f"The trace ends here: {error}")


def create_trace(env: Env, path: str, sample: int, warn: Callable[[str], None]) -> TraceWriter:
    """Begin a trace.  An older trace in its place is replaced, or an empty file.

    Raises ``OSError``, and ``FileExistsError`` if another file has this name.
    """
    parent, name = os.path.split(path)
    with env.open_directory(parent or ".") as directory:
        if directory.exists(name):
            _refuse_other_file(directory, name, path)
            directory.remove(name)
        file = directory.create(name)
    try:
        return TraceWriter(file, sample, warn)
    except BaseException:
        file.close()
        raise


def _refuse_other_file(directory: Directory, name: str, path: str) -> None:
    with directory.open(name) as file:
        first = None if file.size == 0 else next(LogReader(file), None)
        if file.size > 0 and (first is None or not is_header(first.payload)):
            raise FileExistsError(errno.EEXIST, "the file exists, and is not a trace", path)
