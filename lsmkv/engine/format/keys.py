"""Internal keys: a user key, then its tag of eight bytes.

The tag is the fixed64 ``sequence << 8 | kind``.  Every write has its own sequence (56 bits,
rising); the kind is 1 for a value and 0 for a deletion.  Internal keys sort by user key, and among
the versions of one user key the newest comes first.  (Source: LevelDB, ``db/dbformat.h``.)

Between memtable, tables and merges a version is an *entry*: ``(user key, tagged value)``.  A tagged
value is the tag followed by the value, in one ``bytes``.  So the user key, which decides the order,
needs no slicing, and tag and value are neither split nor joined on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from librt.strings import BytesWriter, read_i64_le, write_i64_le

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.util.arguments import as_bytes
from lsmkv.engine.util.coding import varint_size
from lsmkv.engine.util.comparator import Comparator

if TYPE_CHECKING:
    from mypy_extensions import i64

KIND_DELETION: Final = 0
KIND_VALUE: Final = 1

TAG_SIZE: Final = 8

MAX_SEQUENCE: Final = (1 << 56) - 1
"""The largest sequence; a read bounded by it sees every version."""

_ALL: Final = MAX_SEQUENCE + 1
_HALF: Final = _ALL // 2  # the tag of this sequence, and of later ones, is negative as an i64
_LARGE: Final = 1 << 16  # a value of this many bytes is not copied into the writer first

# Bytes of an entry in LevelDB's arena in addition to its own: a skip list node of two pointers and
# a third of one more on average, and padding of four bytes on average.
_NODE_OVERHEAD: Final = 16 + 8 // 3 + 4

Entry = tuple[bytes, bytes]
"""User key and tagged value; the value of a deletion is empty."""


def tagged_value(writer: BytesWriter, sequence: i64, kind: i64, value: bytes) -> bytes:
    """The tagged value of a version.  It is assembled in ``writer``."""
    writer.truncate(0)
    write_i64_le(writer, (sequence if sequence < _HALF else sequence - _ALL) << 8 | kind)
    if len(value) >= _LARGE:
        return writer.getvalue() + value
    writer.write(value)
    return writer.getvalue()


def tagged_operation(writer: BytesWriter, sequence: i64, value: bytes | None) -> bytes:
    """The tagged value of an operation: a put of ``value``, or a deletion if that is None."""
    if value is None:
        return tagged_value(writer, sequence, KIND_DELETION, b"")
    return tagged_value(writer, sequence, KIND_VALUE, value)


def sequence_in(tagged: bytes) -> i64:
    """The sequence in the tag at the start of a tagged value."""
    return (read_i64_le(tagged, 0) >> 8) & MAX_SEQUENCE


def entry_overhead(key_size: i64, value_size: i64) -> i64:
    """Bytes of an entry in LevelDB's memtable in addition to key and value: two varints, tag,
    node."""
    if key_size < 120 and value_size < 128:
        return 1 + 8 + 1 + _NODE_OVERHEAD
    return varint_size(key_size + 8) + 8 + varint_size(value_size) + _NODE_OVERHEAD


def pack(user_key: bytes, sequence: int, kind: int) -> bytes:
    """The internal key of a version."""
    return user_key + (sequence << 8 | kind).to_bytes(8, "little")


def unpack(internal_key: bytes) -> tuple[bytes, int, int]:
    """``(user key, sequence, kind)``; :class:`CorruptionError` if it is not an internal key."""
    if len(internal_key) < 8:
        raise CorruptionError(f"an internal key of only {len(internal_key)} bytes", None, 0)
    tag = int.from_bytes(internal_key[-8:], "little")
    if tag & 0xFF > KIND_VALUE:
        raise CorruptionError(f"an internal key of kind {tag & 0xFF}", None, len(internal_key) - 8)
    return internal_key[:-8], tag >> 8, tag & 0xFF


def user_key_of(internal_key: bytes) -> bytes:
    """The user key; :class:`CorruptionError` for a key shorter than a tag."""
    size = len(internal_key)
    if size < TAG_SIZE:
        raise CorruptionError("a key shorter than its tag")
    return internal_key[: size - TAG_SIZE]


_NEWEST_TAG: Final = (MAX_SEQUENCE << 8 | KIND_VALUE).to_bytes(8, "little")


def before_versions(user_key: bytes) -> bytes:
    """The internal key of ``user_key`` that sorts before all of its versions."""
    return user_key + _NEWEST_TAG


class InternalKeyComparator:
    """Orders internal keys: user keys by the user's comparator, then newest first."""

    name: str = "leveldb.InternalKeyComparator"

    def __init__(self, user_comparator: Comparator) -> None:
        self.user_comparator = user_comparator
        self.order = KeyOrder(user_comparator)
        """The order of the user keys."""

    def compare(self, a: bytes, b: bytes, /) -> int:
        x = a[:-8]
        y = b[:-8]
        if self.order.is_bytewise:
            if x != y:
                return -1 if x < y else 1
        else:
            compared = self.user_comparator.compare(x, y)
            if compared != 0:
                return compared
        newer = int.from_bytes(a[-8:], "little")
        older = int.from_bytes(b[-8:], "little")
        if newer == older:
            return 0
        return -1 if newer > older else 1

    def sort_key(self, key: bytes, /) -> tuple[Any, int]:
        """An object that compares, with others made here, as the key does."""
        return self.order.of(key[:-8]), -int.from_bytes(key[-8:], "little")

    def find_shortest_separator(self, start: bytes, limit: bytes, /) -> bytes:
        """A shorter user key gets the smallest version, so that it still sorts before ``limit``."""
        user_start = start[:-8]
        shorter = as_bytes(
            self.user_comparator.find_shortest_separator(user_start, limit[:-8]), "separator"
        )
        if len(shorter) < len(user_start) and self.user_comparator.compare(user_start, shorter) < 0:
            return before_versions(shorter)
        return start

    def find_short_successor(self, key: bytes, /) -> bytes:
        user_key = key[:-8]
        shorter = as_bytes(self.user_comparator.find_short_successor(user_key), "successor")
        if len(shorter) < len(user_key) and self.user_comparator.compare(user_key, shorter) < 0:
            return before_versions(shorter)
        return key
