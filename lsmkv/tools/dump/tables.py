"""Reads a table into records.

Everything in a table is found from its footer.  Without the footer or the index, no entry can be
found, and reading ends there.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.env.base import RandomAccessFile
from lsmkv.errors import CorruptionError, ForeignFormatError
from lsmkv.filter.known import KNOWN_POLICIES
from lsmkv.table.filter_block import (
    BLOCK_FILTER_PREFIX,
    PREFIX_FILTER_PREFIX,
    TABLE_FILTER_PREFIX,
)
from lsmkv.table.format import FOOTER_SIZE, BlockHandle
from lsmkv.table.format import Footer as TableFooter
from lsmkv.tools.dump.blocks import (
    LoadedBlock,
    entry_handle,
    filter_spans,
    load_block,
    restart_points,
    spans_and_faults,
    split_key,
)
from lsmkv.tools.dump.records import (
    Block,
    BlockKind,
    Entry,
    Fault,
    Filter,
    Footer,
    Handle,
)
from lsmkv.tools.text import count

ROCKSDB_MAGIC = bytes.fromhex("f7cff485b741e288")

TableRecord = Block | Entry | Handle | Filter | Footer | Fault


def read_table(file: RandomAccessFile) -> Iterator[TableRecord]:
    """The blocks of a table and their content, in the order of the file.

    The index and one block are in memory at a time.  :class:`ForeignFormatError` for a table of
    RocksDB.
    """
    offset = file.size - FOOTER_SIZE
    try:
        footer = read_footer(file)
    except CorruptionError as error:
        yield Fault("damage", max(offset, 0), f"{error.reason}; nothing can be found without it")
        return
    index = read_handles(file, footer.index, "index")
    metaindex = read_handles(file, footer.metaindex, "metaindex")
    for record in index:
        if isinstance(record, Handle):
            yield from _read_data(file, record.handle)
    for record in metaindex:
        if isinstance(record, Handle) and isinstance(record.key, bytes):
            yield from _read_meta(file, record.handle, record.key)
    yield from metaindex
    yield from index
    yield Footer(offset, footer.metaindex, footer.index)


def read_footer(file: RandomAccessFile) -> TableFooter:
    """The footer; ``CorruptionError``, or ``ForeignFormatError`` if it is RocksDB's."""
    data = file.read(max(0, file.size - FOOTER_SIZE), FOOTER_SIZE)
    if data.endswith(ROCKSDB_MAGIC):
        raise ForeignFormatError(f"{file.path} is a RocksDB table")
    if len(data) < FOOTER_SIZE:
        reason = f"{count(len(data), 'byte')}, too few for a table's footer"
        raise CorruptionError(reason, file.path, 0)
    try:
        return TableFooter.decode(data)
    except CorruptionError as error:
        raise error.located(file.path, file.size - FOOTER_SIZE) from None


Handles = list[Block | Handle | Fault]


def read_handles(file: RandomAccessFile, handle: BlockHandle, kind: BlockKind) -> Handles:
    """All records of the index or the metaindex."""
    block = load_block(file, handle)
    if isinstance(block, Fault):
        return [block._replace(reason=f"{block.reason}; it is the {kind}")]
    heading = _heading(block, kind, b"")
    restarts = set(heading.restarts or ())
    records: Handles = [heading]
    for span in spans_and_faults(block, kind):
        if isinstance(span, Fault):
            records.append(span)
            continue
        target = entry_handle(block.plain, span)
        if target is not None:
            key = span.key if kind == "metaindex" else split_key(span.key)
            restart = span.offset in restarts
            records.append(Handle(handle.offset, span.offset, restart, key, target))
    return records


def read_filters(file: RandomAccessFile) -> Iterator[Filter]:
    """The filters of a table, read without its index and its data blocks.

    Those that are damaged are left out; ``CorruptionError`` if the footer is.
    """
    return (part for part in filters_and_faults(file) if isinstance(part, Filter))


def filters_and_faults(file: RandomAccessFile) -> Iterator[Filter | Fault]:
    """As :func:`read_filters`, with a fault for each filter block that is damaged, and for a
    damaged metaindex."""
    for record in read_handles(file, read_footer(file).metaindex, "metaindex"):
        if isinstance(record, Fault):
            yield record
        elif isinstance(record, Handle) and isinstance(record.key, bytes):
            if meta_kind(record.key)[0] == "meta":
                continue
            for part in _read_meta(file, record.handle, record.key):
                if isinstance(part, (Filter, Fault)):
                    yield part


def _read_data(file: RandomAccessFile, handle: BlockHandle) -> Iterator[TableRecord]:
    block = load_block(file, handle)
    if isinstance(block, Fault):
        yield block
        return
    heading = _heading(block, "data", b"")
    yield heading
    restarts = set(heading.restarts or ())
    for span in spans_and_faults(block, "data"):
        if isinstance(span, Fault):
            yield span
            continue
        value = block.plain[span.value_at : span.end]
        key = split_key(span.key)
        yield Entry(handle.offset, span.offset, span.offset in restarts, key, value)


def _read_meta(file: RandomAccessFile, handle: BlockHandle, name: bytes) -> Iterator[TableRecord]:
    block = load_block(file, handle)
    kind, policy = meta_kind(name)
    if isinstance(block, Fault):
        yield block
        return
    yield _heading(block, kind, name)
    if kind == "prefix filter":
        extractor = name[len(PREFIX_FILTER_PREFIX) + len(policy) + 1 :]
        yield Filter(block.handle.offset, 0, 0, None, None, policy, block.plain, extractor)
    elif kind != "meta":
        yield from _filters(block, kind, policy)


def _filters(block: LoadedBlock, kind: BlockKind, policy: bytes) -> Iterator[Filter | Fault]:
    at = block.handle.offset
    if kind == "full filter":
        yield Filter(at, 0, 0, None, None, policy, block.plain)
        return
    try:
        spans = filter_spans(block.plain)
    except CorruptionError as error:
        yield Fault("damage", at, f"{error.reason}, at byte {error.offset} of the block")
        return
    for index, (start, end) in enumerate(spans.bounds):
        first = index << spans.base_lg
        last = (index + 1 << spans.base_lg) - 1
        yield Filter(at, start, index, first, last, policy, block.plain[start:end])


def _heading(block: LoadedBlock, kind: BlockKind, name: bytes) -> Block:
    restarts: list[int] | None = None
    if kind in ("data", "index", "metaindex"):
        try:
            restarts = restart_points(block.plain)[1]
        except CorruptionError:
            restarts = []  # a fault reports this in place of the entries
    return Block(kind, block.handle, name, block.codec, len(block.plain), restarts)


def meta_kind(name: bytes) -> tuple[BlockKind, bytes]:
    """The kind of block that a name in the metaindex denotes, and the policy in the name."""
    kinds: list[tuple[bytes, BlockKind]] = [
        (BLOCK_FILTER_PREFIX, "filter"),
        (TABLE_FILTER_PREFIX, "full filter"),
    ]
    for prefix, kind in kinds:
        if name.startswith(prefix):
            return kind, name[len(prefix) :]
    for policy in KNOWN_POLICIES:  # names may have dots, so the policy's has to be a known one
        known = policy.name.encode()
        if name.startswith(PREFIX_FILTER_PREFIX + known + b"."):
            return "prefix filter", known
    return "meta", b""
