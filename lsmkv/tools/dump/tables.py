"""Reads a table into records.

Everything in a table is found from its footer.  Without the footer or the index, no entry can be
found, and reading ends there.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv import files
from lsmkv.errors import CorruptionError
from lsmkv.files import FOOTER_SIZE, Damage, FileSource, Filter, Table
from lsmkv.tools.dump.records import Block, Entry, Fault, Footer, Handle, fault_of

TableRecord = Block | Entry | Handle | Filter | Footer | Fault


def read_table(source: FileSource) -> Iterator[TableRecord]:
    """The blocks of a table and their content, in the order of the file.

    The index and one block are in memory at a time.  :class:`ForeignFormatError` for a table of
    RocksDB.
    """
    table = Table(source)
    try:
        footer = table.footer
    except CorruptionError as error:
        offset = max(table.size - FOOTER_SIZE, 0)
        yield Fault("damage", offset, f"{error.reason}; nothing can be found without it")
        return
    for block in table.data_blocks():
        yield from _read_data(block)
    for place in table.meta_blocks():
        yield from _read_meta(table.block(place))
    yield from _read_handles(table.metaindex)
    yield from _read_handles(table.index)
    yield Footer(footer.offset, footer.metaindex, footer.index)


def _read_data(block: files.Block) -> Iterator[TableRecord]:
    if block.damage is None:
        yield _heading(block)
    offset = block.place.offset
    for one in block.walk():
        if isinstance(one, Damage):
            yield fault_of(one)
        else:
            yield Entry(offset, one.offset, one.is_restart, one.internal_key, one.value)


def _read_meta(block: files.Block) -> Iterator[TableRecord]:
    if block.damage is None:
        yield _heading(block)
    if block.place.kind == "meta":
        if block.damage is not None:
            yield fault_of(block.damage)
        return
    for part in files.filters_in(block):
        yield fault_of(part) if isinstance(part, Damage) else part


def _read_handles(block: files.Block) -> Iterator[TableRecord]:
    """All records of the index or the metaindex."""
    kind = block.place.kind
    damage = block.damage
    if damage is not None:
        yield fault_of(damage._replace(reason=f"{damage.reason}; it is the {kind}"))
        return
    yield _heading(block)
    for one in block.walk():
        if isinstance(one, Damage):
            yield fault_of(one)
        elif one.handle is not None:
            key = one.key if kind == "metaindex" else one.internal_key
            yield Handle(block.place.offset, one.offset, one.is_restart, key, one.handle)


def _heading(block: files.Block) -> Block:
    restarts: list[int] | None = None
    if block.place.kind in ("data", "index", "metaindex"):
        try:
            restarts = block.restart_points()
        except CorruptionError:
            restarts = []  # a fault reports this in place of the entries
    place = block.place
    return Block(place.kind, place.handle, place.name, block.codec, len(block.plain), restarts)
