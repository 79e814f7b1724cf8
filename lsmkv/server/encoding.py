"""The keys and values of the server's records, byte by byte as in ``docs/reference/serve.md``.

The first byte of a key is the kind of record.  Numbers are big-endian, so keys sort by them.
"""

from __future__ import annotations

import struct
from typing import Final

FORMAT_KEY: Final = b"!format"
FORMAT: Final = b"lsmkv-serve 1"
"""The value under ``FORMAT_KEY`` in a store without strings in chunks and expiring fields."""
FORMAT_2: Final = b"lsmkv-serve 2"
"""The value once there was a string in chunks, or a hash whose fields expire: releases that do not
know them refuse the store."""
DATABASE: Final = b"!d"
"""+ index (1 byte) -> id (4), number of keys (8)."""
CEILINGS: Final = b"!n"
"""+ name -> a number (8) above every number given out by the counter of this name."""
EXPIRY_BOUND: Final = b"!x"
"""-> a key of the expiry queue; the queue has no entry before it."""
FIELD_EXPIRY_BOUND: Final = b"!y"
"""-> the same of the queue of hashes whose fields expire."""
GARBAGE_ENDS: Final = b"!g"
"""-> numbers of the first entry and of the next one (8, 8)."""
IMPORT: Final = b"!i"
"""-> database (4), cursor (8) and source of an import that has not ended."""
SCRIPT: Final = b"!s"
"""+ SHA-1 in hexadecimal digits -> ``l`` (loaded) or ``e`` (evaluated), the script."""
LIBRARY: Final = b"!l"
"""+ name -> a library of functions: see ``functions.py``; without a name, a number (8) that every
change of them raises."""
STAGED: Final = b"!w"
"""+ version (8) -> nothing: records stand under this version, which no key has yet."""
CURSOR: Final = b"c"
"""+ cursor mod 2^16 (2) -> cursor (8), length of scope (4), scope, position."""
ELEMENT: Final = b"e"
"""+ version (8) + field, member, index or number of a chunk (4) -> value."""
GARBAGE: Final = b"g"
"""+ number (8) -> a range to remove: one of the two kinds, then the sweep's position."""
KEY: Final = b"k"
"""+ database id (4) + key -> an :class:`Entry`."""
EXPIRY: Final = b"x"
"""+ milliseconds (8) + database id (4) + key -> nothing."""
FIELD_EXPIRY: Final = b"y"
"""+ milliseconds (8) + database id (4) + key of a hash -> nothing."""
FIELD_TIME: Final = b"f"
"""+ version of a hash (8) + field -> milliseconds (8): when the field expires."""
FIELD_ORDER: Final = b"t"
"""+ version of a hash (8) + milliseconds (8) + field -> nothing."""
GROUP: Final = b"s"
"""+ version of a stream (8) + name -> a consumer group: see ``consumer_group.py``."""
RANKED: Final = b"z"
"""+ version (8) + ordered score (8) + member -> nothing, or ``-`` if the score is -0.0."""
VERSIONED: Final = (ELEMENT, FIELD_TIME, FIELD_ORDER, RANKED, GROUP)
"""Kinds of records whose kind byte is followed by a version."""

STRING: Final = 1
HASH: Final = 2
LIST: Final = 3
SET: Final = 4
SORTED_SET: Final = 5
BLOOM: Final = 6
STREAM: Final = 7
LONG_STRING: Final = 8
"""A string in chunks, in records alone: its :class:`Entry` is a ``STRING`` with a version."""
EXPIRING_HASH: Final = 9
"""A hash of which fields expire, in records alone: its :class:`Entry` is a ``HASH``."""
EXPIRES: Final = 0x80
"""Added to the kind of an entry that has an expiry."""
KIND_NAMES: Final = {
    STRING: "string",
    HASH: "hash",
    LIST: "list",
    SET: "set",
    SORTED_SET: "zset",
    BLOOM: "MBbloom--",
    STREAM: "stream",
}

U16: Final = struct.Struct(">H")
U32: Final = struct.Struct(">I")
U64: Final = struct.Struct(">Q")
TWO_U32: Final = struct.Struct(">II")
TWO_U64: Final = struct.Struct(">QQ")
DOUBLE: Final = struct.Struct(">d")
LIST_MIDDLE: Final = 1 << 63
"""The index of the first element that is pushed to a list."""
MAX_BOUND: Final = 72
"""The longest bound of a sorted set, in bytes: an ordered score and the start of a member."""


