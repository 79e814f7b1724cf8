"""Takes fields off the front of untrusted bytes, and shows values as text.

Only :class:`~lsmkv.errors.CorruptionError` is raised, where bytes are missing or make no sense.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.indexeddb import Date
from lsmkv.engine.util.coding import decode_varint64
from lsmkv.engine.util.text import count

Find = Callable[[bytes, int], list[tuple[bytes, bytes]]]
"""The entries of a store from a key on, and how many at most; a decoder looks names up with it."""

UNFINISHED = "…"
"""Follows a text whose bytes could not be decoded to the end."""
DEEPEST = 100
"""Levels of nesting that are decoded: Python's stack has a limit."""
_HEX = 16  # bytes of a value that are shown
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


class Reader:
    """The bytes of a value, and the place that is reached in them."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    @property
    def at_end(self) -> bool:
        """True if no bytes are left."""
        return self.at >= len(self.data)

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        if not 0 <= size <= len(self.data) - self.at:
            raise CorruptionError("truncated value", None, self.at)
        self.at += size
        return self.data[self.at - size : self.at]

    def byte(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def peek(self) -> int | None:
        """The next byte, which stays; None at the end."""
        return None if self.at_end else self.data[self.at]

    def integer(self, size: int, signed: bool = True) -> int:
        """A little-endian integer."""
        return int.from_bytes(self.take(size), "little", signed=signed)

    def varint(self) -> int:
        """A varint of at most 64 bits."""
        value, self.at = decode_varint64(self.data, self.at)
        return value

    def double(self) -> float:
        """A little-endian double."""
        value: float = struct.unpack("<d", self.take(8))[0]
        return value


def literal(value: object) -> str:
    """A value as JavaScript would write it, or nearly.

    >>> literal(["a", 1.0, b"abc", Date(0.0), True, None])
    '["a", 1, <3 bytes: 61 62 63>, Date(\\'1970-01-01T00:00:00+00:00\\'), true, null]'
    """
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, bytes):
        return f"<{in_hex(value)}>"
    if isinstance(value, Date):
        return "Date(invalid)" if math.isnan(value.milliseconds) else repr(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return str(int(value)) if abs(value) < 1e21 else repr(value)
    return json.dumps(value, ensure_ascii=False)


def bare(text: str) -> str:
    """The literal of a name, without its quotes if it needs none.

    >>> bare('"a"'), bare('"a b"'), bare("7")
    ('a', '"a b"', '7')
    """
    return text[1:-1] if _WORD.fullmatch(text[1:-1]) else text


def in_hex(data: bytes) -> str:
    """The number of some bytes, and the first ones.

    >>> in_hex(bytes(1000))
    '1,000 bytes: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 …'
    """
    more = f" {UNFINISHED}" if len(data) > _HEX else ""
    return f"{count(len(data), 'byte')}: {data[:_HEX].hex(' ')}{more}".removesuffix(": ")
