"""The keys of a cache's store: the names of its entries, indexes and counters.

The first byte of a key is its kind.

=====  ==================================  ======================================================
byte   then                                value
=====  ==================================  ======================================================
``c``  a handle's number (4)               what this handle has added to the counters
``e``  expiry (8), number (12)             nothing; in the order of expiry
``f``  nothing                             the floor (8), below which no value beside may be stored
``h``  the key of the user, encoded        the head of an entry (:mod:`lsmkv.cache.entry_head`)
``m``  nothing                             the version of this layout
``n``  number (12)                         position (8), and the user's key; in the order of storing
``p``  value number (12)                   who stores that value's chunks, until they are published
``q``  a queue's keys, less their number   the bounds of its entries (:mod:`lsmkv.cache.queues`)
``r``  position (8), number (12)           nothing, or a mark; in the order of eviction
``s``  the name of a setting               its value, by :class:`~lsmkv.cache.codecs.DefaultCodec`
``t``  length (2), tag, number (12)        nothing; by tag
``v``  value number (12), index (4)        a chunk of a large value
``w``  value number (12)                   a value beside its head (:mod:`lsmkv.cache.front`)
=====  ==================================  ======================================================

Numbers are big-endian, so that bytes are in the order of the numbers.  The number of an entry is
the nanosecond at which it was first stored, and the number of the handle that stored it.  A
position is a microsecond, or a count for ``"least-frequently-used"``.  That of an entry whose value
is beside its head is never after the microsecond of the value's number.

**The key of the user** begins with a byte for its type.  Numbers come first, in their order; then
str in the order of their UTF-8; bytes; and tuples, item by item.  An int and a float that are equal
are one key, as they are for a dict, but True is not 1.  Every other key is what the codec makes of
it, in the order of these bytes.
"""

from __future__ import annotations

import struct
from math import isnan
from typing import Any, Final

from lsmkv.cache.codecs import Codec
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.util.comparator import after_prefix

COUNTERS: Final = b"c"
EXPIRY: Final = b"e"
FLOOR: Final = b"f"
HEAD: Final = b"h"
LAYOUT: Final = b"m"
ORDER: Final = b"n"
PENDING: Final = b"p"
QUEUE: Final = b"q"
EVICTION: Final = b"r"
EVICTION_END: Final = after_prefix(EVICTION)
"""A key after all keys in the order of eviction."""
SETTING: Final = b"s"
TAG: Final = b"t"
CHUNK: Final = b"v"
VALUE: Final = b"w"

NUMBER_SIZE: Final = 12
POSITION_SIZE: Final = 8
MICROSECOND: Final = 1000
"""The unit of positions, in that of numbers."""
MOST: Final = (1 << 63) - 1
"""The largest position, and the latest expiry in microseconds."""

_NONE, _FALSE, _TRUE = 0x01, 0x02, 0x03
_BELOW, _NUMBER, _ABOVE, _NAN = 0x0F, 0x10, 0x11, 0x12
_STR, _BYTES, _TUPLE, _CODED = 0x20, 0x30, 0x40, 0x50
_END, _ESCAPED = b"\0\0", b"\0\xff"
_BIAS: Final = 1 << 63
_SIGN: Final = 1 << 63
_ALL: Final = (1 << 64) - 1
_FLOAT: Final = struct.Struct(">d")
_WORD: Final = struct.Struct(">Q")

HEAD_STR: Final = HEAD + bytes([_STR])
"""The prefix of the names of entries whose keys are str."""
_HEAD_BYTES: Final = HEAD + bytes([_BYTES])
HEAD_NUMBER: Final = HEAD + bytes([_NUMBER])
"""The same of numbers: an int of 64 bits follows in 8 bytes, and 8 more in a float."""


def head_key(key: Any, codec: Codec) -> bytes:
    """The name of an entry's head.

    Fast path: str, bytes and int make up nearly all keys.
    """
    kind = type(key)
    name: bytes
    if kind is str:
        name = HEAD_STR + key.encode("utf-8", "surrogatepass")
    elif kind is bytes:
        name = _HEAD_BYTES + key
    elif kind is int and -_BIAS <= key < _BIAS:
        name = HEAD_NUMBER + (key + _BIAS).to_bytes(8, "big")
    else:
        name = HEAD + encode_key(key, codec)
    return name


def encode_key(key: Any, codec: Codec) -> bytes:
    """The bytes of a key or of a tag.  Raises what the codec raises."""
    try:
        return _encode(key, False)
    except _CannotOrder:
        return bytes([_CODED]) + codec.encode(key)


def decode_key(data: bytes, codec: Codec) -> Any:
    """The key of such bytes; :class:`CorruptionError` for any others."""
    if data[:1] == bytes([_CODED]):
        return codec.decode(data[1:])
    try:
        key, end = _decode(data, 0, False)
    except (IndexError, struct.error, UnicodeDecodeError, RecursionError) as error:
        raise CorruptionError("a malformed key of a cache") from error
    if end != len(data):
        raise CorruptionError("a key of a cache with bytes after it", None, end)
    return key


def order_key(number: bytes) -> bytes:
    """The name of an entry in the order of storing."""
    return ORDER + number


