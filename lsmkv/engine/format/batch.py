"""WriteBatch: operations that are applied together or not at all.

Its bytes *are* the record in the write-ahead log (source: LevelDB, ``db/write_batch.cc``)::

    fixed64 sequence of the first operation, fixed32 count, then for each operation
    01 key value    a put           (key and value are length-prefixed strings)
    00 key          a deletion
"""

from __future__ import annotations

import struct
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol

from librt.strings import BytesWriter, write_i64_le
from mypy_extensions import mypyc_attr

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.keys import KIND_DELETION, KIND_VALUE, MAX_SEQUENCE
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.coding import (
    BYTES,
    MAX_UINT32,
    append_varint,
    decode_fixed32,
    decode_fixed64,
    string_place,
    varint_size,
)
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.engine.util.introspection import described
from lsmkv.engine.util.text import count

if TYPE_CHECKING:
    from mypy_extensions import i64, u8

HEADER_SIZE: Final = 12
_HEADER: Final = struct.Struct("<QI")

Operation = tuple[bytes, bytes | None]
"""A key with its new value, or with None to delete it."""


def as_put(key: object, value: object) -> Operation:
    """The operation of a put.  Raises ``TypeError`` or ``ValueError`` for wrong arguments."""
    user_key = key if type(key) is bytes else as_bytes(key, "key")
    content = value if type(value) is bytes else as_bytes(value, "value")
    if len(content) > MAX_UINT32:
        raise ValueError("value too large: the limit is 4 GiB")
    if len(user_key) > MAX_UINT32:
        raise _key_too_long()
    return user_key, content


def as_deletion(key: object) -> Operation:
    """The operation of a deletion.  Raises ``TypeError`` or ``ValueError`` for a wrong key."""
    user_key = key if type(key) is bytes else as_bytes(key, "key")
    if len(user_key) > MAX_UINT32:
        raise _key_too_long()
    return user_key, None


def _key_too_long() -> ValueError:
    return ValueError("key too large: the limit is 4 GiB")


def encode_batch(sequence: int, operations: list[Operation]) -> bytes:
    """The whole record.  O(bytes of the record)."""
    record = BytesWriter()
    append_batch(record, sequence, operations)
    return record.getvalue()


def batch_header(sequence: int, count: int) -> bytes:
    """Return the header of a record; its operations, encoded, follow."""
    return _HEADER.pack(sequence, count)


def append_batch(record: BytesWriter, sequence: int, operations: list[Operation]) -> None:
    """Write the record of :func:`encode_batch` into an empty ``record``."""
    if 0 <= sequence <= MAX_SEQUENCE:
        write_i64_le(record, sequence)
    else:  # a sequence that no store assigns
        record.write(sequence.to_bytes(8, "little"))
    write_i64_le(record, len(operations))
    record.truncate(HEADER_SIZE)
    # Inlined: in interpreted code, a call for each string would make a batch 10% slower.
    for key, value in operations:
        record.append(KIND_DELETION if value is None else KIND_VALUE)
        size: i64 = len(key)
        if size < 128:
            byte: u8 = BYTES[size]
            record.append(byte)
        else:
            append_varint(record, size)
        record.write(key)
        if value is not None:
            size = len(value)
            if size < 128:
                byte = BYTES[size]
                record.append(byte)
            else:
                append_varint(record, size)
            record.write(value)


def last_sequence(record: bytes) -> int:
    """The sequence of the last operation, by the header; 0 if the record is shorter than one."""
    if len(record) < HEADER_SIZE:
        return 0
    return decode_fixed64(record, 0) + decode_fixed32(record, 8) - 1


def encoded_size(operations: list[Operation]) -> int:
    """Bytes that the operations take in a record.  O(number of operations)."""
    total: i64 = 0
    for key, value in operations:
        size: i64 = len(key)
        total += 1 + varint_size(size) + size
        if value is not None:
            size = len(value)
            total += varint_size(size) + size
    return total


