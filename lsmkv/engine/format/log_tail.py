"""Follows a log that another process is writing: :class:`LogTail`.

A view of a store that a writer has open uses it to follow the writer's log and MANIFEST.  The
framing is that of ``log.py``, which judges every byte of a file.  Here only complete records count.
What follows them is still being written, or left to :class:`~lsmkv.engine.format.log.LogReader`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.format.batch import last_sequence
from lsmkv.engine.format.keys import MAX_SEQUENCE
from lsmkv.engine.format.log import (
    BLOCK_SIZE,
    FIRST,
    FULL,
    HEADER_SIZE,
    LAST,
    LogRecord,
    check_fragment,
)

if TYPE_CHECKING:
    from mypy_extensions import i64

MAX_BYTES: Final = 1 << 62
"""More than any log has."""


class LogTail:
    """The records that were appended to a log since it was last read.

    Call order: ``(unread? read)*``, by one thread at a time.  The file stays open, so that a log
    can be read to its end after its writer has removed it.

    A mapped log is longer than its content, and its length says nothing.  So the bytes after the
    last record decide: zeros, or the end of the file, mean that nothing follows.  The header of the
    last record is checked as well: a writer whose write has failed may have cut the log back and
    written something else there.

    Three things may follow the last record: nothing; a partly written record, which does not count
    yet; or :attr:`unclear` bytes.
    """

    def __init__(self, file: RandomAccessFile, end: i64 = 0, last: i64 = -1) -> None:
        """``end`` is where the last record read from the file ends, and ``last`` is where it
        starts; -1 if there is none.  Raises ``OSError``."""
        self.file = file
        self._raw_read = file.raw_read
        self.end: i64 = end
        """End of the last record read."""
        self._last: i64 = last
        self._last_header = b"" if last < 0 else self._header_at(last)
        self.unclear = False
        """True if the bytes that follow are neither zeros nor the beginning of a record, or the
        bytes before have changed.  Then nothing more can be read."""

    def close(self) -> None:
        """Close the file."""
        self.file.close()
        self._raw_read = self.file.raw_read  # which raises from now on

    def unread(self) -> bool:
        """Return True if anything is unread.  Costs two reads of a few bytes."""
        if self.unclear or self._was_rewritten():
            return True
        return bool(self._header_at(_begin_after(self.end)).strip(b"\0"))

    def read(self, limit: int = MAX_SEQUENCE, most: i64 = MAX_BYTES) -> list[LogRecord]:
        """The complete records that were appended since the last read, in order.

        With a ``limit`` they are batches, and the first one that goes beyond that sequence is left
        for later, with all that follows.  So are those after ``most`` bytes.
        """
        found: list[LogRecord] = []
        if self.unclear or self._was_rewritten():
            self.unclear = True
            return found
        parts: list[bytes] = []  # of a record whose first fragment was read
        start: i64 = 0
        header = b""
        at = _begin_after(self.end)
        while True:
            room = BLOCK_SIZE - at % BLOCK_SIZE
            block = self._raw_read(room, at)
            size: i64 = len(block)
            here: i64 = 0
            while size - here >= HEADER_SIZE:
                kind, data, _ = check_fragment(block, here)
                if kind == 0:
                    # Usually zeros: then nothing follows, however far the file was reserved.
                    if block[here : here + HEADER_SIZE].strip(b"\0"):
                        self._judge(block, here, at)
                    return found
                if (kind <= FIRST) == bool(parts):
                    self.unclear = True  # a record without its end, or an end without its record
                    return found
                if kind <= FIRST:
                    start = at + here
                    header = block[here : here + HEADER_SIZE]
                here += HEADER_SIZE + len(data)
                if kind in (FULL, LAST):
                    payload = data if kind == FULL else b"".join(parts) + data
                    reached = 0
                    if limit < MAX_SEQUENCE:
                        reached = last_sequence(payload)
                        if reached > limit:
                            return found
                    parts = []
                    self._last = start
                    self._last_header = header
                    self.end = at + here
                    found.append(LogRecord(payload, start, self.end, None))
                    most -= len(payload)
                    if most <= 0 or reached == limit:
                        return found
                else:
                    parts.append(data)
            if size < room:
                self.unclear = bool(block[here:].strip(b"\0")) and self._goes_on(at + size)
                return found
            at += room

    def _judge(self, block: bytes, here: i64, at: i64) -> None:
        """Distinguish a record that is being written, at ``here`` in a block, from damage.

        Of such a record the first bytes are written, and zeros or the end of the file follow.  The
        length in its header counts only once the header is complete.
        """
        if block[here + 6] == 0:
            stop = here + HEADER_SIZE
        else:
            low: i64 = block[here + 4]
            high: i64 = block[here + 5]
            stop = here + HEADER_SIZE + (low | high << 8)
        behind = block[stop:].strip(b"\0")
        self.unclear = bool(behind) or self._goes_on(at + len(block))

    def _goes_on(self, offset: i64) -> bool:
        """Return True if the file has any byte other than zero from ``offset`` on."""
        while True:
            block = self.file.read(offset, BLOCK_SIZE)
            if block.strip(b"\0"):
                return True
            if len(block) < BLOCK_SIZE:
                return False
            offset += BLOCK_SIZE

    def _was_rewritten(self) -> bool:
        return self._last >= 0 and self._header_at(self._last) != self._last_header

    def _header_at(self, offset: i64) -> bytes:
        return self._raw_read(HEADER_SIZE, offset)


def _begin_after(end: i64) -> i64:
    """Return the start of the record after one that ends at ``end``."""
    room = BLOCK_SIZE - end % BLOCK_SIZE
    return end + room if room < HEADER_SIZE else end
