"""A block of a table: how it is stored, and the entries in it, with the span of every field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from lsmkv.engine.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.engine.table.format import BLOCK_TRAILER_SIZE, open_block
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.engine.util.coding import decode_fixed32, decode_varint32
from lsmkv.engine.util.compression import (
    DEFAULT_MAX_BLOCK_BYTES,
    NO_COMPRESSION,
    codec_name,
    codec_of,
)
from lsmkv.engine.util.text import count
from lsmkv.files.keys import BlockHandle, InternalKey, parse_handle, parse_key
from lsmkv.files.parts import Damage, DamageKind, Span

BlockKind = Literal["data", "filter", "full filter", "prefix filter", "meta", "metaindex", "index"]
"""``filter`` has LevelDB's filters, one for each 2 KiB of the file; ``full filter`` one for the
whole table; ``prefix filter`` one of the keys' prefixes; ``meta`` is a block with another name in
the metaindex, for example the properties that other engines write."""


class BlockPlace(NamedTuple):
    """The location of a block in a table, and its kind.

    >>> place = BlockPlace(300, 4, "data")
    >>> place.handle, place.end
    (BlockHandle(offset=300, size=4), 309)
    """

    offset: int
    size: int
    """Bytes in the file, without the trailer of five bytes."""
    kind: BlockKind
    name: bytes = b""
    """The name that the metaindex gives it; empty for data blocks, index and metaindex."""
    policy: bytes = b""
    """For a block of filters, the name of the filter policy."""
    extractor: bytes = b""
    """For a filter of prefixes, the name of the prefix extractor."""

    @property
    def handle(self) -> BlockHandle:
        """The place as the index and the metaindex state it."""
        return BlockHandle(self.offset, self.size)

    @property
    def end(self) -> int:
        """The end of the block's trailer in the file."""
        return self.offset + self.size + BLOCK_TRAILER_SIZE


class EntrySpans(NamedTuple):
    """The spans of an entry's fields in the plain block.

    >>> block = parse_block(bytes.fromhex("00 0102 61 0904 00000000 01000000"), "metaindex")
    >>> block.entries()[0].spans.value
    Span(start=4, end=6)
    """

    shared: Span
    unshared: Span
    value_length: Span
    key_delta: Span
    value: Span


class Entry(NamedTuple):
    """An entry of a block: ``varint32 shared, varint32 unshared, varint32 value length, key delta,
    value``.

    Its key is the first ``shared`` bytes of the previous key, then the delta.

    >>> block = parse_block(bytes.fromhex("00 0102 61 0904 00000000 01000000"), "metaindex")
    >>> entry = block.entries()[0]
    >>> entry.key, entry.handle, entry.internal_key.is_valid, entry.spans.key_delta
    (b'a', BlockHandle(offset=9, size=4), False, Span(start=3, end=4))
    """

    offset: int
    """Start of the entry in the plain block."""
    shared: int
    """Bytes of its key that it shares with the previous key."""
    unshared_at: int
    """Offset of the second length."""
    size_at: int
    """Offset of the third length."""
    key_at: int
    """Offset of the key delta."""
    value_at: int
    end: int
    key: bytes
    """The complete key: an internal key, or a name in the metaindex."""
    value: bytes
    is_restart: bool
    """True if a restart point points to it."""

    @property
    def spans(self) -> EntrySpans:
        """The span of each field in the plain block."""
        return EntrySpans(
            Span(self.offset, self.unshared_at),
            Span(self.unshared_at, self.size_at),
            Span(self.size_at, self.key_at),
            Span(self.key_at, self.value_at),
            Span(self.value_at, self.end),
        )

    @property
    def internal_key(self) -> InternalKey:
        """The key in its parts, in a data block or the index."""
        return parse_key(self.key)

    @property
    def handle(self) -> BlockHandle | None:
        """The value as a block handle, in the index or the metaindex; None if it is invalid."""
        try:
            return parse_handle(self.value)[0]
        except CorruptionError:
            return None


class Trailer(NamedTuple):
    """The five bytes after a block: ``byte codec, fixed32 CRC``.

    >>> parse_block(bytes.fromhex("0000000001000000"), "data").trailer
    Trailer(codec=0, crc=2963403456, is_good=True)
    """

    codec: int
    """0 none, 1 Snappy, 2 zstd (or Mojang's zlib), 4 Mojang's raw deflate."""
    crc: int
    """The masked CRC-32C of the block as stored and the codec byte, as the file states it."""
    is_good: bool
    """True if that is the CRC of these bytes."""


