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
from lsmkv.util.coding import decode_fixed32

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


def frame(payload: bytes, block_offset: int) -> bytes:
    """The bytes of a record that starts at ``block_offset`` in its block.  O(len(payload))."""
    writer = BytesWriter()
    append_record(writer, payload, block_offset)
    return writer.getvalue()


def append_record(writer: BytesWriter, payload: bytes, block_offset: i64) -> None:
    """Write what :func:`frame` makes, in as many fragments as are needed."""
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


class LogRecord:
    """A whole record: where it starts and ends in the file, and the damage just before it."""

    __slots__ = ("damage", "end", "offset", "payload")

    def __init__(self, payload: bytes, offset: i64, end: i64, damage: LogDamage | None) -> None:
        self.payload = payload
        self.offset: i64 = offset
        self.end: i64 = end
        self.damage = damage


class _Fragment:
    """What lies from ``offset`` to ``end``: a fragment, or, with type 0, a stretch of bad bytes.

    The end of these is -1 where the file is just cut off.
    """

    __slots__ = ("data", "end", "kind", "offset", "reason")

    def __init__(self, offset: i64, end: i64, kind: i64, data: bytes, reason: str = "") -> None:
        self.offset: i64 = offset
        self.end: i64 = end
        self.kind: i64 = kind
        self.data = data
        self.reason = reason


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
        start: i64 = 0
        for fragment in self._fragments():
            kind = fragment.kind
            if kind <= FIRST and parts:
                torn = kind == 0 and fragment.end < 0
                damage = damage or LogDamage(start, "a record without its end", torn)
                parts = []
            if kind == FULL:
                self.end = fragment.end
                yield LogRecord(fragment.data, fragment.offset, fragment.end, damage)
                damage = None
            elif kind == 0:
                damage = damage or LogDamage(
                    fragment.offset, fragment.reason, torn=fragment.end < 0
                )
            elif kind == FIRST:
                start = fragment.offset
                parts = [fragment.data]
            elif not parts:
                damage = damage or LogDamage(fragment.offset, "a fragment without its beginning")
            else:
                parts.append(fragment.data)
                if kind == LAST:
                    self.end = fragment.end
                    yield LogRecord(b"".join(parts), start, fragment.end, damage)
                    parts = []
                    damage = None
        if parts:
            damage = damage or LogDamage(start, "a record without its end", torn=True)
        self.tail = damage

    def _fragments(self) -> Iterator[_Fragment]:
        for base in range(0, self._file.size, BLOCK_SIZE):
            block = self._file.read(base, BLOCK_SIZE)
            size: i64 = len(block)
            at: i64 = 0
            while size - at >= HEADER_SIZE:
                kind, data, reason = _check_fragment(block, at)
                if kind == 0:
                    zeros = not block[at:].strip(b"\0")
                    if zeros:
                        reason = "zeros to the end of the block"
                    cut_off = zeros or (reason == _RUNS_PAST and size < BLOCK_SIZE)
                    yield _Fragment(base + at, -1 if cut_off else base + at, 0, b"", reason)
                    at = _next_fragment(block, at + 1)
                    continue
                end: i64 = at + HEADER_SIZE + len(data)
                yield _Fragment(base + at, base + end, kind, data)
                at = end
            if size - at > 0 and (size < BLOCK_SIZE or block[at:].strip(b"\0")):
                yield _Fragment(base + at, -1, 0, b"", "bytes too few for a header")


def _check_fragment(block: bytes, at: i64) -> tuple[i64, bytes, str]:
    """``(type, data, reason)`` of the fragment at ``at``; type 0 where there is no good one."""
    low: i64 = block[at + 4]
    high: i64 = block[at + 5]
    kind: i64 = block[at + 6]
    if not FULL <= kind <= LAST:
        return 0, b"", f"a fragment of type {kind}"
    begin: i64 = at + HEADER_SIZE
    end: i64 = begin + (low | high << 8)
    if end > len(block):
        return 0, b"", _RUNS_PAST
    data = block[begin:end]
    if masked_crc32c(data, _TYPE_CRC[kind]) != decode_fixed32(block, at):
        return 0, b"", "fragment checksum mismatch"
    return kind, data, ""


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
