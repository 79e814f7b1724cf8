"""A write-ahead log: its records, and the fragments that they are cut into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.log import (
    BLOCK_SIZE,
    HEADER_SIZE,
    LogDamage,
    LogReader,
    check_fragment,
    frame,
    may_be_torn,
    next_fragment,
)
from lsmkv.files.batches import Batch
from lsmkv.files.parts import Damage, DamageKind
from lsmkv.files.readable import FileSource, FromBlock, OpenFile

LOG_BLOCK_SIZE: Final = 32768
"""Bytes of a block of a log, which no fragment crosses."""
FragmentKind = Literal["full", "first", "middle", "last", "filler", "room", "bad"]
"""The four types of fragments, and three kinds of other bytes.  ``filler`` is the end of a block,
too short for a header; ``room`` is zeros after the last record, reserved for more records; ``bad``
is anything else."""

_KINDS: tuple[FragmentKind, ...] = ("bad", "full", "first", "middle", "last")
_RUNS_PAST = "a fragment runs past its block"


class Fragment(NamedTuple):
    """Some bytes of a log: a fragment with its header, or other bytes in its place.

    The header is ``fixed32 CRC, fixed16 length, byte type``; the CRC is the masked CRC-32C of type
    and data.

    >>> (one,) = Log(bytes.fromhex("b5cd0ba2 0100 01 61")).fragments()
    >>> one.kind, one.is_good, one.offset, one.end, one.length, one.data, hex(one.crc)
    ('full', True, 0, 8, 1, b'a', '0xa20bcdb5')
    """

    offset: int
    """The offset in the file."""
    kind: FragmentKind
    stored: bytes
    """All of its bytes: header and data."""
    damage: Damage | None
    """The damage of ``bad`` bytes, such as a checksum mismatch; None for all others."""
    ends_log: bool = False
    """True if everything that follows belongs to the same, partly written record."""

    @property
    def is_good(self) -> bool:
        """True if it is a fragment of a record whose CRC is right."""
        return self.kind in _KINDS[1:]

    @property
    def end(self) -> int:
        """The end in the file."""
        return self.offset + len(self.stored)

    @property
    def data(self) -> bytes:
        """Its part of a record; empty unless it is a fragment of one."""
        return self.stored[HEADER_SIZE:] if self.is_good else b""

    @property
    def crc(self) -> int:
        """The CRC that the header states; for bad bytes, whatever is there."""
        return int.from_bytes(self.stored[:4], "little")

    @property
    def length(self) -> int:
        """The length of the data that the header states; for bad bytes, whatever is there."""
        return int.from_bytes(self.stored[4:6], "little")


class LogRecord(NamedTuple):
    """A complete record, assembled from its fragments.

    >>> record = LogRecord(0, 28, bytes.fromhex("0700000000000000 01000000 01016b0176"))
    >>> record.batch.sequence
    7
    """

    offset: int
    """Start of its first fragment in the file."""
    end: int
    """End of its last fragment."""
    payload: bytes

    @property
    def batch(self) -> Batch:
        """The record of a write-ahead log as a write batch.  Nothing is checked."""
        return Batch(self.payload)


class LogEnd(NamedTuple):
    """The end of a log.

    >>> Log(bytes(100)).ending()
    LogEnd(last=-1, end=0, damage=None)
    """

    last: int
    """Start of the last good record; -1 if there is none."""
    end: int
    """End of the last good record; 0 if there is none."""
    damage: Damage | None
    """The bytes after it that are not a record; of kind ``torn`` if they may be a write that was
    cut short.  None if nothing follows but space for more records."""


class Log(OpenFile):
    """A write-ahead log.

    The file is a sequence of 32 KiB blocks.  A record is cut into fragments, each within one block
    (:class:`Fragment`).  A block's last bytes are zero if no header fits.  A writer may have
    reserved space: zeros after the last record.  After damage, reading continues at the next good
    fragment.  (``docs/reference/format.md``; LevelDB's ``doc/log_format.md``.)

    Opening raises ``OSError`` and costs no read.  Each walk reads the file once, in blocks;
    memory: one record.  An object is for one thread.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
    ...     db.put(b"k", b"v")
    ...     with env.open_directory("store") as directory:
    ...         data = directory.open("000003.log").read(0, 1000)
    >>> log = Log(data.rstrip(b"\\0"))
    >>> [(one.offset, one.end, list(one.batch.operations())[0].key) for one in log.walk()]
    [(0, 24, b'k')]
    >>> [(one.offset, one.kind, one.length, one.is_good) for one in log.fragments()]
    [(0, 'full', 17, True)]
    >>> cut = Log(log.read(0, 20))
    >>> list(cut.walk())
    [Damage(kind='torn', offset=0, size=20, reason='a fragment runs past its block', at=None)]
    >>> list(cut.records()), cut.ending().end
    ([], 0)
    >>> log.path
    '<bytes>'
    >>> log.close()
    """

    _reserved = True  # whether zeros at the end are space for more records

    def __init__(self, source: FileSource) -> None:
        """``source`` is a path, the bytes of a log, or a :class:`Readable`."""
        super().__init__(source)

    def walk(self, start: int = 0) -> Iterator[LogRecord | Damage]:
        """The records and the damage between them, in the order of the file.

        ``start`` is where a record begins or ends: everything before it is skipped, and not read.
        Raises ``OSError``.
        """
        start = min(max(0, start), self.size)
        base = start - start % BLOCK_SIZE
        # The previous record may end in this block: a complete record replaces its end.
        size = start - base - HEADER_SIZE
        before = frame(bytes(size), 0) if size >= 0 else b""
        file = FromBlock(self._file, base, before) if start else self._file
        reader = LogReader(file, self._reserved)
        for record in reader:
            if record.damage is not None:
                yield _as_data(record.damage, base, record.offset)
            if base + record.offset >= start:
                yield LogRecord(base + record.offset, base + record.end, record.payload)
        if reader.tail is not None:
            yield _as_data(reader.tail, base, file.size)

    def records(self) -> Iterator[LogRecord]:
        """The records, one by one.

        Raises :class:`~lsmkv.CorruptionError` at the first damage, unless it may be a torn write at
        the end, and ``OSError``.
        """
        for part in self.walk():
            if isinstance(part, LogRecord):
                yield part
            elif part.kind != "torn" or part.offset + part.size < self.size:
                raise CorruptionError(part.reason, self.path, part.offset)

    def ending(self) -> LogEnd:
        """Return the last good record, and what follows it.  O(size of the file)."""
        last, end = -1, 0
        damage: Damage | None = None
        for part in self.walk():
            if isinstance(part, Damage):
                damage = part
            else:
                last, end, damage = part.offset, part.end, None
        return LogEnd(last, end, damage)

    def fragments(self) -> Iterator[Fragment]:
        """The fragments and other pieces of the file: each byte is in one of these.

        They agree with the records of :meth:`walk`.  Memory: one block of 32 KiB.  Raises
        ``OSError``.
        """
        file = self._file
        room_from = _content_end(file) if self._reserved else file.size
        for base in range(0, file.size, BLOCK_SIZE):
            block = file.read(base, min(BLOCK_SIZE, file.size - base))
            at = 0
            while len(block) - at >= HEADER_SIZE and base + at < room_from:
                kind, data, reason = check_fragment(block, at)
                if kind:
                    end = at + HEADER_SIZE + len(data)
                    yield Fragment(base + at, _KINDS[kind], block[at:end], None)
                else:
                    bad = _bad_fragment(file, base, block, at, reason)
                    end = at + len(bad.stored)
                    yield bad
                at = end
            rest = block[at:]
            if rest and base + at >= room_from:
                yield Fragment(base + at, "room", rest, None)
            elif rest and len(block) == BLOCK_SIZE and not rest.strip(b"\0"):
                yield Fragment(base + at, "filler", rest, None)
            elif rest:
                damage = Damage("torn", base + at, len(rest), "too few bytes for a header")
                yield Fragment(base + at, "bad", rest, damage)


def _as_data(damage: LogDamage, base: int, end: int) -> Damage:
    kind: DamageKind = "torn" if damage.torn else "damage"
    return Damage(kind, base + damage.offset, end - damage.offset, damage.reason)


def _content_end(file: RandomAccessFile) -> int:
    """The end of the last byte that is not zero."""
    for base in range((file.size - 1) // BLOCK_SIZE * BLOCK_SIZE, -1, -BLOCK_SIZE):
        block = file.read(base, BLOCK_SIZE).rstrip(b"\0")
        if block:
            return base + len(block)
    return 0


def _bad_fragment(
    file: RandomAccessFile, base: int, block: bytes, at: int, reason: str
) -> Fragment:
    """The bytes up to the next good fragment of the block."""
    zeros = not block[at:].strip(b"\0")
    end = len(block) if zeros else next_fragment(block, at + 1)
    alone = end == len(block)
    torn = may_be_torn(file, base, block, at, alone)
    cut_off = reason == _RUNS_PAST and len(block) < BLOCK_SIZE
    kind: DamageKind = "torn" if torn or cut_off or zeros else "damage"
    if zeros:
        reason = "zeros to the end of the block"
    damage = Damage(kind, base + at, end - at, reason)
    return Fragment(base + at, "bad", block[at:end], damage, torn and alone)
