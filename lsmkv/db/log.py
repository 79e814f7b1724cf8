"""Record framing of the write-ahead log and of the MANIFEST.

A log is a row of blocks of 32 KiB, and a record is cut into fragments that do not cross them::

    fixed32 masked CRC-32C of type and data, 2 bytes length, 1 byte type, data
    types: 1 FULL, 2 FIRST, 3 MIDDLE, 4 LAST

A block's last bytes stay zero where no header of seven fits.  (Source: LevelDB,
``doc/log_format.md``.)

Reading tells damage apart but judges nothing: each record comes with the damage that lies before
it, and the reader keeps what it met at the end.  What a hole means is for recovery to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from librt.strings import BytesWriter, write_i64_le

from lsmkv.env.base import RandomAccessFile, WritableFile
from lsmkv.util.checksum import crc32c, masked_crc32c

if TYPE_CHECKING:
    from mypy_extensions import i64

BLOCK_SIZE: Final = 32768
HEADER_SIZE: Final = 7

FULL: Final = 1
FIRST: Final = 2
MIDDLE: Final = 3
LAST: Final = 4

_RUNS_PAST = "a fragment runs past its block"

_KINDS: Final = bytes([FIRST, FULL, MIDDLE, LAST])
"""By whether the record was begun before, times two, plus whether this is its end."""

_LARGE: Final = 1 << 20
"""For records of more bytes a writer makes room anew each time."""

_TYPE_CRC: Final = [crc32c(bytes([kind])) for kind in range(5)]


class LogWriter:
    """``add_record*``.  The file is the caller's, to sync and close."""

    def __init__(self, file: WritableFile) -> None:
        """Goes on at the end of ``file``, whose last record must be whole."""
        self._file = file
        self._bytes = BytesWriter()
        self.end: i64 = file.offset
        """Where the last record ends; to be set back by who cuts off what a failed call left."""

    def add_record(self, payload: bytes) -> None:
        """Append one record with one write: whole, or an ``OSError`` and an unknown part of it."""
        self._bytes.truncate(0)
        append_record(self._bytes, payload, self.end % BLOCK_SIZE)
        data = self._bytes.getvalue()
        if len(data) > _LARGE:
            self._bytes = BytesWriter()
        self._file.append(data)
        self.end += len(data)


def append_record(writer: BytesWriter, payload: bytes, block_offset: i64) -> None:
    """Write a record that starts at ``block_offset`` in its block, in as many fragments as needed.

    O(len(payload)).
    """
    left: i64 = BLOCK_SIZE - block_offset
    size: i64 = len(payload)
    at: i64 = 0
    begun: i64 = 0
    while True:
        if left < HEADER_SIZE:
            writer.write(bytes(left))
            left = BLOCK_SIZE
        length: i64 = left - HEADER_SIZE
        length = min(length, size - at)
        data = payload if length == size else payload[at : at + length]
        at += length
        ended: i64 = 1 if at == size else 0
        kind: i64 = _KINDS[begun << 1 | ended]
        crc: i64 = masked_crc32c(data, _TYPE_CRC[kind])
        header_end: i64 = len(writer) + HEADER_SIZE
        write_i64_le(writer, crc | length << 32 | kind << 48)
        writer.truncate(header_end)
        writer.write(data)
        if ended:
            return
        begun = 1
        left = 0


class LogDamage(NamedTuple):
    """Bytes that are no part of any whole record."""

    offset: int
    reason: str
    torn: bool = False
    """Whether it looks like a write cut short: nothing, or zeros, where the file should go on."""


class LogRecord(NamedTuple):
    """A whole record: where it starts and ends in the file, and the damage just before it."""

    payload: bytes
    offset: int
    end: int
    damage: LogDamage | None


class LogReader:
    """Iterates over the records of a log that can be read, those after damage included.

    After a bad fragment the next good one is looked for at every following byte of its block (a
    writer may have gone on right behind a torn record), then from the next block on.
    """

    def __init__(self, file: RandomAccessFile) -> None:
        self._file = file
        self.tail: LogDamage | None = None
        """After the iteration: bad bytes behind the last good record, or None."""
        self.end = 0
        """After the iteration: where the last good record ends."""

    def __iter__(self) -> Iterator[LogRecord]:
        damage: LogDamage | None = None
        parts: list[bytes] = []  # of a record whose FIRST fragment was met
        start = 0
        for offset, end, kind, data, reason in self._fragments():
            if kind in (FULL, FIRST, 0) and parts:
                torn = kind == 0 and end < 0
                damage = damage or LogDamage(start, "a record without its end", torn)
                parts = []
            if kind == 0:
                damage = damage or LogDamage(offset, reason, torn=end < 0)
            elif kind == FULL:
                self.end = end
                yield LogRecord(data, offset, end, damage)
                damage = None
            elif kind == FIRST:
                start = offset
                parts = [data]
            elif not parts:
                damage = damage or LogDamage(offset, "a fragment without its beginning")
            else:
                parts.append(data)
                if kind == LAST:
                    self.end = end
                    yield LogRecord(b"".join(parts), start, end, damage)
                    parts = []
                    damage = None
        if parts:
            damage = damage or LogDamage(start, "a record without its end", torn=True)
        self.tail = damage

    def _fragments(self) -> Iterator[tuple[int, int, int, bytes, str]]:
        """``(offset, end, type, data, reason)``.

        Type 0 stands for a stretch of bad bytes, its end being -1 where the file is just cut off.
        """
        for base in range(0, self._file.size, BLOCK_SIZE):
            block = self._file.read(base, BLOCK_SIZE)
            size = len(block)
            at = 0
            while size - at >= HEADER_SIZE:
                kind, length, reason = _check_fragment(block, at)
                if kind == 0:
                    zeros = not block[at:].strip(b"\0")
                    if zeros:
                        reason = "zeros to the end of the block"
                    cut_off = zeros or (reason == _RUNS_PAST and size < BLOCK_SIZE)
                    yield base + at, -1 if cut_off else base + at, 0, b"", reason
                    at = _next_fragment(block, at + 1)
                    continue
                begin = at + HEADER_SIZE
                yield base + at, base + begin + length, kind, block[begin : begin + length], ""
                at = begin + length
            if size - at > 0 and (size < BLOCK_SIZE or block[at:].strip(b"\0")):
                yield base + at, -1, 0, b"", "bytes too few for a header"


def _check_fragment(block: bytes, at: int) -> tuple[int, int, str]:
    """``(type, length, reason)`` of the fragment at ``at``; type 0 where there is no good one."""
    length = block[at + 4] | block[at + 5] << 8
    kind = block[at + 6]
    if not FULL <= kind <= LAST:
        return 0, 0, f"a fragment of type {kind}"
    end = at + HEADER_SIZE + length
    if end > len(block):
        return 0, 0, _RUNS_PAST
    if masked_crc32c(block[at + 6 : end]) != int.from_bytes(block[at : at + 4], "little"):
        return 0, 0, "fragment checksum mismatch"
    return kind, length, ""


def _next_fragment(block: bytes, at: int) -> int:
    """Where the next good fragment of the block starts; its length if there is none."""
    if not block[at:].strip(b"\0"):
        return len(block)
    last = len(block) - HEADER_SIZE
    while at <= last:
        # The type byte rules out nearly every position at the cost of one look.
        if FULL <= block[at + 6] <= LAST and _check_fragment(block, at)[0] != 0:
            return at
        at += 1
    return len(block)