class BatchReader:
    """Iterates over the operations of a batch's record, without copying them.

    Call order: ``step*``.
    """

    __slots__ = (
        "_at",
        "_end",
        "_left",
        "count",
        "key_at",
        "key_end",
        "kind",
        "record",
        "sequence",
        "value_at",
        "value_end",
    )

    def __init__(self, record: bytes, start: int = 0, end: int | None = None) -> None:
        """The batch is ``record[start:end]``.

        Raises :class:`CorruptionError` if that is shorter than a header.
        """
        self._end: i64 = len(record) if end is None else end
        if self._end - start < HEADER_SIZE:
            raise CorruptionError("the batch is shorter than its header", None, 0)
        self.record = record
        self.sequence = decode_fixed64(record, start)
        """The sequence of the first operation."""
        self.count: i64 = decode_fixed32(record, start + 8)
        """The number of operations that the header states."""
        self._left: i64 = self.count
        self._at: i64 = start + HEADER_SIZE
        self.kind: i64 = 0
        """The kind of the operation, ``KIND_VALUE`` or ``KIND_DELETION``, after a step."""
        self.key_at: i64 = 0
        self.key_end: i64 = 0
        """The user key is ``record[key_at:key_end]``."""
        self.value_at: i64 = 0
        self.value_end: i64 = 0
        """The value is ``record[value_at:value_end]``; that of a deletion is empty."""

    def step(self) -> bool:
        """Go to the next operation; False if there is none.

        Raises :class:`CorruptionError` if the record is malformed.
        """
        record = self.record
        end = self._end
        at = self._at
        if at >= end:
            if self._left != 0:
                found = self.count - self._left
                reason = f"the batch header states {self.count} operations, not {found}"
                raise CorruptionError(reason, None, 8)
            return False
        start = at
        kind: i64 = record[at]
        size: i64 = 128
        if at + 1 < end:
            size = record[at + 1]
        at += 2
        stop: i64 = at + size
        if size >= 128 or stop > end:
            at, stop = self._string_at(start + 1)
        self.key_at = at
        self.key_end = stop
        at = stop
        if kind == KIND_VALUE:
            size = 128
            if at < end:
                size = record[at]
            at += 1
            stop = at + size
            if size >= 128 or stop > end:
                at, stop = self._string_at(at - 1)
        elif kind != KIND_DELETION:
            raise CorruptionError(f"a batch operation of unknown kind {kind}", None, start)
        self.kind = kind
        self.value_at = at
        self.value_end = stop
        self._at = stop
        self._left -= 1
        return True

    def _string_at(self, position: int) -> tuple[int, int]:
        at, stop = string_place(self.record, position)
        if stop > self._end:
            raise CorruptionError("string runs past the end", None, position)
        return at, stop


def decode_batch(
    record: bytes, start: int = 0, end: int | None = None
) -> tuple[int, list[Operation]]:
    """``(sequence of the first operation, operations)`` of the batch in ``record[start:end]``.

    Raises :class:`CorruptionError` if the record is malformed.
    """
    batch = BatchReader(record, start, end)
    operations: list[Operation] = []
    while batch.step():
        key = record[batch.key_at : batch.key_end]
        if batch.kind == KIND_VALUE:
            operations.append((key, record[batch.value_at : batch.value_end]))
        else:
            operations.append((key, None))
    return batch.sequence, operations


