"""Internal keys: a user key, then its version in eight bytes.

The eight bytes are the fixed64 tag ``sequence << 8 | kind``.  Every write has its own sequence (56
bits, rising); the kind is 1 for a value and 0 for a deletion.  Internal keys sort by user key, and
among the versions of one user key the newest comes first.  (Source: LevelDB, ``db/dbformat.h``.)

Inside the engine a version travels decoded, as an *entry*: ``(user key, rank, value)``, where the
rank is minus the tag.  Entries of bytewise keys then sort as plain tuples, in C.  The rank is a
Python ``int`` of any size, never a machine integer: a tag fills all 64 bits.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from librt.strings import BytesWriter, read_i64_le, write_i64_le

from lsmkv.errors import CorruptionError
from lsmkv.filter.policy import FilterPolicy, HashedFilterPolicy, key_hasher
from lsmkv.options import Options
from lsmkv.util.coding import varint_size
from lsmkv.util.comparator import Comparator, sort_key

if TYPE_CHECKING:
    from mypy_extensions import i64

KIND_DELETION: Final = 0
KIND_VALUE: Final = 1

TAG_SIZE: Final = 8

MAX_SEQUENCE: Final = (1 << 56) - 1

_ALL: Final = MAX_SEQUENCE + 1
_HALF: Final = _ALL // 2  # a tag of this sequence, or a later one, is negative as an i64
_LARGE: Final = 1 << 16  # a value of so many bytes is not copied twice, nor room kept for it

# What one entry takes in LevelDB's arena beside its own bytes: a skip list node of two pointers
# and a third of one more on average, and padding of four bytes on average.
_NODE_OVERHEAD: Final = 16 + 8 // 3 + 4

Entry = tuple[bytes, int, bytes]
"""User key, rank, value; the value of a deletion is empty."""


def rank_of(sequence: int, kind: int) -> int:
    """The rank of a version: newer versions have smaller ranks."""
    return -(sequence << 8 | kind)


def oldest_rank_hidden(sequence: int) -> int:
    """Versions of a rank at or below this one are newer than ``sequence``."""
    return -((sequence + 1) << 8)


def oldest_rank_seen(sequence: int) -> int:
    """The smallest rank that a version at or before ``sequence`` can have."""
    return -(sequence << 8 | 0xFF)


def sequence_of(rank: int) -> int:
    """The sequence in a rank."""
    return -rank >> 8


def is_value(rank: int) -> bool:
    """Whether the version is a value (else a deletion)."""
    return (rank & 1) == KIND_VALUE


def tagged_value(room: BytesWriter, sequence: i64, kind: i64, value: bytes) -> bytes:
    """The row of a version: its tag, and the value behind.  Made in ``room``."""
    room.truncate(0)
    write_i64_le(room, (sequence if sequence < _HALF else sequence - _ALL) << 8 | kind)
    if len(value) >= _LARGE:
        return room.getvalue() + value
    room.write(value)
    return room.getvalue()


def sequence_in(row: bytes) -> i64:
    """The sequence in the tag that a row begins with."""
    return (read_i64_le(row, 0) >> 8) & MAX_SEQUENCE


def rank_in(row: bytes) -> int:
    """The rank in the tag that a row begins with."""
    tag: i64 = read_i64_le(row, 0)
    return -tag if tag >= 0 else -int.from_bytes(row[:TAG_SIZE], "little")


def entry_overhead(key_size: i64, value_size: i64) -> i64:
    """Bytes of an entry in LevelDB's memtable beside key and value: two varints, tag, node."""
    if key_size < 120 and value_size < 128:
        return 1 + 8 + 1 + _NODE_OVERHEAD
    return varint_size(key_size + 8) + 8 + varint_size(value_size) + _NODE_OVERHEAD


def pack(user_key: bytes, sequence: int, kind: int) -> bytes:
    """The internal key of a version."""
    return user_key + (sequence << 8 | kind).to_bytes(8, "little")


def pack_entry(user_key: bytes, rank: int) -> bytes:
    """The internal key of an entry."""
    return user_key + (-rank).to_bytes(8, "little")


def unpack(internal_key: bytes) -> tuple[bytes, int, int]:
    """``(user key, sequence, kind)``; :class:`CorruptionError` if it is none."""
    if len(internal_key) < 8:
        raise CorruptionError(f"an internal key of {len(internal_key)} bytes", None, 0)
    tag = int.from_bytes(internal_key[-8:], "little")
    if tag & 0xFF > KIND_VALUE:
        raise CorruptionError(f"an internal key of kind {tag & 0xFF}", None, len(internal_key) - 8)
    return internal_key[:-8], tag >> 8, tag & 0xFF


_NEWEST_TAG: Final = (MAX_SEQUENCE << 8 | KIND_VALUE).to_bytes(8, "little")


