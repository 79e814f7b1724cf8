"""A write batch: the content of one record of a write-ahead log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.batch import HEADER_SIZE
from lsmkv.engine.format.keys import KIND_VALUE
from lsmkv.engine.util.coding import decode_fixed32, decode_fixed64, decode_string
from lsmkv.engine.util.text import count
from lsmkv.files.parts import Field


class Operation(NamedTuple):
    """A put, or a deletion if ``value`` is None.

    >>> put = next(Batch(bytes.fromhex("0700000000000000 01000000 01016b0176")).operations())
    >>> put.key, put.value, [field.name for field in put.fields]
    (b'k', b'v', ['kind', 'key length', 'key', 'value length', 'value'])
    """

    sequence: int
    key: bytes
    value: bytes | None
    start: int
    """Start in the record, at the byte of its kind."""
    key_end: int
    """End of its key."""
    end: int
    """End of the operation."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its bytes in the record: ``kind``, ``key length``, ``key``, and those of the value."""
        kind = Field(
            "kind", self.start, self.start + 1, KIND_VALUE if self.value is not None else 0
        )
        found = (kind, *_string("key", kind.end, self.key_end, self.key))
        if self.value is None:
            return found
        return (*found, *_string("value", self.key_end, self.end, self.value))


class Batch:
    """A record of a write-ahead log: operations that are applied together.

    The layout is ``fixed64 sequence, fixed32 count``, then for each operation a byte of its kind (1
    put, 0 deletion), and key and value, each after its length as a varint32::

        sequence count kind key length key value length value ...

    The constructor checks nothing.  Methods raise :class:`~lsmkv.CorruptionError` with the position
    in the record.  A walk costs O(bytes); memory: the record, and one operation.

    >>> batch = Batch(bytes.fromhex("0700000000000000 02000000 01016b0176 00026f6c"))
    >>> batch.sequence, batch.count
    (7, 2)
    >>> [(one.sequence, one.key, one.value) for one in batch.operations()]
    [(7, b'k', b'v'), (8, b'ol', None)]
    >>> [(field.name, field.start, field.end) for field in batch.fields()][2:5]
    [('kind', 12, 13), ('key length', 13, 14), ('key', 14, 15)]
    >>> len(batch.payload)
    21
    """

    __slots__ = ("payload",)

    def __init__(self, payload: bytes) -> None:
        """``payload`` is the record."""
        self.payload = payload
        """The bytes of the record."""

    @property
    def sequence(self) -> int:
        """The sequence of the first operation; each later operation has the next one."""
        self._check_header()
        return decode_fixed64(self.payload, 0)

    @property
    def count(self) -> int:
        """The number of operations that the header states."""
        self._check_header()
        return decode_fixed32(self.payload, 8)

    def operations(self) -> Iterator[Operation]:
        """The operations, one by one.

        Raises :class:`~lsmkv.CorruptionError` after the last valid one, and at the end if there are
        more or fewer than :attr:`count`.
        """
        payload, sequence = self.payload, self.sequence
        at, done = HEADER_SIZE, 0
        while at < len(payload):
            kind = _kind(payload, at)
            key, end = decode_string(payload, at + 1)
            key_end, value = end, None
            if kind == KIND_VALUE:
                value, end = decode_string(payload, end)
            yield Operation(sequence + done, key, value, at, key_end, end)
            at = end
            done += 1
        self._check_count(done, None)

    def fields(self) -> Iterator[Field]:
        """The fields in the order of their bytes, which cover every byte.

        Raises as :meth:`operations` does, after the last valid field.
        """
        if len(self.payload) < HEADER_SIZE:
            raise CorruptionError("the record is too short for a batch", None, 0)
        yield Field("sequence", 0, 8, self.sequence)
        yield Field("count", 8, 12, self.count)
        done = 0
        for field in self._operation_fields():
            done += field.name == "kind"
            yield field
        self._check_count(done, 8)

    def _operation_fields(self) -> Iterator[Field]:
        payload = self.payload
        at = HEADER_SIZE
        while at < len(payload):
            kind = _kind(payload, at)
            yield Field("kind", at, at + 1, kind)
            at += 1
            for name in ("key", "value")[: kind + 1]:
                content, end = decode_string(payload, at)
                yield from _string(name, at, end, content)
                at = end

    def _check_header(self) -> None:
        if len(self.payload) < HEADER_SIZE:
            length = count(len(self.payload), "byte")
            raise CorruptionError(f"a record of {length}, too short for a batch")

    def _check_count(self, done: int, at: int | None) -> None:
        if done != self.count:
            stated = count(self.count, "operation")
            raise CorruptionError(f"the batch header states {stated}, not {done:,}", None, at)

    def __repr__(self) -> str:
        return f"<lsmkv.files.Batch, {count(len(self.payload), 'byte')}>"


def _kind(payload: bytes, at: int) -> int:
    kind = payload[at]
    if kind > KIND_VALUE:
        raise CorruptionError(f"a batch operation of unknown kind {kind}", None, at)
    return kind


def _string(name: str, start: int, end: int, content: bytes) -> tuple[Field, Field]:
    """The fields of a string: its length, and the string."""
    begin = end - len(content)
    return Field(f"{name} length", start, begin, len(content)), Field(name, begin, end, content)
