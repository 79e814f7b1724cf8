"""Reads a table into records.

Everything in a table is found from its footer.  Without the footer or the index, the data blocks
are searched for, as a repair does it.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.engine.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.files import FOOTER_SIZE, Block, Damage, FileSource, Table, filters_in
from lsmkv.files.repair import Hole, find_blocks
from lsmkv.tools.dump.records import Entry, Fault, Handle, TablePart, fault_of
from lsmkv.tools.text import count

_SEARCHED = "the data blocks are searched for"


def read_table(source: FileSource) -> Iterator[TablePart | Fault]:
    """The blocks of a table and their content, in the order of the file.

    The index and one block are in memory at a time.  :class:`ForeignFormatError` for a table of
    RocksDB.
    """
    table = Table(source)
    try:
        footer = table.footer
    except CorruptionError as error:
        offset = max(table.size - FOOTER_SIZE, 0)
        yield Fault("damage", offset, f"{error.reason}; {_SEARCHED}")
        yield from _search(source)
        return
    if table.index.damage is None:
        for block in table.data_blocks():
            yield from _read_data(block)
    else:
        yield from _search(source)
    for place in table.meta_blocks():
        yield from _read_meta(table.block(place))
    yield from _read_handles(table.metaindex)
    yield from _read_handles(table.index)
    yield footer


def _search(source: FileSource) -> Iterator[TablePart | Fault]:
    """The data blocks that are found without an index, and the bytes between them."""
    try:
        for piece in find_blocks(source):
            if isinstance(piece, Hole):
                size = f" ({count(piece.size, 'byte')})" if piece.size > 0 else ""
                yield Fault("damage", piece.offset, f"{piece.reason}{size}")
            else:
                yield from _read_data(piece)
    except UnsupportedCompressionError as error:
        yield Fault("codec", None, str(error))


def _read_data(block: Block) -> Iterator[TablePart | Fault]:
    if block.damage is None:
        yield block
    offset = block.place.offset
    for one in block.walk():
        if isinstance(one, Damage):
            yield fault_of(one)
        else:
            yield Entry(offset, one.offset, one.is_restart, one.internal_key, one.value)


def _read_meta(block: Block) -> Iterator[TablePart | Fault]:
    if block.damage is None:
        yield block
    if block.place.kind == "meta":
        if block.damage is not None:
            yield fault_of(block.damage)
        return
    for part in filters_in(block):
        yield fault_of(part) if isinstance(part, Damage) else part


def _read_handles(block: Block) -> Iterator[TablePart | Fault]:
    """All records of the index or the metaindex."""
    kind = block.place.kind
    damage = block.damage
    if damage is not None:
        searched = f"; {_SEARCHED}" if kind == "index" else ""
        yield fault_of(damage._replace(reason=f"{damage.reason}; it is the {kind}{searched}"))
        return
    yield block
    for one in block.walk():
        if isinstance(one, Damage):
            yield fault_of(one)
        elif one.handle is not None:
            key = one.key if kind == "metaindex" else one.internal_key
            yield Handle(block.place.offset, one.offset, one.is_restart, key, one.handle)