class Block:
    """One block of a table.

    As stored: the content, perhaps compressed, then a :class:`Trailer`.  The content of data
    blocks, index and metaindex is a sequence of entries (:class:`Entry`), then the offsets of the
    restart points and their number, each a fixed32.  (``docs/reference/format.md``; LevelDB's
    ``doc/table_format.md``.)

    The constructor checks nothing.  Methods that need the content verify the CRC and decompress it,
    once.  They raise :class:`~lsmkv.CorruptionError` or
    :class:`~lsmkv.UnsupportedCompressionError`; :attr:`damage` shows this in advance.  Cost: the
    decompression, and O(bytes) for each walk; memory: the block as stored, and its content, at most
    256 MiB.

    >>> from lsmkv.files import parse_block
    >>> block = parse_block(bytes.fromhex("00 0102 61 0904 00000000 01000000"), "metaindex")
    >>> block.damage, block.codec, len(block.plain), block.restart_points(), block.entries_end
    (None, 'uncompressed', 14, [0], 6)
    >>> entry = block.entries()[0]
    >>> entry.key, entry.value, entry.spans.key_delta, entry.is_restart
    (b'a', b'\\t\\x04', Span(start=3, end=4), True)
    >>> [isinstance(part, Damage) for part in block.walk()]
    [False]
    >>> block.trailer.is_good, block.is_whole, entry.handle
    (True, True, BlockHandle(offset=9, size=4))
    """

    def __init__(self, place: BlockPlace, stored: bytes, path: str | None = None) -> None:
        """``stored`` is the block with its trailer, or as much of them as the file has."""
        self.place = place
        self.stored = stored
        """The block as it is stored, with its trailer; empty if it is not within the file."""
        self._path = path
        self._plain: bytes | None = None
        self._failure: CorruptionError | UnsupportedCompressionError | None = None

    @property
    def is_whole(self) -> bool:
        """True if the file has all bytes of the block."""
        return len(self.stored) == self.place.size + BLOCK_TRAILER_SIZE

    @property
    def trailer(self) -> Trailer:
        """The codec and the CRC.  :class:`~lsmkv.CorruptionError` if the block is cut short."""
        if not self.is_whole:
            raise CorruptionError(self._cut_short(), self._path, self.place.offset)
        body, crc = self.stored[:-4], self.stored[-4:]
        stated = int.from_bytes(crc, "little")
        return Trailer(body[-1], stated, masked_crc32c(body) == stated)

    @property
    def codec(self) -> str:
        """The name of the compression, such as ``snappy`` or ``uncompressed``."""
        codec = self.trailer.codec
        if codec == NO_COMPRESSION:
            return "uncompressed"
        return codec_name(codec_of(codec, self.stored))

    @property
    def damage(self) -> Damage | None:
        """The reason for which the content cannot be read; None if it can."""
        try:
            self._open()
        except CorruptionError as error:
            return self._damage("damage", error.reason)
        except UnsupportedCompressionError:
            codec = self.trailer.codec
            return self._damage("codec", f"a block of unknown compression type {codec}")
        return None

    @property
    def plain(self) -> bytes:
        """The content, verified and decompressed."""
        return self._open()

    def restart_points(self) -> list[int]:
        """The offsets in the plain block of the entries whose keys are stored in full."""
        plain = self._entries_block()
        array = self.entries_end
        return [decode_fixed32(plain, at) for at in range(array, len(plain) - 4, 4)]

    @property
    def entries_end(self) -> int:
        """The end of the entries in the plain block, which is the start of the array of restart
        points."""
        try:
            return _entries_end(self._entries_block())
        except CorruptionError as error:
            raise CorruptionError(error.reason, self._path, self.place.offset) from None

    def walk(self) -> Iterator[Entry | Damage]:
        """The entries, one by one, each after its damage; finally, the damage of restart points.

        The first entry that runs out of bounds is yielded as damage, and is the last item.  A block
        whose content cannot be read yields one item of damage.  ``ValueError`` for blocks of
        filters and other meta blocks, which have no entries.
        """
        damage = self.damage
        if damage is not None:
            yield damage
            return
        plain = self._entries_block()
        kind = self.place.kind
        whole: set[int] = set()
        try:
            array = _entries_end(plain)
            restarts = self.restart_points()
            for entry in _entries(plain, array, frozenset(restarts)):
                if entry.shared == 0:
                    whole.add(entry.offset)
                if kind != "metaindex" and not entry.internal_key.is_valid:
                    reason = "a key that is not an internal key"
                    yield self._damage("damage", reason, entry.offset)
                elif kind != "data" and entry.handle is None:
                    yield self._damage("damage", "an entry without a valid handle", entry.offset)
                yield entry
        except CorruptionError as error:
            yield self._damage("damage", error.reason, error.offset)
            return
        if array == 0:
            whole.add(0)  # even a block without entries has one restart point
        for restart in restarts:
            if restart not in whole:
                reason = f"a restart point at {restart}, where no key is stored in full"
                yield self._damage("damage", reason)

    def entries(self) -> list[Entry]:
        """All entries.  :class:`~lsmkv.CorruptionError` if anything is damaged."""
        found: list[Entry] = []
        for part in self.walk():
            if isinstance(part, Damage):
                _ = self.plain  # also raises for an unknown codec
                raise CorruptionError(part.reason, self._path, part.offset)
            found.append(part)
        return found

    def _open(self) -> bytes:
        if self._plain is not None:
            return self._plain
        if self._failure is not None:
            raise self._failure
        try:
            if not self.is_whole:
                raise CorruptionError(self._cut_short(), self._path, self.place.offset)
            self._plain = open_block(self.stored, DEFAULT_MAX_BLOCK_BYTES)
        except CorruptionError as error:
            self._failure = CorruptionError(error.reason, self._path, self.place.offset)
            raise self._failure from None
        except UnsupportedCompressionError as error:
            self._failure = UnsupportedCompressionError(
                f"{self._path or 'a block'}: {error} (at offset {self.place.offset})"
            )
            raise self._failure from None
        return self._plain

    def _entries_block(self) -> bytes:
        if self.place.kind not in ("data", "index", "metaindex"):
            raise ValueError(f"a {self.place.kind} block has no entries")
        return self.plain

    def _cut_short(self) -> str:
        if self.stored:
            return "block cut short"
        return f"a block of {count(self.place.size, 'byte')} beyond the end of the file"

    def _damage(self, kind: DamageKind, reason: str, at: int | None = None) -> Damage:
        size = self.place.size + BLOCK_TRAILER_SIZE
        return Damage(kind, self.place.offset, size, reason, at)

    def __repr__(self) -> str:
        return f"<lsmkv.files.Block at {self.place.offset:,}: {self.place.kind}>"