def before_versions(user_key: bytes) -> bytes:
    """An internal key that sorts before every version of ``user_key``, and is one of its own."""
    return user_key + _NEWEST_TAG


def after_versions(user_key: bytes) -> bytes:
    """An internal key that sorts after every version of ``user_key`` (sequences start at 1)."""
    return pack(user_key, 0, KIND_DELETION)


def to_entries(keys: Sequence[bytes], values: Sequence[bytes]) -> list[Entry]:
    """Internal keys and values, decoded all at once; :class:`CorruptionError` on bad keys."""
    if not keys:
        return []
    if min(map(len, keys)) < 8:
        raise CorruptionError("an internal key of fewer than 8 bytes", None, None)
    tags = struct.unpack(f"<{len(keys)}Q", b"".join([key[-8:] for key in keys]))
    for tag in tags:
        if tag & 0xFE:
            raise CorruptionError(f"an internal key of kind {tag & 0xFF}", None, None)
    return list(zip([key[:-8] for key in keys], [-tag for tag in tags], values, strict=True))


class InternalKeyComparator:
    """Orders internal keys: user keys by the user's comparator, then newest first."""

    name: str = "leveldb.InternalKeyComparator"

    def __init__(self, user_comparator: Comparator) -> None:
        self.user_comparator = user_comparator
        self._order = sort_key(user_comparator)
        self.coarse_tail = 8 if self._order is None else -1
        """Bytes at the end of a key that :meth:`coarse_key` leaves out; -1 if it does more."""

    def compare(self, a: bytes, b: bytes, /) -> int:
        x = a[:-8]
        y = b[:-8]
        if self._order is None:
            if x != y:
                return -1 if x < y else 1
        else:
            order = self.user_comparator.compare(x, y)
            if order != 0:
                return order
        newer = int.from_bytes(a[-8:], "little")
        older = int.from_bytes(b[-8:], "little")
        if newer == older:
            return 0
        return -1 if newer > older else 1

    def sort_key(self, key: bytes, /) -> tuple[Any, int]:
        """An object that compares, with others of its sort, as the key does."""
        rank = -int.from_bytes(key[-8:], "little")
        if self._order is None:
            return key[:-8], rank
        return self._order(key[:-8]), rank

    def coarse_key(self, key: bytes, /) -> Any:
        """The order of the user key: versions of one key are equal."""
        return key[:-8] if self._order is None else self._order(key[:-8])

    def find_shortest_separator(self, start: bytes, limit: bytes, /) -> bytes:
        """A shorter user key gets the smallest version, so that it still sorts before ``limit``."""
        user_start = start[:-8]
        shorter = self.user_comparator.find_shortest_separator(user_start, limit[:-8])
        if len(shorter) < len(user_start) and self.user_comparator.compare(user_start, shorter) < 0:
            return before_versions(shorter)
        return start

    def find_short_successor(self, key: bytes, /) -> bytes:
        user_key = key[:-8]
        shorter = self.user_comparator.find_short_successor(user_key)
        if len(shorter) < len(user_key) and self.user_comparator.compare(user_key, shorter) < 0:
            return before_versions(shorter)
        return key


class InternalFilterPolicy:
    """The user's policy, asked about internal keys: the version is cut off first."""

    def __init__(self, user_policy: FilterPolicy) -> None:
        self.user_policy = user_policy
        self.coarse_policy = user_policy
        """Asked with the user keys, it says the same."""
        self.name: str = user_policy.name

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return self.user_policy.create_filter([key[:-8] for key in keys])

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return self.user_policy.key_may_match(key[:-8], filter_data)


class InternalHashedFilterPolicy(InternalFilterPolicy):
    """The same for a policy that can be asked by hash: the hash is the *user* key's."""

    def __init__(self, user_policy: HashedFilterPolicy) -> None:
        super().__init__(user_policy)
        self._hashed = user_policy

    def key_hash(self, key: bytes, /) -> int:
        return self._hashed.key_hash(key[:-8])

    def hash_may_match(self, key_hash: int, filter_data: bytes, /) -> bool:
        return self._hashed.hash_may_match(key_hash, filter_data)


def internal_filter_policy(user_policy: FilterPolicy) -> InternalFilterPolicy:
    """The policy that a table of internal keys is built and read with."""
    hashed = key_hasher(user_policy)
    if hashed is not None:
        return InternalHashedFilterPolicy(hashed)
    return InternalFilterPolicy(user_policy)


def internal_options(options: Options, comparator: InternalKeyComparator) -> Options:
    """The options for tables, which hold internal keys."""
    policy = options.filter_policy
    return options._replace(
        comparator=comparator,
        filter_policy=None if policy is None else internal_filter_policy(policy),
    )
