"""The pieces of Redis' RDB format that DUMP and RESTORE need, as Redis 7.0 writes and reads them.

=====================  ====================================================================
length                 ``00nnnnnn``; ``01nnnnnn`` and 8 bits; ``80`` and 4 bytes, ``81`` and 8
                       bytes, big-endian
string                 length and bytes; ``c0``, ``c1``, ``c2`` and a little-endian integer of 1,
                       2, 4 bytes in decimal; ``c3``, two lengths and bytes that LZF compressed
listpack, ziplist,     a string that has the elements of a small collection, with texts and
intset                 integers of many widths
=====================  ====================================================================

What is read here comes from clients: every reader raises :class:`RdbError` for bytes that are no
such thing, and nothing else.  Written are strings as they are, and listpacks for streams.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")
_I64: Final = struct.Struct("<q")
_DOUBLE: Final = struct.Struct("<d")
_LISTPACK_HEAD: Final = 6
_ZIPLIST_HEAD: Final = 10
_END: Final = 0xFF
_MOST_COUNTED: Final = 0xFFFF
_MOST_UNPACKED: Final = 1 << 29
"""A string that claims to be longer is refused."""


class RdbError(Exception):
    """Invalid bytes."""


class Reader:
    """Reads one thing after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """The number of bytes that are left."""
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        """The next bytes."""
        if count > self.left:
            raise RdbError
        self._at += count
        return self._data[self._at - count : self._at]

    def byte(self) -> int:
        return self.take(1)[0]

    def integer(self, width: int) -> int:
        """A little-endian integer with a sign."""
        return int.from_bytes(self.take(width), "little", signed=True)

    def big(self, width: int) -> int:
        """A big-endian integer without a sign."""
        return int.from_bytes(self.take(width), "big")

    def double(self) -> float:
        value: float = _DOUBLE.unpack(self.take(8))[0]
        return value

    def length(self) -> int:
        first = self.byte()
        if first < 0x40:
            return first
        if first < 0x80:
            return (first & 0x3F) << 8 | self.byte()
        if first in (0x80, 0x81):
            return self.big(4 if first == 0x80 else 8)
        raise RdbError

    def string(self) -> bytes:
        first = self.take(1)[0]
        if first in (0xC0, 0xC1, 0xC2):
            return b"%d" % self.integer(1 << (first & 3))
        if first == 0xC3:
            packed, size = self.length(), self.length()
            return unpacked(self.take(packed), size)
        self._at -= 1
        return self.take(self.length())

    def strings(self, count: int) -> list[bytes]:
        """The next ``count`` strings."""
        if count > self.left:
            raise RdbError
        return [self.string() for _ in range(count)]