def parse_block(plain: bytes, kind: BlockKind) -> Block:
    """A block of these bytes, which are its content without a trailer.

    Raises nothing; cost: the CRC of the bytes.

    >>> parse_block(bytes.fromhex("0000000001000000"), "data").entries()
    []
    """
    body = plain + bytes([NO_COMPRESSION])
    stored = body + masked_crc32c(body).to_bytes(4, "little")
    return Block(BlockPlace(0, len(plain), kind), stored)


def _entries_end(plain: bytes) -> int:
    """Return the start of the array of restart points; ``CorruptionError`` if there is none."""
    stated = decode_fixed32(plain, len(plain) - 4)
    if stated > (len(plain) - 4) // 4:
        points = count(stated, "restart point")
        raise CorruptionError(f"the block is too small for {points}", None, 0)
    return len(plain) - 4 - 4 * stated


def _entries(plain: bytes, array: int, restarts: frozenset[int]) -> Iterator[Entry]:
    """The entries before ``array``, one by one.

    ``CorruptionError`` after the last valid one, and where keys share more than the engine allows
    (see ``lsmkv/engine/table/block.py``).
    """
    at = 0
    key = b""
    spent = 0
    while at < array:
        shared, unshared_at = decode_varint32(plain, at)
        unshared, size_at = decode_varint32(plain, unshared_at)
        size, key_at = decode_varint32(plain, size_at)
        value_at = key_at + unshared
        end = value_at + size
        if end > array:
            raise CorruptionError("an entry runs past the block", None, at)
        if shared > len(key):
            raise CorruptionError("an entry shares more than the previous key has", None, at)
        if shared > 0 and spent > DEFAULT_MAX_BLOCK_BYTES:
            raise CorruptionError("keys share more bytes than a block may hold", None, at)
        spent += shared
        key = key[:shared] + plain[key_at:value_at]
        value = plain[value_at:end]
        yield Entry(
            at, shared, unshared_at, size_at, key_at, value_at, end, key, value, at in restarts
        )
        at = end
