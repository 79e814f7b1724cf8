"""Large values: stored in chunks of 1 MiB, and read as a file: :class:`ValueReader`.

A value is stored under its own number.  Its chunks come first, and one batch then publishes it with
the head of its entry.  Until then a *pending* key names the value and the process that stores it,
and is written again with each chunk.  That process holds a lease on the number until the value is
published; the lease ends with it, in any namespace.  Opening a cache removes the chunks of values
that no process still stores, so half-stored values are found without a scan.  The batch that
publishes a value also removes its pending key, and fails if that is gone: a value that was removed
by mistake is never published.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from lsmkv.cache.entry_head import CHUNK_SIZE, LARGEST, Pointer
from lsmkv.cache.keys import CHUNK, NUMBER_SIZE, PENDING, chunk_key
from lsmkv.engine.db.db import DB
from lsmkv.engine.env.place import is_running
from lsmkv.engine.errors import ConflictError, CorruptionError, Error
from lsmkv.engine.format.batch import Operation, WriteBatch

MOST_INLINE: Final = 1 << 16
"""Bytes of the largest value that is part of its entry's head, where none is beside it."""
MOST_BEFORE: Final = 1 << 10
"""The same where larger ones are beside their heads."""
_WRITER: Final = struct.Struct(">Qd")
"""Process id, and the time of the last chunk."""
_MOST_PID: Final = (1 << 31) - 1
_ABANDONED: Final = 3600.0
"""Seconds without a chunk after which a value's writer is taken for gone."""


class Readable(Protocol):
    """A file that is open for reading bytes."""

    def read(self, size: int, /) -> bytes:
        """At most this many bytes; none at the end."""
        ...


def pieces_of(value: bytes) -> Iterator[bytes]:
    """A value in pieces of a chunk's size."""
    for begin in range(0, len(value), CHUNK_SIZE):
        yield value[begin : begin + CHUNK_SIZE]


def pieces_in(file: Readable) -> Iterator[bytes]:
    """The rest of a file, in pieces of a chunk's size, even if it reads more than requested."""
    rest = b""
    while True:
        parts = [rest] if rest else []
        missing = CHUNK_SIZE - len(rest)
        while missing > 0:
            part = file.read(missing)
            if not isinstance(part, (bytes, bytearray)):
                raise TypeError(f"a file in binary mode reads bytes, not {type(part).__name__}")
            if not part:
                break
            parts.append(bytes(part))
            missing -= len(part)
        whole = b"".join(parts)
        if missing > 0:
            if whole:
                yield whole
            return
        full = len(whole) - len(whole) % CHUNK_SIZE
        yield from pieces_of(whole[:full])
        rest = whole[full:]


def store(db: DB, number: bytes, pieces: Iterator[bytes], clock: Callable[[], float]) -> Pointer:
    """Store the chunks of a value, which nobody sees before its head points to them.

    Memory: one chunk.  Whatever is raised, the chunks are removed.  ``ValueError`` for a value of
    4 GiB or more.
    """
    size = index = 0
    try:
        for piece in pieces:
            if size + len(piece) >= LARGEST:
                raise ValueError("a value of a cache is smaller than 4 GiB")
            pending = PENDING + number, _WRITER.pack(os.getpid(), clock())
            _write_pending(db, [pending, (chunk_key(number, index), piece)], index > 0)
            size += len(piece)
            index += 1
    except BaseException:
        discard(db, number, index + 1)
        raise
    return Pointer(size, number)


def _write_pending(db: DB, operations: list[Operation], begun: bool) -> None:
    """Write a chunk with the pending key of its value, which is there already if it was ``begun``.

    A killed process may have sent a chunk that the owner of the store processes only after another
    one has swept the value.
    """
    key = operations[0][0]
    while True:
        writer, sequence = db._open_writer(), db.sequence
        if begun and db.get(key) is None:
            raise Error("a large value was removed before it was published")
        try:
            writer.write_unless_changed(operations, sequence, [key])
            return
        except ConflictError:
            pass  # a table has appeared, or the value is gone


def discard(db: DB, number: bytes, chunks: int) -> None:
    """Remove the chunks of a value that no head points to."""
    batch = WriteBatch()
    for index in range(chunks):
        batch.delete(chunk_key(number, index))
    batch.delete(PENDING + number)
    db.write(batch)


