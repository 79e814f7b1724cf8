"""Reads the metadata of a table when it is opened: footer, index, metaindex and filters.

A :class:`~lsmkv.engine.table.reader.Table` makes a :class:`TableMetadata` once, and keeps what it
found.  (Source: LevelDB, ``table/table.cc: Table::Open``.)
"""

from __future__ import annotations

from mypy_extensions import i64

from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.filter.fuse import is_filter64
from lsmkv.engine.filter.known import KNOWN_POLICIES
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.options import Options
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.filter_block import (
    BLOCK_FILTER_PREFIX,
    TABLE_FILTER_PREFIX,
    FilterBlockReader,
    FilterReader,
    PrefixFilterReader,
    TableFilterReader,
    prefix_filter_key,
)
from lsmkv.engine.table.format import (
    BLOCK_TRAILER_SIZE,
    FOOTER_SIZE,
    BlockHandle,
    Footer,
    read_block,
)
from lsmkv.engine.table.index import TableIndex
from lsmkv.engine.util.comparator import equal_means_identical


class TableMetadata:
    """Everything in a table but its data blocks.

    Footer and index take two reads.  A store that uses filters reads the metaindex too, and the
    filters that it names: up to three.

    Raises :class:`CorruptionError` with file and offset.
    """

    def __init__(self, options: Options, file: RandomAccessFile, order: KeyOrder) -> None:
        self._options = options
        self._file = file
        self._order = order
        self._max_block_bytes = options.max_block_bytes
        self.reads = 0
        """Reads made."""
        self.bytes_read = 0
        """Bytes that they returned."""
        self.filter_bytes: i64 = 0
        """Bytes of the filters, which are held as they are stored."""
        footer = self._read_footer()
        self.index = self._read_index(footer.index)
        """A key and a handle for each data block."""
        self.prefix_filter: PrefixFilterReader | None = None
        """The filter that scans of one prefix ask."""
        self.filters: list[FilterReader] = []
        """The filters that lookups ask, in this order."""
        if options.filter_policy is not None or options.prefix_extractor is not None:
            self.filters = self._read_filters(footer.metaindex)
        self.data_end = footer.metaindex.offset
        """An offset after the data blocks and the filters."""

    def _read_footer(self) -> Footer:
        file = self._file
        start = file.size - FOOTER_SIZE
        if start < 0:
            raise CorruptionError(f"a table of {file.size} bytes has no footer", file.path, 0)
        data = file.read(start, FOOTER_SIZE)
        self._count(len(data))
        try:
            footer = Footer.decode(data)
        except CorruptionError as error:
            raise error.located(file.path, start) from None
        # Checked here, since approximate_offset returns its offset even if it is never read.
        end = footer.metaindex.offset + footer.metaindex.size + BLOCK_TRAILER_SIZE
        if end > start:
            reason = f"{footer.metaindex} lies beyond the end of the file"
            raise CorruptionError(reason, file.path, start)
        return footer

    def _read_index(self, handle: BlockHandle) -> TableIndex:
        keys, values = self._read_entries(handle)
        try:
            return TableIndex(keys, values, self._order, self._file.size - FOOTER_SIZE)
        except CorruptionError as error:
            raise CorruptionError(error.reason, self._file.path, handle.offset) from None

    def _read_filters(self, handle: BlockHandle) -> list[FilterReader]:
        """The filters of the store's policy or, if there are none, of another known policy; and the
        prefix filter."""
        keys, values = self._read_entries(handle)
        metaindex = dict(zip(keys, values, strict=True))
        extractor = self._options.prefix_extractor
        if extractor is not None:  # which implies the bytewise order
            for policy in filter(is_filter64, KNOWN_POLICIES):
                found = self._read_filter(metaindex, prefix_filter_key(policy, extractor), handle)
                if found is not None:
                    self.prefix_filter = PrefixFilterReader(policy, extractor, found[0])
                    break
        for policy in usable_policies(self._options):
            readers = self._filters_of(policy, metaindex, handle)
            if readers:
                return readers
        return []

    def _filters_of(
        self, policy: FilterPolicy, metaindex: dict[bytes, bytes], handle: BlockHandle
    ) -> list[FilterReader]:
        """The filters of a policy: the whole-table filter first, where there are both."""
        name = policy.name.encode()
        readers: list[FilterReader] = []
        whole = self._read_filter(metaindex, TABLE_FILTER_PREFIX + name, handle)
        if whole is not None:
            readers.append(TableFilterReader(policy, whole[0]))
        blocks = self._read_filter(metaindex, BLOCK_FILTER_PREFIX + name, handle)
        if blocks is not None:
            try:
                readers.append(FilterBlockReader(policy, blocks[0]))
            except CorruptionError as error:
                raise CorruptionError(error.reason, self._file.path, blocks[1]) from None
        return readers

    def _read_filter(
        self, metaindex: dict[bytes, bytes], key: bytes, handle: BlockHandle
    ) -> tuple[bytes, int] | None:
        """The contents of a filter that the metaindex names, and its offset; None if it does
        not."""
        value = metaindex.get(key)
        if value is None:
            return None
        try:
            where, _ = BlockHandle.decode(value)
        except CorruptionError as error:
            raise CorruptionError(error.reason, self._file.path, handle.offset) from None
        contents = self._read_metadata(where)
        self.filter_bytes += len(contents)
        return contents, where.offset

    def _read_entries(self, handle: BlockHandle) -> tuple[list[bytes], list[bytes]]:
        contents = self._read_metadata(handle)
        try:
            return Block(contents, self._max_block_bytes).entries()
        except CorruptionError as error:
            raise CorruptionError(error.reason, self._file.path, handle.offset) from None

    def _read_metadata(self, handle: BlockHandle) -> bytes:
        contents = read_block(self._file, handle, self._max_block_bytes)
        self._count(handle.size + BLOCK_TRAILER_SIZE)
        return contents

    def _count(self, size: int) -> None:
        self.reads += 1
        self.bytes_read += size


def usable_policies(options: Options) -> list[FilterPolicy]:
    """The policies whose filters a store uses where it finds them, its own first.

    The list is empty if the store wants no filters. lsmkv's other policies depend on the bytes of
    keys, so they are usable only with comparators for which equal keys are equal bytes.
    """
    own = options.filter_policy
    if own is None:
        return []
    return [own, *(KNOWN_POLICIES if equal_means_identical(options.comparator) else ())]
