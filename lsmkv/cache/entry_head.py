"""The head of an entry: :class:`Head`, which is what a Get of a key reads.

::

    flags (1)  number (12)  time of storing (8)  [expiry (8)]  [length (2)  tag]
    then a small value's bytes; of one in chunks or beside, its size (8) and its value number (12)

``flags`` are :data:`RAW`, :data:`EXPIRES`, :data:`TAGGED`, and :data:`CHUNKED` or :data:`BESIDE`.
Times are seconds
since 1970, as big-endian floats.  The tag is encoded as a key is.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from lsmkv.cache.keys import NUMBER_SIZE, VALUE, chunk_key
from lsmkv.engine.errors import CorruptionError

RAW: Final = 1
"""The value is bytes that came from a file, and no codec has seen them."""
EXPIRES: Final = 2
TAGGED: Final = 4
CHUNKED: Final = 8
BESIDE: Final = 16
"""The value is under its own key: :mod:`lsmkv.cache.front`."""

START: Final = struct.Struct(">B12sd")
_TIME: Final = struct.Struct(">d")
_LENGTH: Final = struct.Struct(">H")
_POINTER: Final = struct.Struct(">Q12s")
_NONE: Final = b""
LARGEST: Final = 1 << 32
"""Bytes that a value is smaller than."""
CHUNK_SIZE: Final = 1 << 20
"""Bytes of each chunk of a large value but the last one."""
ENTRY_OVERHEAD: Final = 128
"""Bytes that an entry takes besides its head, about: three index keys and what blocks add."""


class Pointer(NamedTuple):
    """The place of a value that is not in its head: in chunks, or beside the head in one piece."""

    size: int
    number: bytes
    beside: bool = False

    @property
    def chunks(self) -> int:
        """The number of pieces."""
        return 1 if self.beside else -(-self.size // CHUNK_SIZE)

    def length(self, index: int) -> int:
        """The bytes of a piece."""
        return self.size if self.beside else min(CHUNK_SIZE, self.size - index * CHUNK_SIZE)

    def key(self, index: int) -> bytes:
        """The key of a piece."""
        return VALUE + self.number if self.beside else chunk_key(self.number, index)


class Head(NamedTuple):
    """The content of an entry other than its value."""

    flags: int
    number: bytes
    stored: float
    expiry: float | None
    tag: bytes | None
    """Encoded."""
    pointer: Pointer | None
    begin: int
    """The offset of a small value."""

    def expired(self, now: float) -> bool:
        """True if the entry is no longer valid at that time."""
        return self.expiry is not None and self.expiry <= now


def parse(data: bytes) -> Head:
    """The head in such bytes; :class:`CorruptionError` if they are malformed."""
    try:
        flags, number, stored = START.unpack_from(data)
        at = START.size
        expiry = tag = pointer = None
        if flags & EXPIRES:
            expiry = _TIME.unpack_from(data, at)[0]
            at += 8
        if flags & TAGGED:
            length = _LENGTH.unpack_from(data, at)[0]
            at += 2
            tag = data[at : at + length]
            at += length
            if at > len(data):
                raise CorruptionError("the head of an entry ends early", None, len(data))
        if flags & (CHUNKED | BESIDE):
            size, value = _POINTER.unpack_from(data, at)
            pointer = Pointer(size, value, flags & BESIDE != 0)
            at += _POINTER.size
            if pointer.size >= LARGEST:
                raise CorruptionError(f"a value of {pointer.size:,} bytes, which is too large")
    except struct.error as error:
        raise CorruptionError("the head of an entry ends early", None, len(data)) from error
    return Head(flags, number, stored, expiry, tag, pointer, at)


def make(
    number: bytes,
    stored: float,
    expiry: float | None,
    tag: bytes | None,
    raw: bool,
    value: bytes | Pointer,
) -> bytes:
    """The bytes of a head, with its value or where that is."""
    flags = RAW if raw else 0
    fields = _NONE
    if expiry is not None:
        flags |= EXPIRES
        fields = _TIME.pack(expiry)
    if tag is not None:
        if len(tag) > 0xFFFF:
            raise ValueError(f"a tag of {len(tag):,} bytes: 65,535 are possible")
        flags |= TAGGED
        fields += _LENGTH.pack(len(tag)) + tag
    if isinstance(value, Pointer):
        flags |= BESIDE if value.beside else CHUNKED
        fields += _POINTER.pack(value.size, value.number)
        return START.pack(flags, number, stored) + fields
    return START.pack(flags, number, stored) + fields + value


def entry_size(name: bytes, data: bytes, pointer: Pointer | None) -> int:
    """The bytes that an entry takes, about; always the same for the same name and head."""
    size = len(name) + len(data) + ENTRY_OVERHEAD
    return size if pointer is None else size + pointer.size


def with_expiry(data: bytes, head: Head, expiry: float | None) -> bytes:
    """The same head with another expiry."""
    value: Any = data[head.begin :] if head.pointer is None else head.pointer
    return make(head.number, head.stored, expiry, head.tag, bool(head.flags & RAW), value)


assert START.size == 1 + NUMBER_SIZE + 8