class BatchTarget(Protocol):
    """A store, or a view of one, to which a batch can be written."""

    def write(self, batch: WriteBatch, /, *, sync: bool = False) -> None:
        """Apply the batch, atomically."""
        ...


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class WriteBatch:
    """Collects puts and deletions; the last one on a key wins.

    A batch made by ``db.write_batch()`` belongs to that store: ``write()`` applies it, and so does
    leaving a ``with`` block.  If the block raises, a batch with ``transaction=True`` is discarded;
    one with ``transaction=False`` is still written, which is plyvel's default.

    A batch may not be used by several threads at once.  Keys and values of other types raise
    ``TypeError``, those of 4 GiB and more ``ValueError``; writing raises what ``DB.write`` raises.
    Adding an operation costs O(1) and keeps key and value; writing the batch costs one write to the
    log.

    >>> batch = WriteBatch()
    >>> batch.put(b"k", b"v")
    >>> batch.delete(b"old")
    >>> len(batch), batch.operations
    (2, [(b'k', b'v'), (b'old', None)])
    """

    def __init__(
        self, db: BatchTarget | None = None, *, transaction: bool = True, sync: bool = False
    ) -> None:
        self._db = db
        self._transaction = transaction
        self._sync = sync
        self.operations: list[Operation] = []
        """The operations, in order.  Read them; only the methods change them."""
        self._measured = 0  # operations whose bytes are in _size
        self._size = HEADER_SIZE

    def put(self, key: BytesLike, value: BytesLike) -> None:
        """Set ``key`` to ``value``."""
        self.operations.append(as_put(key, value))

    def delete(self, key: BytesLike) -> None:
        """Remove ``key``; no error if it does not exist."""
        self.operations.append(as_deletion(key))

    def append(self, source: WriteBatch) -> None:
        """Add all operations of another batch after those of this one.

        >>> first, second = WriteBatch(), WriteBatch()
        >>> second.put(b"k", b"v")
        >>> first.append(second)
        >>> first.operations
        [(b'k', b'v')]
        """
        if not isinstance(source, WriteBatch):
            raise TypeError(f"append takes a WriteBatch, not {type(source).__name__}")
        self.operations.extend(list(source.operations))

    def clear(self) -> None:
        """Forget all operations.

        >>> batch = WriteBatch()
        >>> batch.put(b"k", b"v")
        >>> batch.clear()
        >>> len(batch)
        0
        """
        self.operations = []
        self._measured = 0
        self._size = HEADER_SIZE

    def __len__(self) -> int:
        """Number of operations."""
        return len(self.operations)

    def approximate_size(self) -> int:
        """Bytes of the batch's record in the log.  O(operations added since the last call).

        >>> batch = WriteBatch()
        >>> batch.put(b"key", b"value")
        >>> batch.approximate_size()  # 12 for the header, 1 + 1 + 3 + 1 + 5 for the put
        23
        """
        added = self.operations[self._measured :]
        self._measured += len(added)
        self._size += encoded_size(added)
        return self._size

    def encode(self, sequence: int) -> bytes:
        """The log record, whose first operation has ``sequence``.

        >>> batch = WriteBatch()
        >>> batch.put(b"k", b"v")
        >>> batch.encode(7).hex(" ", -4)
        '07000000 00000000 01000000 01016b01 76'
        """
        return encode_batch(sequence, self.operations)

    def encoded_operations(self) -> bytes:
        """The record without its header.

        >>> batch = WriteBatch()
        >>> batch.delete(b"k")
        >>> batch.encoded_operations()
        b'\\x00\\x01k'
        """
        return self.encode(0)[HEADER_SIZE:]

    def write(self) -> None:
        """Apply the batch to the store that made it.  The batch keeps its content.

        Raises ``ValueError`` for a batch that was not made by a store.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     batch = db.write_batch()
        ...     batch.put(b"k", b"v")
        ...     batch.write()
        ...     list(db)
        [(b'k', b'v')]
        """
        if self._db is None:
            raise ValueError("this batch belongs to no store: use db.write(batch)")
        self._db.write(self, sync=self._sync)

    def __repr__(self) -> str:
        target = "" if self._db is None else f" for {self._db!r}"
        return f"<lsmkv.WriteBatch of {count(len(self.operations), 'operation')}{target}>"

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickled batches: each gets its own list of operations."""
        if self._db is not None:
            refuse_copy("a batch of a store", "it holds the store: append it to a WriteBatch()")
        return {**vars(self), "operations": list(self.operations)}

    def __enter__(self) -> WriteBatch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and self._transaction:
            self.clear()
            return
        self.write()
        self.clear()
