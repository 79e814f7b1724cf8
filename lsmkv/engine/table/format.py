"""The fixed parts of a table file: block handle, block trailer, footer.

The whole layout is in ``docs/reference/format.md`` (source: LevelDB, ``doc/table_format.md``).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.engine.util.checksum import is_sealed, sealing_crc32c
from lsmkv.engine.util.coding import decode_varint64, encode_varint
from lsmkv.engine.util.compression import NO_COMPRESSION, compress, decompress

MAGIC: Final = bytes.fromhex("57fb808b247547db")
"""The last eight bytes of every table: ``0xdb4775248b80fb57``, little-endian."""

BLOCK_TRAILER_SIZE: Final = 5
FOOTER_SIZE: Final = 48


@mypyc_attr(acyclic=True)  # it holds numbers only, so the garbage collector need not track it
class BlockHandle:
    """The location of a block: varint64 offset, varint64 size (the trailer of 5 bytes not
    counted)."""

    __slots__ = ("offset", "size")

    def __init__(self, offset: int, size: int) -> None:
        self.offset = offset
        self.size = size

    def encode(self) -> bytes:
        """2 to 20 bytes."""
        return encode_varint(self.offset) + encode_varint(self.size)

    @staticmethod
    def decode(data: bytes, position: int = 0) -> tuple[BlockHandle, int]:
        """The handle at ``position``, and the position after it."""
        offset, position = decode_varint64(data, position)
        size, position = decode_varint64(data, position)
        return BlockHandle(offset, size), position

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BlockHandle)
            and self.offset == other.offset
            and self.size == other.size
        )

    def __hash__(self) -> int:
        return hash((self.offset, self.size))

    def __repr__(self) -> str:
        return f"BlockHandle(offset={self.offset}, size={self.size})"


class Footer:
    """The last 48 bytes: metaindex handle, index handle, zeros up to 40, magic."""

    __slots__ = ("index", "metaindex")

    def __init__(self, metaindex: BlockHandle, index: BlockHandle) -> None:
        self.metaindex = metaindex
        self.index = index

    def encode(self) -> bytes:
        """Exactly 48 bytes."""
        handles = self.metaindex.encode() + self.index.encode()
        return handles.ljust(FOOTER_SIZE - len(MAGIC), b"\0") + MAGIC

    @staticmethod
    def decode(data: bytes) -> Footer:
        """The footer in these 48 bytes; :class:`CorruptionError` if the magic is missing."""
        if len(data) != FOOTER_SIZE or data[-8:] != MAGIC:
            raise CorruptionError("not a table: its footer has no magic number", None, 0)
        metaindex, position = BlockHandle.decode(data[:-8])
        index, _ = BlockHandle.decode(data[:-8], position)
        return Footer(metaindex, index)


def seal_block(raw: bytes, compression: int, zstd_level: int = 1) -> bytes:
    """A block as stored: content, type byte, masked CRC-32C of both.

    ``compression`` is a codec of :mod:`lsmkv.engine.util.compression`.  The block is kept
    uncompressed unless compression saves more than an eighth, as in LevelDB.
    """
    stored = raw
    kind = NO_COMPRESSION
    if compression != NO_COMPRESSION:
        packed = compress(raw, compression, zstd_level)
        if len(packed) < len(raw) - len(raw) // 8:
            stored = packed
            kind = compression & 0xFF
    trailer = kind | sealing_crc32c(stored, kind) << 8
    return stored + trailer.to_bytes(BLOCK_TRAILER_SIZE, "little")


def open_block(stored: bytes, max_block_bytes: int) -> bytes:
    """The inverse of :func:`seal_block`.  The checksum is verified first."""
    data, size = unseal_block(stored, max_block_bytes, False)
    return data[:size]


def unseal_block(stored: bytes, max_block_bytes: int, verified: bool) -> tuple[bytes, i64]:
    """Bytes that begin with the content of a block as stored, and the content's length.

    An uncompressed block is not copied: its trailer follows.  The checksum is verified, unless that
    was done before.
    """
    size: i64 = len(stored) - BLOCK_TRAILER_SIZE
    if size < 0:
        raise CorruptionError("block cut short", None, 0)
    if not verified and not is_sealed(stored):
        raise CorruptionError("block checksum mismatch", None, 0)
    kind = stored[size]
    if kind == NO_COMPRESSION:
        return stored, size
    data = decompress(stored[:size], kind, max_block_bytes)
    return data, len(data)


def read_block(file: RandomAccessFile, handle: BlockHandle, max_block_bytes: int) -> bytes:
    """One block read from ``file`` with one ``read``, verified and decompressed.

    Raises :class:`CorruptionError` with the file and the block's offset.
    """
    offset = handle.offset
    length = handle.size + BLOCK_TRAILER_SIZE
    if offset + length > file.size:
        raise CorruptionError(f"a block of {handle.size} bytes beyond the end", file.path, offset)
    stored = read_stored(file, offset, length)
    if len(stored) < length:
        raise CorruptionError("block cut short", file.path, offset)
    data, size = unpack_block(stored, file, offset, max_block_bytes, False)
    return data[:size]


_LARGE: Final = 1 << 24  # bytes; no read of a sound table has so many


def read_stored(file: RandomAccessFile, offset: int, length: int) -> bytes:
    """``file.read``; :class:`CorruptionError` if there is not enough memory.

    A sparse file may be larger than the disk, so its size is no bound.
    """
    try:
        return file.read(offset, length)
    except MemoryError:
        if length <= _LARGE:
            raise  # the file is not the cause
        reason = f"not enough memory for {length} bytes of blocks"
        raise CorruptionError(reason, file.path, offset) from None


def unpack_block(
    stored: bytes, file: RandomAccessFile, offset: int, max_block_bytes: int, verified: bool
) -> tuple[bytes, i64]:
    """:func:`unseal_block`; its errors name the file and the block's offset."""
    try:
        return unseal_block(stored, max_block_bytes, verified)
    except CorruptionError as error:
        raise CorruptionError(error.reason, file.path, offset) from None
    except UnsupportedCompressionError as error:
        raise UnsupportedCompressionError(f"{file.path}: {error} (at offset {offset})") from None
