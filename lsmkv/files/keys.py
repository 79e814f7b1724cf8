"""Internal keys and block handles: what tables and MANIFESTs are made of."""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.engine.format.keys import KIND_VALUE, pack
from lsmkv.engine.util.coding import decode_varint64, encode_varint
from lsmkv.files.parts import Field


class InternalKey(NamedTuple):
    """A user key with its tag of eight bytes, ``sequence << 8 | kind`` in little-endian order.

    Bytes that are not an internal key (fewer than eight, or with a kind above 1) have None for
    ``sequence`` and ``kind``, and ``user_key`` is all of them.

    >>> [parse_key(data).is_valid for data in (b"k\\x01\\x07\\0\\0\\0\\0\\0\\0", b"k")]
    [True, False]
    """

    user_key: bytes
    sequence: int | None
    """The number of the write, 56 bits."""
    kind: int | None
    """1 for a value, 0 for a deletion."""

    @property
    def is_valid(self) -> bool:
        """True if it is an internal key."""
        return self.sequence is not None


def parse_key(data: bytes) -> InternalKey:
    """The parts of an internal key, as tables and MANIFESTs store it.

    Raises nothing: see :class:`InternalKey`.  O(len(data)).

    >>> parse_key(b"user\\x01\\x07\\0\\0\\0\\0\\0\\0")
    InternalKey(user_key=b'user', sequence=7, kind=1)
    >>> parse_key(b"short").is_valid
    False
    """
    if len(data) < 8 or data[-8] > KIND_VALUE:
        return InternalKey(data, None, None)
    return InternalKey(data[:-8], int.from_bytes(data[-7:], "little"), data[-8])


def make_key(user_key: bytes, sequence: int, kind: int = KIND_VALUE) -> bytes:
    """The bytes of an internal key: the reverse of :func:`parse_key`.

    Raises ``ValueError`` if the sequence has more than 56 bits, or the kind is neither 0 nor 1.
    O(len(user_key)).

    >>> make_key(b"user", 7).hex(" ", 8)
    '75736572 0107000000000000'
    """
    if not 0 <= sequence < 1 << 56 or kind not in (0, 1):
        raise ValueError(f"not a valid tag: sequence {sequence}, kind {kind}")
    return pack(user_key, sequence, kind)


class BlockHandle(NamedTuple):
    """The location of a block: its offset, and its size without the trailer of five bytes.

    >>> BlockHandle(300, 4).size
    4
    """

    offset: int
    size: int

    def encode(self) -> bytes:
        """Two varint64, 2 to 20 bytes.

        >>> BlockHandle(300, 4).encode().hex()
        'ac0204'
        """
        return encode_varint(self.offset) + encode_varint(self.size)


def parse_handle(data: bytes, at: int = 0) -> tuple[BlockHandle, int]:
    """The block handle at a position, and where it ends.

    Raises :class:`~lsmkv.CorruptionError` with the position.  O(1).

    >>> parse_handle(bytes.fromhex("ac0204"))
    (BlockHandle(offset=300, size=4), 3)
    """
    offset, middle = decode_varint64(data, at)
    size, end = decode_varint64(data, middle)
    return BlockHandle(offset, size), end


def handle_fields(data: bytes, at: int = 0) -> tuple[Field, Field]:
    """The two fields of the block handle at a position, ``offset`` and ``size``.

    Raises :class:`~lsmkv.CorruptionError` with the position.  O(1).

    >>> handle_fields(bytes.fromhex("ac0204"))[0]
    Field(name='offset', start=0, end=2, value=300)
    """
    offset, middle = decode_varint64(data, at)
    size, end = decode_varint64(data, middle)
    return Field("offset", at, middle, offset), Field("size", middle, end, size)
