"""Record framing of the write-ahead log and of the MANIFEST.

A log is a sequence of 32 KiB blocks; a record is cut into fragments, each within one block::

    fixed32 masked CRC-32C of type and data, 2 bytes length, 1 byte type, data
    types: 1 FULL, 2 FIRST, 3 MIDDLE, 4 LAST

A block's last bytes stay zero if a header of seven bytes does not fit.  (Source: LevelDB,
``doc/log_format.md``.)

The reader finds damage but does not judge it: each record comes with the damage before it, and the
reader keeps the damage at the end.  Recovery decides what it means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from librt.strings import BytesWriter, write_i64_le
from mypy_extensions import mypyc_attr

from lsmkv.engine.env.base import RandomAccessFile, WritableFile
from lsmkv.engine.util.checksum import typed_crc32c
from lsmkv.engine.util.coding import decode_fixed32

if TYPE_CHECKING:
    from mypy_extensions import i64

BLOCK_SIZE: Final = 32768
HEADER_SIZE: Final = 7

FULL: Final = 1
FIRST: Final = 2
MIDDLE: Final = 3
LAST: Final = 4
_END: Final = 5  # not a fragment, but the end of the file

_RUNS_PAST = "a fragment runs past its block"

_LARGE: Final = 1 << 20
"""Bytes of a record beyond which the writer does not keep its buffer."""


class LogWriter:
    """Writes records to a log.  The caller, or a subclass, syncs and closes the file.

    Call order: ``add_record*``.
    """

    def __init__(self, file: WritableFile, end: int = 0) -> None:
        """``end`` is the file's length; if it is not 0, a whole record ends there."""
        self._file = file
        self._write = file.raw_write
        self._limit: i64 = file.reserve(0)
        """The offset up to which ``_write`` may be used."""
        self._bytes = BytesWriter()
        self.end: i64 = end
        """End of the last good record; a failed call may have left bytes after it."""

    def add_record(self, payload: bytes) -> None:
        """Append one record with one write.  After an ``OSError`` part of it may have been
        written."""
        self._bytes.truncate(0)
        append_record(self._bytes, payload, self.end % BLOCK_SIZE)
        data = self._bytes.getvalue()
        size: i64 = len(data)
        if size > _LARGE:
            self._bytes = BytesWriter()
        try:
            if self.end + size > self._limit:
                # If ``reserve`` fails or is interrupted, the space in use may be gone.
                self._limit = 0
                limit: i64 = self._file.reserve(size)
                self._write = self._file.raw_write
                self._limit = limit
            written: i64 = self._write(data)
            if written < size:
                self._file.append(data[written:])
        except OSError as error:
            error.filename = self._file.path
            raise
        self.end += size


def frame(payload: bytes, block_offset: int) -> bytes:
    """The bytes of a record that starts at ``block_offset`` in its block.  O(len(payload))."""
    writer = BytesWriter()
    append_record(writer, payload, block_offset)
    return writer.getvalue()


def append_record(writer: BytesWriter, payload: bytes, block_offset: i64) -> None:
    """Append the bytes of :func:`frame`, in as many fragments as are needed."""
    left: i64 = BLOCK_SIZE - block_offset
    size: i64 = len(payload)
    at: i64 = 0
    kind = FULL
    while size - at > left - HEADER_SIZE:
        if left < HEADER_SIZE:
            writer.write(bytes(left))
        else:
            length: i64 = left - HEADER_SIZE
            _append_fragment(writer, payload[at : at + length], FIRST if kind == FULL else MIDDLE)
            at += length
            kind = LAST
        left = BLOCK_SIZE
    _append_fragment(writer, payload if kind == FULL else payload[at:], kind)


def _append_fragment(writer: BytesWriter, data: bytes, kind: i64) -> None:
    crc: i64 = typed_crc32c(kind, data)
    length: i64 = len(data)
    header_end: i64 = len(writer) + HEADER_SIZE
    write_i64_le(writer, crc | length << 32 | kind << 48)
    writer.truncate(header_end)
    writer.write(data)


# Beyond the tour: reading a log, as recovery does


class LogDamage(NamedTuple):
    """Bytes that belong to no complete record: where they begin, and what is wrong there."""

    offset: int
    reason: str
    torn: bool = False
    """True if it looks like a torn record: the file ends, or holds zeros, where it should
    continue."""