def sweep(db: DB, now: float, alone: bool) -> int:
    """Remove values that were half stored when their process ended; return how many.

    ``alone`` says that no other process has the store.  Cost: a seek, and a deletion for each
    chunk.
    """
    pending = list(db.iterator(prefix=PENDING, include_value=False))
    return sum(_sweep_one(db, key, now, alone) for key in pending)


def _sweep_one(db: DB, key: bytes, now: float, alone: bool) -> bool:
    """Remove one value if no process still stores it."""
    while True:
        path, sequence = db._open_writer(), db.sequence
        writer = db.get(key)
        if writer is None:
            return False
        pid, since = _WRITER.unpack(writer) if len(writer) == _WRITER.size else (0, 0.0)
        number = key[1:]
        if not alone and db._is_number_leased(int.from_bytes(number, "big")):
            return False
        # Releases before 0.3 take no lease.
        alive = not alone and 0 < pid <= _MOST_PID and is_running(pid)
        if alive and now - since < _ABANDONED:
            return False
        operations: list[Operation] = [(key, None)]
        if len(number) == NUMBER_SIZE:
            for chunk in db.iterator(prefix=CHUNK + number, include_value=False):
                operations.append((chunk, None))
        try:
            path.write_unless_changed(operations, sequence, [key])
            return True
        except ConflictError:
            pass  # the owner has processed another chunk; or a table has appeared


class MissingChunk(Exception):
    """A chunk is gone: the value was replaced after its head was read."""


def load(get: Callable[[bytes], bytes | None], pointer: Pointer) -> bytes:
    """A whole value.  :class:`MissingChunk` if a piece of it is not there."""
    parts: list[bytes] = []
    for index in range(pointer.chunks):
        part = get(pointer.key(index))
        if part is None:
            raise MissingChunk
        parts.append(part)
    value = b"".join(parts)
    if len(value) != pointer.size:
        raise CorruptionError(f"value is {len(value):,} bytes, expected {pointer.size:,}")
    return value


class ValueReader(io.RawIOBase):
    """A large value of a cache as a file that is open for reading; ``get(key, read=True)``.

    It shows the value as it was when it was opened, whatever is stored later, and keeps its chunks
    on disk until it is closed.  Memory: one chunk.

    >>> import io, lsmkv
    >>> with lsmkv.Cache(shared=False) as cache:
    ...     _ = cache.set("video", io.BytesIO(bytes(3_000_000)), read=True)
    ...     with cache.read("video") as reader:
    ...         reader.seek(2_000_000), len(reader.read()), reader.size
    (2000000, 1000000, 3000000)
    """

    def __init__(self, snapshot: Any, pointer: Pointer, name: str) -> None:
        """Called by a cache, not by users.  The reader closes the snapshot."""
        super().__init__()
        self._snapshot = snapshot
        self._pointer = pointer
        self._at = 0
        self._chunk = b""
        self._index = -1
        self.name = name
        """The key of the entry, as text."""

    @property
    def size(self) -> int:
        """The bytes of the whole value."""
        return self._pointer.size

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The position of the next byte."""
        self._require_open()
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a position, from the start (0), from here (1) or from the end (2)."""
        self._require_open()
        if whence not in (0, 1, 2):
            raise ValueError(f"whence is 0, 1 or 2, not {whence!r}")
        start = (0, self._at, self.size)[whence]
        if start + offset < 0:
            raise ValueError(f"a position below 0: {start + offset}")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, at most to the end of a chunk; return the bytes read, 0 at the end."""
        self._require_open()
        if self._at >= self.size:
            return 0
        index, begin = divmod(self._at, CHUNK_SIZE)
        if index != self._index:
            chunk = self._snapshot.get(self._pointer.key(index))
            if chunk is None or len(chunk) != self._pointer.length(index):
                raise CorruptionError(f"chunk {index} of {self.name} is missing or damaged")
            self._chunk, self._index = chunk, index
        view = memoryview(buffer).cast("B")
        part = self._chunk[begin : begin + len(view)]
        view[: len(part)] = part
        self._at += len(part)
        return len(part)

    def close(self) -> None:
        """Release the value.  Closing twice is harmless."""
        if not self.closed:
            self._snapshot.close()
            self._chunk = b""
        super().close()

    def _require_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")


class BytesReader(io.BytesIO):
    """A value that was not stored in chunks, as a file that is open for reading."""

    def __init__(self, value: bytes, name: str) -> None:
        super().__init__(value)
        self.name = name
        """The key of the entry, as text."""

    @property
    def size(self) -> int:
        """The bytes of the whole value."""
        return len(self.getbuffer())