class Entry:
    """The record of a key.

    ====================  =====================================================================
    kind (1 byte)         one of the constants above, plus ``EXPIRES``
    expires (8)           milliseconds since 1970, only with ``EXPIRES``
    a string: value       its bytes, to the end
    else: version (8)     under which the elements stand: unique in the store, never used again
    size (8)              the number of elements; of a string in chunks, its bytes
    a long string         (4) bytes of a chunk
    chunks                (4) the number of chunks that are there
    a list: head (8)      the index of the first element
    hash, set: removed    (4) elements removed since they were moved; left out if 0
    an expiring hash      the same (4), and the earliest time at which a field expires (8)
    sorted set: removed   (4) entries removed from the order since the bounds were looked up
    low (2 + n)           length and bytes: nothing in the order sorts before it
    high (2 + n)          length and bytes: nothing in the order sorts at it or after
    a Bloom filter: rest  see ``commands/bloom.py``
    a stream: rest        see ``stream.py``
    ====================  =====================================================================
    """

    __slots__ = (
        "chunk_size",
        "chunks",
        "expires",
        "fields_expire",
        "head",
        "high",
        "kind",
        "low",
        "removed",
        "rest",
        "size",
        "version",
    )

    def __init__(self, kind: int, version: int = 0, rest: bytes = b"") -> None:
        self.kind = kind
        self.expires = 0
        """0 if it does not expire."""
        self.fields_expire = 0
        """The earliest time at which a field of a hash expires; 0 if none does."""
        self.version = version
        """0 if it has no elements: a string that is not in chunks."""
        self.size = 0
        self.chunk_size = 0
        self.chunks = 0
        self.head = LIST_MIDDLE
        self.removed = 0
        self.low = b""
        self.high = b""
        self.rest = rest
        """The value of a string that is not in chunks, or what a Bloom filter or stream has after
        its size."""

    def encode(self) -> bytes:
        kind = self.kind
        if kind == STRING and self.version:
            kind = LONG_STRING
        elif self.fields_expire:
            kind = EXPIRING_HASH
        if self.expires:
            start = bytes((kind | EXPIRES,)) + U64.pack(self.expires)
        else:
            start = bytes((kind,))
        if kind == STRING:
            return start + self.rest
        start += TWO_U64.pack(self.version, self.size)
        if kind == LONG_STRING:
            return start + TWO_U32.pack(self.chunk_size, self.chunks)
        if kind == LIST:
            return start + U64.pack(self.head)
        if kind == SORTED_SET:
            bounds = (U16.pack(len(bound)) + bound for bound in (self.low, self.high))
            return start + U32.pack(self.removed) + b"".join(bounds)
        if kind == EXPIRING_HASH:
            return start + U32.pack(self.removed) + U64.pack(self.fields_expire)
        if kind in (HASH, SET):
            return start + U32.pack(self.removed) if self.removed else start
        return start + self.rest

    @classmethod
    def decode(cls, data: bytes) -> Entry:
        first = data[0]
        entry = cls(first & ~EXPIRES)
        at = 1
        if first & EXPIRES:
            (entry.expires,) = U64.unpack_from(data, 1)
            at = 9
        if entry.kind == STRING:
            entry.rest = data[at:]
            return entry
        entry.version, entry.size = TWO_U64.unpack_from(data, at)
        at += 16
        if entry.kind == LONG_STRING:
            entry.kind = STRING
            entry.chunk_size, entry.chunks = TWO_U32.unpack_from(data, at)
        elif entry.kind == LIST:
            (entry.head,) = U64.unpack_from(data, at)
        elif entry.kind == SORTED_SET:
            (entry.removed,) = U32.unpack_from(data, at)
            entry.low, at = _sized(data, at + 4)
            entry.high, at = _sized(data, at)
        elif entry.kind == EXPIRING_HASH:
            entry.kind = HASH
            (entry.removed,) = U32.unpack_from(data, at)
            (entry.fields_expire,) = U64.unpack_from(data, at + 4)
        elif entry.kind in (HASH, SET):
            if len(data) > at:
                (entry.removed,) = U32.unpack_from(data, at)
        else:
            entry.rest = data[at:]
        return entry


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    (length,) = U16.unpack_from(data, at)
    return data[at + 2 : at + 2 + length], at + 2 + length


def element_prefix(entry: Entry) -> bytes:
    """The prefix of the keys of a key's elements."""
    return ELEMENT + U64.pack(entry.version)


def ranked_prefix(entry: Entry) -> bytes:
    """The prefix of the keys of a sorted set's order."""
    return RANKED + U64.pack(entry.version)


def group_prefix(entry: Entry) -> bytes:
    """The prefix of the keys of a stream's consumer groups."""
    return GROUP + U64.pack(entry.version)


def field_time_prefix(entry: Entry) -> bytes:
    """The prefix of the keys of the times at which fields of a hash expire."""
    return FIELD_TIME + U64.pack(entry.version)


def field_order_prefix(entry: Entry) -> bytes:
    """The prefix of the keys of the order of these times."""
    return FIELD_ORDER + U64.pack(entry.version)


def element_ranges(entry: Entry) -> list[bytes]:
    """The prefixes of all records that a key holds besides its own, except those of groups."""
    if not entry.version:
        return []
    ranges = [element_prefix(entry)]
    if entry.kind == SORTED_SET:
        ranges.append(ranked_prefix(entry))
    elif entry.kind == STREAM:
        ranges.append(group_prefix(entry))
    elif entry.fields_expire:
        ranges += [field_time_prefix(entry), field_order_prefix(entry)]
    return ranges


def ordered_score(score: float) -> bytes:
    """Eight bytes that sort as the scores do; -0.0 and 0.0 map to the same bytes.

    >>> scores = [float("-inf"), -1.5, -0.0, 0.0, 5e-324, 2.0, float("inf")]
    >>> encoded = [ordered_score(score) for score in scores]
    >>> encoded == sorted(encoded), encoded[2] == encoded[3]
    (True, True)
    """
    (bits,) = U64.unpack(DOUBLE.pack(score + 0.0))  # -0.0 + 0.0 is 0.0
    return U64.pack(bits ^ 0xFFFFFFFFFFFFFFFF if bits >> 63 else bits | 1 << 63)


def score_of(ordered: bytes) -> float:
    """The score encoded by :func:`ordered_score`; 0.0 for both zeros.

    >>> score_of(ordered_score(-1.5))
    -1.5
    """
    (bits,) = U64.unpack(ordered)
    bits = bits ^ 1 << 63 if bits >> 63 else bits ^ 0xFFFFFFFFFFFFFFFF
    value: float = DOUBLE.unpack(U64.pack(bits))[0]
    return value


def successor(prefix: bytes) -> bytes | None:
    r"""The first key after all keys that begin with ``prefix``; None if there is none.

    >>> successor(b"ab"), successor(b"a\xff"), successor(b"\xff")
    (b'ac', b'b', None)
    """
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else None