@mypyc_attr(free_list_len=1)  # the next one takes the place of the last
class LogRecord:
    """A complete record: its payload, where it starts and ends in the file, and the damage
    before."""

    __slots__ = ("damage", "end", "offset", "payload")

    def __init__(self, payload: bytes, offset: i64, end: i64, damage: LogDamage | None) -> None:
        self.payload = payload
        self.offset: i64 = offset
        self.end: i64 = end
        self.damage = damage


class LogReader:
    """Iterates once over the complete records of a log, including those after damage.

    After a bad fragment it looks for the next good one at every following byte of the block, since
    a writer may have continued right after a torn record, then from the next block on.

    Bad bytes are torn if they may be one record that was copied in part (:func:`may_be_torn`): the
    writer was killed in the middle of the copy, or is about to continue it.  The log ends there.
    """

    def __init__(self, file: RandomAccessFile, reserved: bool = False) -> None:
        """``reserved``: zeros up to the end are space for more records, as in a write-ahead log,
        and not damage."""
        self._file = file
        self._reserved = reserved
        self._size: i64 = file.size
        self._next: i64 = 0  # the offset of the next block in the file
        self._base: i64 = 0  # the offset of this block
        self._block = b""
        self._at: i64 = 0  # how much of this block was read
        self._damage: LogDamage | None = None  # the first since the last record
        self._parts: list[bytes] = []  # the fragments so far of a record whose FIRST was read
        self._start: i64 = 0  # the offset of that one
        self.tail: LogDamage | None = None
        """After the iteration: the damage after the last good record, or None."""
        self.end: i64 = 0
        """After the iteration: where the last good record ends."""
        self.last: i64 = -1
        """After the iteration: where the last good record starts; -1 if there is none."""

    def __iter__(self) -> LogReader:
        return self

    def __next__(self) -> LogRecord:
        while True:
            kind, offset, end, data, reason = self._fragment()
            if kind <= FIRST and self._parts:
                torn = kind == 0 and end < 0
                self._note(self._start, "a record without its end", torn)
                self._parts = []
            if kind == FULL:
                return self._record(data, offset, end)
            if kind == 0:
                self._note(offset, reason, end < 0)
            elif kind == FIRST:
                self._start = offset
                self._parts = [data]
            elif kind == _END:
                if self._parts:
                    self._note(self._start, "a record without its end", True)
                self.tail = self._damage
                raise StopIteration
            elif not self._parts:
                self._note(offset, "a fragment without its beginning", False)
            else:
                self._parts.append(data)
                if kind == LAST:
                    payload = b"".join(self._parts)
                    self._parts = []
                    return self._record(payload, self._start, end)

    def _record(self, payload: bytes, offset: i64, end: i64) -> LogRecord:
        self.end = end
        self.last = offset
        damage = self._damage
        self._damage = None
        return LogRecord(payload, offset, end, damage)

    def _note(self, offset: i64, reason: str, torn: bool) -> None:
        """Remember damage, unless there was some already since the last record."""
        if self._damage is None:
            self._damage = LogDamage(offset, reason, torn)

    def _fragment(self) -> tuple[i64, i64, i64, bytes, str]:
        """The next fragment: type, start and end in the file, data, and a reason if it is bad.

        Type 0 is a stretch of bad bytes; its end is -1 if it looks torn.  Type ``_END`` is the end
        of the file.
        """
        while True:
            block = self._block
            size: i64 = len(block)
            at = self._at
            base = self._base
            if size - at >= HEADER_SIZE:
                kind, data, reason = check_fragment(block, at)
                if kind != 0:
                    end: i64 = at + HEADER_SIZE + len(data)
                    self._at = end
                    return kind, base + at, base + end, data, ""
                zeros = not block[at:].strip(b"\0")
                if zeros and self._reserved and self._zeros_from(self._next):
                    return _END, 0, 0, b"", ""
                next_at: i64 = size if zeros else next_fragment(block, at + 1)
                torn = may_be_torn(self._file, base, block, at, next_at == size)
                # Checked last: the bytes after it may have been written since the block was read.
                if self._was_changed():
                    continue
                self._at = next_at
                if torn and next_at == size:
                    # If the writer has continued by now, its new record must not look like a gap.
                    self._next = self._size
                if zeros:
                    return 0, base + at, -1, b"", "zeros to the end of the block"
                torn = torn or (reason == _RUNS_PAST and size < BLOCK_SIZE)
                return 0, base + at, -1 if torn else base + at, b"", reason
            if size - at > 0 and (size < BLOCK_SIZE or block[at:].strip(b"\0")):
                if self._reserved and not block[at:].strip(b"\0"):
                    return _END, 0, 0, b"", ""
                self._at = size
                return 0, base + at, -1, b"", "too few bytes for a header"
            if self._next >= self._size:
                return _END, 0, 0, b"", ""
            block = self._file.read(self._next, BLOCK_SIZE)
            self._block = block
            self._base = self._next
            self._next += BLOCK_SIZE
            self._at = 0

    def _was_changed(self) -> bool:
        """Return True if the block has changed since it was read, because its writer is active.

        If so, it is read again.
        """
        block = self._file.read(self._base, BLOCK_SIZE)
        if block == self._block:
            return False
        self._block = block
        return True

    def _zeros_from(self, offset: i64) -> bool:
        """Return True if the file holds only zeros from ``offset`` on."""
        while offset < self._size:
            if self._file.read(offset, BLOCK_SIZE).strip(b"\0"):
                return False
            offset += BLOCK_SIZE
        return True