def unpacked(data: bytes, size: int) -> bytes:
    """Decompress LZF: literal bytes, and copies of earlier bytes."""
    if size > _MOST_UNPACKED:
        raise RdbError
    found = bytearray()
    reader = Reader(data)
    while reader.left:
        control = reader.byte()
        if control < 32:
            found += reader.take(control + 1)
            continue
        length = control >> 5
        if length == 7:
            length += reader.byte()
        start = len(found) - ((control & 31) << 8 | reader.byte()) - 1
        if start < 0 or len(found) > size:
            raise RdbError
        length += 2
        part = bytes(found[start : start + length])
        found += (part * (length // len(part) + 1))[:length]
    if len(found) != size:
        raise RdbError
    return bytes(found)


def listpack(data: bytes) -> list[bytes]:
    """The elements of a listpack, integers in decimal."""
    if len(data) <= _LISTPACK_HEAD or _U32.unpack_from(data)[0] != len(data):
        raise RdbError
    return _elements(data, _LISTPACK_HEAD, _listpack_element)


def ziplist(data: bytes) -> list[bytes]:
    """The elements of a ziplist, integers in decimal."""
    if len(data) <= _ZIPLIST_HEAD or _U32.unpack_from(data)[0] != len(data):
        raise RdbError
    return _elements(data, _ZIPLIST_HEAD, _ziplist_element)


def _elements(data: bytes, head: int, read: Callable[[Reader], bytes]) -> list[bytes]:
    if data[-1] != _END:
        raise RdbError
    reader = Reader(data[head:-1])
    found: list[bytes] = []
    while reader.left:
        found.append(read(reader))
    return found


def _listpack_element(reader: Reader) -> bytes:
    before = reader.left
    first = reader.byte()
    if first < 0x80:
        found = b"%d" % first
    elif first < 0xC0:
        found = reader.take(first & 0x3F)
    elif first < 0xE0:
        number = (first & 0x1F) << 8 | reader.byte()
        found = b"%d" % (number - (1 << 13) if number >> 12 else number)
    elif first < 0xF0:
        found = reader.take((first & 0x0F) << 8 | reader.byte())
    elif first == 0xF0:
        found = reader.take(_U32.unpack(reader.take(4))[0])
    elif first < 0xF5:
        found = b"%d" % reader.integer((2, 3, 4, 8)[first - 0xF1])
    else:
        raise RdbError
    reader.take(_back_length_size(before - reader.left))
    return found


def _back_length_size(size: int) -> int:
    """The bytes that the length of an element takes after it."""
    return 1 + (size > 127) + (size >= 16383) + (size >= 2097151) + (size >= 268435455)


def _ziplist_element(reader: Reader) -> bytes:
    if reader.byte() == 0xFE:  # the length of the element before
        reader.take(4)
    first = reader.byte()
    if first < 0x40:
        return reader.take(first)
    if first < 0x80:
        return reader.take((first & 0x3F) << 8 | reader.byte())
    if first == 0x80:
        return reader.take(reader.big(4))
    if 0xF1 <= first <= 0xFD:
        return b"%d" % (first - 0xF1)
    width = {0xC0: 2, 0xD0: 4, 0xE0: 8, 0xF0: 3, 0xFE: 1}.get(first)
    if width is None:
        raise RdbError
    return b"%d" % reader.integer(width)


def intset(data: bytes) -> list[bytes]:
    """The members of a set of integers, in decimal."""
    reader = Reader(data)
    width, count = reader.integer(4), reader.integer(4)
    if width not in (2, 4, 8) or count < 0 or reader.left != width * count:
        raise RdbError
    return [b"%d" % reader.integer(width) for _ in range(count)]


# Writing


def encoded_length(number: int) -> bytes:
    """A length, or another number of up to 64 bits."""
    if number < 0x40:
        return bytes((number,))
    if number < 0x4000:
        return bytes((0x40 | number >> 8, number & 0xFF))
    if number >> 32 == 0:
        return b"\x80" + number.to_bytes(4, "big")
    return b"\x81" + number.to_bytes(8, "big")


def encoded_string(text: bytes) -> bytes:
    return encoded_length(len(text)) + text


def encoded_double(value: float) -> bytes:
    return _DOUBLE.pack(value)


def encoded_time(milliseconds: int) -> bytes:
    return _I64.pack(milliseconds)


def encoded_listpack(elements: list[int | bytes]) -> bytes:
    """A listpack of texts and integers."""
    parts = [_encoded_element(one) for one in elements]
    body = b"".join(parts)
    size = _LISTPACK_HEAD + len(body) + 1
    count = min(len(parts), _MOST_COUNTED)
    return _U32.pack(size) + _U16.pack(count) + body + bytes((_END,))


def _encoded_element(element: int | bytes) -> bytes:
    if isinstance(element, int):
        small = 0 <= element < 0x80
        text = bytes((element,)) if small else b"\xf4" + _I64.pack(element)
    elif len(element) < 0x40:
        text = bytes((0x80 | len(element),)) + element
    else:
        text = b"\xf0" + _U32.pack(len(element)) + element
    size = len(text)
    shifts = range(7 * _back_length_size(size) - 7, -1, -7)
    back = [size >> shift & 0x7F | 0x80 for shift in shifts]
    back[0] &= 0x7F
    return text + bytes(back)
