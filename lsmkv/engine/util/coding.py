"""Integers and strings as LevelDB lays them out (source: LevelDB, ``util/coding.h``).

* fixed32, fixed64: little-endian, 4 and 8 bytes.
* varint32, varint64: seven bits a byte, least significant first; the top bit says that another
  byte follows; at most 5 and 10 bytes.
* a length-prefixed string: varint32 length, then that many bytes.

Readers take a buffer and a position and return the value with the position after it.  They check
every length against the bytes given, and raise :class:`~lsmkv.errors.CorruptionError` (offset =
position in the buffer) and nothing else on malformed input.  All are O(size of the value).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i64_le

from lsmkv.engine.errors import CorruptionError

if TYPE_CHECKING:
    from mypy_extensions import i64, u8

MAX_UINT32: Final = 0xFFFFFFFF
MAX_UINT64: Final = 0xFFFFFFFFFFFFFFFF


def encode_fixed32(value: int) -> bytes:
    """Four bytes, little-endian.  ``value`` lies in 0..2**32-1, or ``OverflowError``."""
    return value.to_bytes(4, "little")


def decode_fixed32(data: bytes, position: int) -> int:
    """The integer in the four bytes from ``position``."""
    if position < 0 or position + 4 > len(data):
        raise CorruptionError("truncated fixed32", None, position)
    number: int = read_i32_le(data, position)
    return number & MAX_UINT32


def decode_fixed64(data: bytes, position: int) -> int:
    """The integer in the eight bytes from ``position``."""
    if position < 0 or position + 8 > len(data):
        raise CorruptionError("truncated fixed64", None, position)
    number: int = read_i64_le(data, position)
    return number if number >= 0 else number + MAX_UINT64 + 1


_ONE_BYTE: Final = [bytes([value]) for value in range(128)]

BYTES: Final = bytes(range(256))
"""Each byte at its own index: compiled code takes the ``u8`` for a ``BytesWriter`` from here, which
avoids narrowing a larger integer."""


def encode_varint(value: int) -> bytes:
    """``value`` >= 0 as a varint of at least one byte.  ``ValueError`` for a negative value."""
    if 0 <= value < 128:
        return _ONE_BYTE[value]
    if value < 0:
        raise ValueError(f"a varint cannot hold {value}")
    room = BytesWriter()
    byte: u8
    while value >= 128:
        byte = BYTES[value & 127 | 128]
        room.append(byte)
        value >>= 7
    byte = BYTES[value]
    room.append(byte)
    return room.getvalue()


def varint_size(value: i64) -> i64:
    """Bytes of ``value`` >= 0 as a varint."""
    size: i64 = 1
    while value >= 128:
        value >>= 7
        size += 1
    return size


def decode_varint32(data: bytes, position: int) -> tuple[int, int]:
    """A varint of at most five bytes and 32 bits: ``(value, position after it)``."""
    end = len(data)
    if 0 <= position < end:
        byte = data[position]
        if byte < 128:
            return byte, position + 1
        value = byte & 127
        shift = 7
        at = position + 1
        while at < end and shift <= 28:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                if value > MAX_UINT32:
                    raise CorruptionError("varint32 out of range", None, position)
                return value, at
            shift += 7
    raise CorruptionError("truncated or overlong varint32", None, position)


def decode_varint64(data: bytes, position: int) -> tuple[int, int]:
    """A varint of at most ten bytes and 64 bits: ``(value, position after it)``."""
    end: i64 = len(data)
    value: i64 = 0
    shift: i64 = 0
    at: i64 = position
    byte: i64
    while 0 <= at < end and shift < 63:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    if shift == 63 and at < end and data[at] < 128:
        if data[at] > 1:
            raise CorruptionError("varint64 out of range", None, position)
        number: int = value
        return number | data[at] << 63, at + 1
    raise CorruptionError("truncated or overlong varint64", None, position)


def encode_string(value: bytes) -> bytes:
    """A length-prefixed string."""
    return encode_varint(len(value)) + value


def append_fixed32(writer: BytesWriter, value: i64) -> None:
    """Write ``value``, which lies in 0..2**32-1, in four bytes."""
    end: i64 = len(writer) + 4
    write_i64_le(writer, value)
    writer.truncate(end)


def append_varint(writer: BytesWriter, value: i64) -> None:
    """Write ``value`` >= 0 as a varint."""
    byte: u8
    while value >= 128:
        byte = BYTES[value & 127 | 128]
        writer.append(byte)
        value >>= 7
    byte = BYTES[value]
    writer.append(byte)


def decode_string(data: bytes, position: int) -> tuple[bytes, int]:
    """A length-prefixed string: ``(bytes, position after it)``."""
    start, end = string_place(data, position)
    return data[start:end], end


def string_place(data: bytes, position: int) -> tuple[int, int]:
    """Start and end in ``data`` of the length-prefixed string whose prefix is at ``position``."""
    length, start = decode_varint32(data, position)
    end = start + length
    if end > len(data):
        raise CorruptionError("string runs past the end", None, position)
    return start, end