def may_be_torn(file: RandomAccessFile, base: i64, block: bytes, at: i64, alone: bool) -> bool:
    """True if the bad bytes at ``at`` of the block at ``base`` may be a record copied in part.

    Each byte of such a record is there or is zero, in any order: the C library's copy stores the
    first bytes last, and pages reach the disk as they please.  So a header of zeros may precede
    sound data.  The record may continue in the next blocks if its type, as far as it is there, says
    so, and no fragment of another record lies among them; ``alone`` says that none follows in this
    block.  After it the file holds only zeros, at least one.  Its length may be half copied, too,
    so the rest of its last block does not count.
    """
    kind: i64 = block[at + 6]
    goes_on = alone and kind in (0, FIRST, MIDDLE)
    zero = block.endswith(b"\0")
    offset: i64 = base + BLOCK_SIZE
    while True:
        block = file.read(offset, BLOCK_SIZE)
        if not block:
            return zero
        if block.strip(b"\0"):
            if not goes_on or not _may_go_on_in(block):
                return False
            kind = block[6] if len(block) >= HEADER_SIZE else 0
            goes_on = kind != LAST
        zero = block.endswith(b"\0")
        offset += BLOCK_SIZE


def _may_go_on_in(block: bytes) -> bool:
    """Return True if a partly copied record of the previous block may continue in this one."""
    if len(block) < HEADER_SIZE:
        return True
    kind, data, _ = check_fragment(block, 0)
    if kind == 0:
        return block[6] in (0, MIDDLE, LAST) and next_fragment(block, 1) == len(block)
    end: i64 = HEADER_SIZE + len(data)
    return kind in (MIDDLE, LAST) and not block[end:].strip(b"\0")


def check_fragment(block: bytes, at: i64) -> tuple[i64, bytes, str]:
    """``(type, data, reason)`` of the fragment at ``at``; type 0 if there is no good one.

    The caller ensures that a whole header fits before the block's end.
    """
    low: i64 = block[at + 4]
    high: i64 = block[at + 5]
    kind: i64 = block[at + 6]
    if not FULL <= kind <= LAST:
        return 0, b"", f"a fragment of unknown type {kind}"
    begin: i64 = at + HEADER_SIZE
    end: i64 = begin + (low | high << 8)
    if end > len(block):
        return 0, b"", _RUNS_PAST
    data = block[begin:end]
    if typed_crc32c(kind, data) != decode_fixed32(block, at):
        return 0, b"", "fragment checksum mismatch"
    return kind, data, ""


def next_fragment(block: bytes, at: int) -> int:
    """Return the start of the next good fragment of the block; its length if there is none."""
    if not block[at:].strip(b"\0"):
        return len(block)
    last = len(block) - HEADER_SIZE
    while at <= last:
        # The type byte alone rules out nearly every position.
        if FULL <= block[at + 6] <= LAST and check_fragment(block, at)[0] != 0:
            return at
        at += 1
    return len(block)