def eviction_key(position: bytes, number: bytes) -> bytes:
    """The name of an entry in the order of eviction."""
    return EVICTION + position + number


def expiry_key(expiry: float, number: bytes) -> bytes:
    """The name of an entry in the order of expiry."""
    return EXPIRY + moment(expiry) + number


def tag_prefix(tag: bytes) -> bytes:
    """The prefix of the names of entries with a tag; ``tag`` is encoded."""
    return TAG + len(tag).to_bytes(2, "big") + tag


def chunk_key(value: bytes, index: int) -> bytes:
    """The name of a chunk of a large value."""
    return CHUNK + value + index.to_bytes(4, "big")


def moment(time: float) -> bytes:
    """A position for a time in seconds."""
    micro = time * 1e6
    return _WORD.pack(min(int(micro), MOST) if 0.0 < micro < 1e19 else 0 if micro <= 0.0 else MOST)


def number_moment(number: bytes) -> bytes:
    """The position of an entry whose value has this number."""
    return (int.from_bytes(number[:8], "big") // MICROSECOND).to_bytes(POSITION_SIZE, "big")


def position_number(position: bytes) -> int:
    """The number in a position."""
    try:
        number: int = _WORD.unpack(position)[0]
    except struct.error as error:
        raise CorruptionError("a position of a cache ends early", None, len(position)) from error
    return number


def count_position(count: int) -> bytes:
    """A position for a count."""
    return _WORD.pack(min(count, MOST))


class _CannotOrder(Exception):
    """A key without a natural order."""


def _encode(key: Any, inside: bool) -> bytes:
    """``inside`` a tuple, a key marks its end."""
    kind = type(key)
    if kind is str or kind is bytes:
        data: bytes = key if kind is bytes else key.encode("utf-8", "surrogatepass")
        tag = b"\x30" if kind is bytes else b"\x20"
        return tag + (data.replace(b"\0", _ESCAPED) + _END if inside else data)
    if kind is int:
        if not -_BIAS <= key < _BIAS:
            raise _CannotOrder
        return b"\x10" + _WORD.pack(key + _BIAS) + (bytes(8) if inside else b"")
    if kind is float:
        return _encode_float(key, inside)
    if key is None:
        return b"\x01"
    if kind is bool:
        return b"\x03" if key else b"\x02"
    if kind is tuple:
        try:
            return b"\x40" + b"".join([_encode(item, True) for item in key]) + b"\0"
        except RecursionError:
            raise _CannotOrder from None
    raise _CannotOrder


def _encode_float(key: float, inside: bool) -> bytes:
    if isnan(key):
        return b"\x12" + _FLOAT.pack(key)
    if key < -9223372036854775808.0:
        return b"\x0f" + _ordered(key)
    if key >= 9223372036854775808.0:
        return b"\x11" + _ordered(key)
    floor = int(key // 1)
    number = b"\x10" + _WORD.pack(floor + _BIAS)
    if key == floor:
        return number + (bytes(8) if inside else b"")
    return number + _ordered(key)


def _ordered(key: float) -> bytes:
    """8 bytes in the order of floats; never 8 zeros."""
    bits: int = _WORD.unpack(_FLOAT.pack(key))[0]
    return _WORD.pack(bits ^ _ALL if bits & _SIGN else bits | _SIGN)


def _unordered(data: bytes) -> float:
    bits: int = _WORD.unpack(data)[0]
    key: float = _FLOAT.unpack(_WORD.pack(bits ^ _SIGN if bits & _SIGN else bits ^ _ALL))[0]
    return key


def _decode(data: bytes, at: int, inside: bool) -> tuple[Any, int]:
    tag = data[at]
    at += 1
    if tag in (_STR, _BYTES):
        text, at = _unescaped(data, at) if inside else (data[at:], len(data))
        return (text.decode("utf-8", "surrogatepass") if tag == _STR else text), at
    if tag == _NUMBER:
        floor = _WORD.unpack(data[at : at + 8])[0] - _BIAS
        if not inside and len(data) == at + 8:
            return floor, at + 8
        rest = data[at + 8 : at + 16]
        if inside and rest == bytes(8):
            return floor, at + 16
        return _unordered(rest), at + 16
    if tag in (_BELOW, _ABOVE):
        return _unordered(data[at : at + 8]), at + 8
    if tag == _NAN:
        return _FLOAT.unpack(data[at : at + 8])[0], at + 8
    if tag == _NONE:
        return None, at
    if tag in (_TRUE, _FALSE):
        return tag == _TRUE, at
    if tag == _TUPLE:
        items: list[Any] = []
        while data[at] != 0:
            item, at = _decode(data, at, True)
            items.append(item)
        return tuple(items), at + 1
    raise CorruptionError(f"a key of a cache of kind {tag}", None, at - 1)


def _unescaped(data: bytes, at: int) -> tuple[bytes, int]:
    end = at
    while True:
        end = data.find(b"\0", end)
        if end < 0 or end + 1 >= len(data):
            raise CorruptionError("a key of a cache ends early", None, len(data))
        if data[end + 1] == 0:
            return data[at:end].replace(_ESCAPED, b"\0"), end + 2
        end += 2
