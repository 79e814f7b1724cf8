"""Pairs packed into one bytes object, for sending to another process.

A process that receives a list of pairs builds two objects per pair; a blob is copied as it is.

Layout, all integers little-endian fixed32s::

    blob := CRC-32C of the rest, number of pairs, length of each key, length of each value,
            the keys, the values

Lengths are separate from the bytes, so that both are read in bulk.  A key or a value is shorter
than 4 GiB, and there are fewer than 2**32 pairs.  Order and duplicates are kept.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.util.checksum import crc32c
from lsmkv.engine.util.coding import decode_fixed32, encode_fixed32

_FIXED32 = "I" if array("I").itemsize == 4 else "L"
_HEAD = 8
"""Bytes of the checksum and the number of pairs."""


def pack_pairs(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Pack pairs into one bytes object.

    Raises ``TypeError`` for keys and values that are not ``bytes``, and ``ValueError`` for one of 4
    GiB or more.  Cost: 0.4 us for a pair of 16 and 100 bytes.

    >>> unpack_pairs(pack_pairs([(b"b", b"1"), (b"a", b""), (b"b", b"2")]))
    ([b'b', b'a', b'b'], [b'1', b'', b'2'])
    """
    keys: list[bytes] = []
    values: list[bytes] = []
    for key, value in pairs:
        keys.append(key)
        values.append(value)
    return pack_columns(keys, values)


def pack_columns(keys: Sequence[bytes], values: Sequence[bytes]) -> bytes:
    """:func:`pack_pairs` for keys and their values, in two sequences of the same length."""
    if len(keys) != len(values):
        raise ValueError(
            f"the number of keys and values must be the same: {len(keys):,} keys, {len(values):,} "
            "values"
        )
    for kind in {*map(type, keys), *map(type, values)}:
        if not issubclass(
            kind, bytes
        ):  # join accepts other buffers, and counts their items differently
            raise TypeError(f"keys and values must be bytes, not {kind.__name__}")
    body = b"".join(
        (
            encode_fixed32(len(keys)),
            _lengths(keys),
            _lengths(values),
            b"".join(keys),
            b"".join(values),
        )
    )
    return encode_fixed32(crc32c(body)) + body


def unpack_pairs(blob: bytes) -> tuple[list[bytes], list[bytes]]:
    """The keys and the values of a blob.

    Raises ``CorruptionError`` unless :func:`pack_pairs` made it.  Cost: 0.4 us for a pair of 16 and
    100 bytes.
    """
    if len(blob) < _HEAD:
        raise CorruptionError("a blob of pairs is truncated", None, len(blob))
    body = blob[4:]
    if crc32c(body) != decode_fixed32(blob, 0):
        raise CorruptionError("the checksum of a blob of pairs does not match", None, 0)
    number = decode_fixed32(body, 0)
    first = 4 + 8 * number
    if first > len(body):
        raise CorruptionError(f"a blob is too short for the lengths of {number:,} pairs", None, 4)
    lengths = _decoded(body[4:first])
    if first + sum(lengths) != len(body):
        raise CorruptionError(
            "the length of a blob of pairs differs from the one that it states", None, 4
        )
    key_lengths = lengths[:number]
    keys = _cut(body, first, key_lengths)
    values = _cut(body, first + sum(key_lengths), lengths[number:])
    return keys, values


def _cut(body: bytes, start: int, lengths: array[int]) -> list[bytes]:
    return [body[at:end] for at, end in pairwise(accumulate(lengths, initial=start))]


def _lengths(strings: Sequence[bytes]) -> bytes:
    try:
        lengths = array(_FIXED32, map(len, strings))
    except OverflowError:
        raise ValueError("a key or value must be shorter than 4 GiB") from None
    if sys.byteorder == "big":
        lengths.byteswap()
    return lengths.tobytes()


def _decoded(lengths: bytes) -> array[int]:
    decoded = array(_FIXED32)
    decoded.frombytes(lengths)
    if sys.byteorder == "big":
        decoded.byteswap()
    return decoded
