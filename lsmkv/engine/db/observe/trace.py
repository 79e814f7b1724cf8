"""The trace of a store: which operations it was asked for, when, and how long each took.

A trace is framed as a write-ahead log is (:mod:`lsmkv.engine.format.log`), so every record of the
file has a checksum, and a record that its writer could not finish is recognized.  The records are::

    header   "lsmkv trace", 01 (the version), varint64 microseconds since 1970, varint64 sample
    chunk*   varint64 microseconds since the header's time, then for each operation
             1 byte operation         1 get, 2 put, 3 delete, 4 write, 5 seek
             varint64 microseconds    since the operation before it in the chunk began
             varint64 nanoseconds     that it took
             varint64 size            1 + bytes of the value; 0 if there is none
             string key
             varint64 operations      of a batch; only if the operation is a write

Within a chunk, operations are in the order in which they began; from chunk to chunk, nearly so.
Values are left out, since a trace is to be small and may be given away.
``docs/reference/format.md`` has an example.  The writer is in ``trace_writer.py``.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Final, Never

from librt.strings import BytesWriter

from lsmkv.engine.env.base import Env, RandomAccessFile
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import CorruptionError, NotFoundError, raise_typed
from lsmkv.engine.format.log import LogReader
from lsmkv.engine.former_paths import keep_paths
from lsmkv.engine.util.coding import (
    BYTES,
    append_varint,
    decode_string,
    decode_varint64,
    encode_varint,
)
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.engine.util.record import Record

GET: Final = 1
PUT: Final = 2
DELETE: Final = 3
WRITE: Final = 4
SEEK: Final = 5

OPERATIONS: Final = ("get", "put", "delete", "write", "seek")
"""The operations by name; number 1 is the first."""

_MAGIC: Final = b"lsmkv trace\x01"

Observed = tuple[int, bytes, int, int, int, int]
"""An operation: its number, key, start and duration in nanoseconds, size (-1 for none), and the
operations of its batch."""


@dataclass(frozen=True)
class TraceRecord(Record):
    """An operation in a trace: what :func:`read_trace` returns.  Plain data: it raises nothing and
    costs nothing.

    >>> TraceRecord("get", b"k", start=0, duration=2100, size=None, operations=1).found
    False
    """

    operation: str
    """``get``, ``put``, ``delete``, ``write`` (a batch of several), or ``seek`` (an iterator)."""
    key: bytes
    """The first key of a batch; where a seek begins, ``b""`` for either end of the store."""
    start: int
    """Microseconds since the trace began."""
    duration: int
    """Nanoseconds."""
    size: int | None
    """Bytes of the value that was found or written; of a batch, of all keys and values.  None if
    there is no value: a get of an absent key, a delete, a seek that found nothing."""
    operations: int
    """1; of a batch, the number of its operations."""

    @property
    def found(self) -> bool:
        """True if there is a value."""
        return self.size is not None


class TraceReader:
    """Iterates, once, over the operations of a trace: see :func:`read_trace`.

    If the file ends within a record, as after a killed process, the iteration ends there.
    Raises :class:`~lsmkv.CorruptionError`, with file and offset, for any other damage.  O(1)
    memory, apart from the keys of a few hundred operations.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> options = {"create_if_missing": True, "env": env}
    >>> with lsmkv.DB("store", trace="store/TRACE", trace_sample=2, **options) as db:
    ...     values = db.multi_get([b"a", b"b", b"c"])
    >>> reader = lsmkv.read_trace("store/TRACE", env=env)
    >>> reader.sample, [operation.key for operation in reader]
    (2, [b'a', b'c'])
    """

    def __init__(self, file: RandomAccessFile) -> None:
        """Reads the header of ``file``, which is dropped after the last operation."""
        self._path = file.path
        self._log = LogReader(file)
        self._records: list[TraceRecord] = []  # of the present chunk, the last one first
        try:
            offset, header = self._payload()
        except CorruptionError as error:
            raise CorruptionError(f"not a trace: {error.reason}", self._path, 0) from None
        if not is_header(header):
            raise CorruptionError("not a trace", self._path, 0)
        try:
            started, at = decode_varint64(header, len(_MAGIC))
            sample, _ = decode_varint64(header, at)
        except CorruptionError as error:
            raise error.located(self._path, offset) from None
        self.started: float = started / 1_000_000
        """The time at which the trace began: seconds since 1970."""
        self.sample: int = sample
        """One operation out of this many of each kind was recorded."""

    def __iter__(self) -> TraceReader:
        """The reader itself."""
        return self

    def __next__(self) -> TraceRecord:
        """The next operation."""
        while not self._records:
            offset, chunk = self._payload()
            if not chunk:
                raise StopIteration
            try:
                self._records = decode_chunk(chunk)
            except CorruptionError as error:
                raise CorruptionError(error.reason, self._path, offset) from None
            self._records.reverse()
        return self._records.pop()

    def __reduce__(self) -> Never:
        refuse_copy("a TraceReader", "it holds an open file: read the trace again there")

    def _payload(self) -> tuple[int, bytes]:
        """The next record of the file with its offset; empty at the end."""
        try:
            record = next(self._log, None)
        except OSError as error:
            raise_typed(error)
        damage = self._log.tail if record is None else record.damage
        if damage is not None and not (record is None and damage.torn):
            raise CorruptionError(damage.reason, self._path, damage.offset)
        return (0, b"") if record is None else (record.offset, record.payload)


def read_trace(path: str | os.PathLike[str], *, env: Env | None = None) -> TraceReader:
    """The operations of a trace, in the order in which they began; see :class:`TraceRecord`.

    ``DB(..., trace=path)`` writes one.  It may be read while it is written, up to what was written
    when it was opened.  Raises :class:`~lsmkv.NotFoundError`, :class:`~lsmkv.IOError` if the file
    cannot be read, and :class:`~lsmkv.CorruptionError` if it is not a trace or is damaged; an end
    in the middle of a record is not damage.  Cost: a read of each 32 KiB, and a few microseconds
    per operation.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()  # on disk, leave it out
    >>> options = {"create_if_missing": True, "env": env}
    >>> env.open_directory("traces", create=True).close()
    >>> with lsmkv.DB("store", trace="traces/monday", **options) as db:
    ...     db.put(b"k", b"value")
    ...     value = db.get(b"k"), db.get(b"no such key")
    >>> for operation in lsmkv.read_trace("traces/monday", env=env):
    ...     print(operation.operation, operation.key, operation.size)
    put b'k' 5
    get b'k' 5
    get b'no such key' None
    """
    where = os.fsdecode(path)
    parent, name = os.path.split(where)
    try:
        with (LocalEnv() if env is None else env).open_directory(parent or ".") as directory:
            return TraceReader(directory.open(name))
    except FileNotFoundError:
        raise NotFoundError(errno.ENOENT, "no trace here", where) from None
    except OSError as error:
        raise_typed(error)


def encode_header(started: int, sample: int) -> bytes:
    """The first record of a trace that began at ``started``, in microseconds since 1970."""
    return _MAGIC + encode_varint(started) + encode_varint(sample)


def is_header(payload: bytes) -> bool:
    """Return True if a record is the first one of a trace."""
    return payload.startswith(_MAGIC)


def encode_chunk(observed: list[Observed], epoch: int) -> bytes:
    """The record of some operations.  ``epoch``: when the trace began, on their clock."""
    writer = BytesWriter()
    before = 0
    for operation, key, started, duration, size, operations in sorted(observed, key=_started):
        # Whole microseconds since the beginning are subtracted, so that no remainder adds up.
        at = max(0, (started - epoch) // 1000)
        if len(writer) == 0:
            append_varint(writer, at)
            before = at
        writer.append(BYTES[operation])
        append_varint(writer, at - before)
        append_varint(writer, max(0, duration))
        append_varint(writer, size + 1)
        append_varint(writer, len(key))
        writer.write(key)
        if operation == WRITE:
            append_varint(writer, operations)
        before = at
    return writer.getvalue()


def decode_chunk(chunk: bytes) -> list[TraceRecord]:
    """The operations of a chunk; :class:`CorruptionError` for anything else."""
    records: list[TraceRecord] = []
    start, at = decode_varint64(chunk, 0)
    while at < len(chunk):
        operation = chunk[at]
        if not GET <= operation <= SEEK:
            raise CorruptionError(f"no such operation: {operation}", None, at)
        later, at = decode_varint64(chunk, at + 1)
        duration, at = decode_varint64(chunk, at)
        size, at = decode_varint64(chunk, at)
        key, at = decode_string(chunk, at)
        operations = 1
        if operation == WRITE:
            operations, at = decode_varint64(chunk, at)
        start += later
        records.append(
            TraceRecord(
                OPERATIONS[operation - 1],
                key,
                start,
                duration,
                size - 1 if size > 0 else None,
                operations,
            )
        )
    return records


def _started(observed: Observed) -> int:
    return observed[2]


keep_paths(TraceReader, TraceRecord, read_trace)
