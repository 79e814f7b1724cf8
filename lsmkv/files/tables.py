"""A table: everything in it is found from its footer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from lsmkv.engine.errors import CorruptionError, ForeignFormatError, UnsupportedCompressionError
from lsmkv.engine.table.format import MAGIC, read_stored
from lsmkv.engine.table.inspection import codec_in
from lsmkv.engine.util.compression import codec_name
from lsmkv.engine.util.text import count
from lsmkv.files.blocks import Block, BlockKind, BlockPlace, Entry
from lsmkv.files.filters import Filter, filters_in, meta_place
from lsmkv.files.keys import BlockHandle, handle_fields, parse_handle
from lsmkv.files.parts import Damage, Field
from lsmkv.files.readable import FileSource, OpenFile

FOOTER_SIZE: Final = 48
"""Bytes of a footer, the end of every table."""
ROCKSDB_MAGIC: Final = bytes.fromhex("f7cff485b741e288")
_HANDLES_SIZE: Final = FOOTER_SIZE - len(MAGIC)


@dataclass(frozen=True)
class Footer:
    """The last 48 bytes of a table: two block handles, zeros up to byte 40, the magic number.

    >>> footer = parse_footer(bytes([9, 8, 30, 14]).ljust(40, b"\\0") + MAGIC)
    >>> footer.metaindex
    BlockHandle(offset=9, size=8)
    """

    offset: int
    """Start of the footer in the file."""
    metaindex: BlockHandle
    index: BlockHandle
    fields: tuple[Field, ...]
    """``metaindex offset``, ``metaindex size``, ``index offset``, ``index size``, ``padding`` and
    ``magic``, with their bytes in the footer."""


def parse_footer(stored: bytes, offset: int = 0) -> Footer:
    """The footer in these 48 bytes; ``offset`` is where they begin in the file.

    Raises :class:`~lsmkv.CorruptionError` with the position in the footer, and
    :class:`~lsmkv.ForeignFormatError` for RocksDB's magic number.  O(1).

    >>> footer = parse_footer(bytes([9, 8, 30, 14]).ljust(40, b"\\0") + MAGIC)
    >>> footer.index, [field.name for field in footer.fields if field.value == 9]
    (BlockHandle(offset=30, size=14), ['metaindex offset'])
    """
    if stored.endswith(ROCKSDB_MAGIC):
        raise ForeignFormatError("it is a RocksDB table")
    if len(stored) < FOOTER_SIZE:
        raise CorruptionError(f"{count(len(stored), 'byte')}, too few for a table's footer")
    if len(stored) > FOOTER_SIZE or not stored.endswith(MAGIC):
        raise CorruptionError("not a table: its footer has no magic number", None, 0)
    fields: list[Field] = []
    at = 0
    for whose in ("metaindex", "index"):
        for field in handle_fields(stored[:_HANDLES_SIZE], at):
            fields.append(field._replace(name=f"{whose} {field.name}"))
            at = field.end
    (metaindex, _), (index, _) = (parse_handle(stored, fields[which].start) for which in (0, 2))
    fields += [
        Field("padding", at, _HANDLES_SIZE, stored[at:_HANDLES_SIZE]),
        Field("magic", _HANDLES_SIZE, FOOTER_SIZE, MAGIC),
    ]
    return Footer(offset, metaindex, index, tuple(fields))


class TableEntry(NamedTuple):
    """A version of a key in a table: an entry of a data block.

    >>> TableEntry(0, b"key", 7, 1, b"value").sequence
    7
    """

    block: int
    """The offset of its data block in the file."""
    user_key: bytes
    sequence: int
    kind: int
    """1 for a value, 0 for a deletion."""
    value: bytes


class Table(OpenFile):
    """A table (``.ldb``, ``.sst``): data blocks, filters, metaindex, index, and a footer.

    The footer names the metaindex and the index.  The metaindex names the filters and other meta
    blocks, the index the data blocks: each of its entries has a key at or after the last one of a
    block, and the block's handle.  (``docs/reference/format.md``; LevelDB's
    ``doc/table_format.md``.)

    Opening reads nothing and raises ``OSError``.  Index and metaindex are read at first use and
    kept; data blocks and filters are read on demand, one at a time, and not kept.  So a walk needs
    no more memory than the index and the largest block.  Damage affects only its own block: a walk
    yields it as :class:`Damage` and continues; methods that return single values raise
    :class:`~lsmkv.CorruptionError` for it, with file and offset.  Without the footer, nothing can
    be found.  An object is for one thread.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.DB("store", create_if_missing=True, env=env, compression=None) as db:
    ...     for n in range(1000):
    ...         db.put(b"%04d" % n, bytes(20))
    ...     db.flush()
    ...     name = db.tables()[0].name
    >>> file = env.open_directory("store").open(name)
    >>> table = Table(file)
    >>> [place.kind for place in table.places()][7:]
    ['data', 'filter', 'metaindex', 'index']
    >>> first = next(table.data_blocks())
    >>> first.codec, first.entries()[0].internal_key.user_key, first.restart_points()[:2]
    ('uncompressed', b'0000', [0, 516])
    >>> table.codec
    'none'
    >>> next(table.entries()).user_key, sum(1 for _ in table.entries())
    (b'0000', 1000)
    >>> [len(one.data) > 0 for one in table.filters_for(first.place.offset)]
    [True]
    >>> table.footer.index == table.index.place.handle, table.metaindex.place.kind
    (True, 'metaindex')

    One flipped bit damages one block, and no other:

    >>> data = bytearray(table.read(0, table.size))
    >>> data[7] ^= 1
    >>> damaged = Table(bytes(data))
    >>> [block.damage.reason for block in damaged.data_blocks() if block.damage]
    ['block checksum mismatch']
    >>> damaged.block(damaged.places()[1]).damage is None
    True
    >>> sum(1 for part in damaged.walk() if isinstance(part, TableEntry))
    874
    >>> len([one for one in damaged.filters() if isinstance(one, Filter) and one.data])
    8
    >>> damaged.meta_blocks()[0].name
    b'filter.leveldb.BuiltinBloomFilter2'
    >>> table.close()
    """

    def __init__(self, source: FileSource) -> None:
        """``source`` is a path, the bytes of a table, or a :class:`Readable`."""
        super().__init__(source)
        self._footer: Footer | None = None
        self._blocks: dict[BlockKind, Block] = {}  # index and metaindex

    @property
    def footer(self) -> Footer:
        """The footer; :class:`~lsmkv.ForeignFormatError` if it is RocksDB's."""
        if self._footer is None:
            offset = max(0, self.size - FOOTER_SIZE)
            stored = self._file.read(offset, FOOTER_SIZE)
            try:
                self._footer = parse_footer(stored, offset)
            except ForeignFormatError:
                raise ForeignFormatError(f"{self.path} is a RocksDB table") from None
            except CorruptionError as error:
                raise CorruptionError(error.reason, self.path, offset) from None
        return self._footer

    @property
    def index(self) -> Block:
        """The index block: a key and the handle of each data block."""
        return self._kept("index", self.footer.index)

    @property
    def metaindex(self) -> Block:
        """The metaindex block: names and handles of filters and other meta blocks."""
        return self._kept("metaindex", self.footer.metaindex)

    @property
    def codec(self) -> str:
        """The compression of the table, such as ``snappy`` or ``none``: that of the index, or else
        of the first data blocks.  Also ``none`` if these cannot be read."""
        return codec_name(codec_in(self._file))

    def places(self) -> list[BlockPlace]:
        """Return the locations of all blocks, by offset.

        Blocks that the index or the metaindex does not name because it is damaged are missing.  In
        a damaged file blocks may overlap, or lie beyond the end of the file.
        """
        found = [self.index.place, self.metaindex.place, *self._data_places(), *self.meta_blocks()]
        distinct = {(one.offset, one.size, one.kind, one.policy): one for one in reversed(found)}
        return [distinct[at] for at in sorted(distinct)]

    def block(self, place: BlockPlace) -> Block:
        """The block at a place; one read.

        Damage of the block raises nothing here: see :class:`Block`.  Raises ``OSError``.
        """
        if place.end > self.size:
            return Block(place, b"", self.path)
        try:
            stored = read_stored(self._file, place.offset, place.end - place.offset)
        except CorruptionError:  # not enough memory
            stored = b""
        return Block(place, stored, self.path)

    def data_blocks(self) -> Iterator[Block]:
        """The data blocks in the order of the index, one read each, including damaged ones.

        Data blocks that the index does not name because it is damaged are left out:
        ``index.damage`` and ``index.walk()`` show that.
        """
        return map(self.block, self._data_places())

    def entries(self) -> Iterator[TableEntry]:
        """The entries in the order of their keys; :class:`~lsmkv.CorruptionError` at any damage."""
        for part in self.walk():
            if isinstance(part, Damage):
                if part.kind == "codec":
                    raise UnsupportedCompressionError(
                        f"{self.path}: {part.reason} (at offset {part.offset})"
                    )
                raise CorruptionError(part.reason, self.path, part.offset)
            yield part

    def walk(self) -> Iterator[TableEntry | Damage]:
        """The entries and the damage among them: of the index, and of data blocks.

        An entry whose key is not an internal key is damage.
        """
        for part in self.index.walk():
            if isinstance(part, Damage):
                yield part
                continue
            handle = part.handle
            if handle is None:
                continue  # reported before it
            place = BlockPlace(handle.offset, handle.size, "data")
            for entry in self.block(place).walk():
                if isinstance(entry, Damage):
                    yield entry
                    continue
                user_key, sequence, kind = entry.internal_key
                if sequence is not None and kind is not None:
                    yield TableEntry(place.offset, user_key, sequence, kind, entry.value)

    def meta_blocks(self) -> list[BlockPlace]:
        """Return the locations of filters and other meta blocks, in the metaindex's order."""
        return [
            meta_place(entry.handle, entry.key)
            for entry in self._sound(self.metaindex)
            if entry.handle is not None
        ]

    def filters(self) -> Iterator[Filter | Damage]:
        """All filters, including those without keys, and the damage of their blocks and of the
        metaindex.  Costs one read for each filter block."""
        for part in self.metaindex.walk():
            if isinstance(part, Damage):
                yield part
            elif part.handle is not None:
                place = meta_place(part.handle, part.key)
                if place.kind != "meta":
                    yield from filters_in(self.block(place))

    def filters_for(self, offset: int) -> list[Filter]:
        """The filters that a lookup asks before it reads the data block at ``offset``.

        :class:`~lsmkv.CorruptionError` if one of their blocks is damaged.  Costs one read for each.
        """
        found: list[Filter] = []
        for part in self.filters():
            if isinstance(part, Damage):
                raise CorruptionError(part.reason, self.path, part.offset)
            if part.kind != "prefix" and part.covers(offset):
                found.append(part)
        return found

    def _data_places(self) -> Iterator[BlockPlace]:
        for entry in self._sound(self.index):
            handle = entry.handle
            if handle is not None:
                yield BlockPlace(handle.offset, handle.size, "data")

    def _sound(self, block: Block) -> Iterator[Entry]:
        return (part for part in block.walk() if isinstance(part, Entry))

    def _kept(self, kind: BlockKind, handle: BlockHandle) -> Block:
        if kind not in self._blocks:
            self._blocks[kind] = self.block(BlockPlace(handle.offset, handle.size, kind))
        return self._blocks[kind]
