"""Writes a table: data blocks, filters, metaindex, index, footer, in file order.

The layout is in ``docs/reference/format.md`` (source: LevelDB, ``table/table_builder.cc``).  For
the same entries and options an uncompressed table is the one that LevelDB writes, byte for byte.
Flushes, compactions, ingests, repairs and ``TableWriter`` use a builder, each in one thread without
a lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lsmkv.engine.env.base import WritableFile
from lsmkv.engine.format.keys import TAG_SIZE, InternalKeyComparator
from lsmkv.engine.options import Options
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.engine.table.filter_block import (
    BLOCK_FILTER_PREFIX,
    TABLE_FILTER_PREFIX,
    FilterBlockBuilder,
    PrefixFilterBuilder,
    TableFilterBuilder,
    prefix_filter_key,
)
from lsmkv.engine.table.format import BLOCK_TRAILER_SIZE, BlockHandle, Footer, seal_block
from lsmkv.engine.util.compression import NO_COMPRESSION

if TYPE_CHECKING:
    from mypy_extensions import i64

# Compiled code lets other threads run mainly while it reads or writes: a larger chunk would delay
# them, and saves nothing (measured).
_WRITE_CHUNK: Final = 64 * 1024


class TableBuilder:
    """Writes a table from entries in strictly ascending order.

    Call order: ``(add | add_entries)* finish``.  The keys are internal keys.  Filters are made from
    their user keys, one for each version.  The caller syncs and closes the file.  To abandon a
    table, do not finish it.  After an error from the file the builder must not be used again.
    """

    def __init__(self, options: Options, file: WritableFile) -> None:
        self._comparator = InternalKeyComparator(options.comparator)
        self._bytewise = self._comparator.order.is_bytewise
        self._policy = options.filter_policy
        self._compression = options.compression
        self._zstd_level = options.zstd_compression_level
        self._block_size = options.block_size
        self._max_block_bytes = options.max_block_bytes
        self._restart_interval = options.block_restart_interval
        self._file = file
        self._pending: list[bytes] = []  # sealed blocks that are not written yet
        self._pending_bytes = 0
        self._offset = 0
        self._data_block = BlockBuilder(options.block_restart_interval, options.max_block_bytes)
        self._index_block = BlockBuilder(1)
        self._filter_block: FilterBlockBuilder | None = None
        self._table_filter: TableFilterBuilder | None = None
        if self._policy is not None:
            if options.filter_layout != "table":
                self._filter_block = FilterBlockBuilder(self._policy)
                self._filter_block.start_block(0)
            if options.filter_layout != "block":
                self._table_filter = TableFilterBuilder(self._policy)
        self._extractor = options.prefix_extractor
        self._prefix_filter: PrefixFilterBuilder | None = None
        if self._extractor is not None:
            self._prefix_filter = PrefixFilterBuilder(self._policy, self._extractor)
        self._last_key = b""
        self._block_to_index: BlockHandle | None = None  # awaits the next key, for its separator
        self._finished = False
        self.num_entries = 0

    @property
    def file_size(self) -> int:
        """Bytes of the table so far; of the whole table once it is finished."""
        return self._offset

    @property
    def last_key(self) -> bytes:
        """The key added last."""
        return self._last_key

    def add(self, key: bytes, value: bytes) -> None:
        """Append an entry.  ``ValueError`` if ``key`` is not an internal key, or does not sort
        after the one before it.
        """
        if self._finished:
            raise ValueError("add after finish")
        if len(key) < TAG_SIZE:
            raise ValueError(f"not an internal key: {key!r}")
        if self.num_entries > 0 and self._comparator.compare(key, self._last_key) <= 0:
            raise ValueError(f"keys out of order: {key!r} after {self._last_key!r}")
        if self._block_to_index is not None:
            separator = self._comparator.find_shortest_separator(self._last_key, key)
            self._index_block.add(separator, self._block_to_index.encode())
            self._block_to_index = None
        self._add_to_filters([key[:-8]])
        self._last_key = key
        self.num_entries += 1
        self._data_block.add(key, value)
        if self._data_block.size_estimate() >= self._block_size:
            self._flush_data_block()

    def add_entries(
        self, user_keys: list[bytes], tagged: list[bytes], at: i64, stop: i64, limit: i64
    ) -> i64:
        """Append the entries from ``at`` to ``stop``, or until the file has ``limit`` bytes.

        ``tagged`` are the tagged values.  Returns the index of the first entry that was not added.
        ``ValueError`` as for :meth:`add`.
        """
        block = self._data_block
        while at < stop:
            upto: i64 = at
            if self._bytewise:
                upto = block.add_entries(user_keys, tagged, at, stop, self._block_size)
            if upto == at:
                self.add(user_keys[at] + tagged[at][:TAG_SIZE], tagged[at][TAG_SIZE:])
                at += 1
            else:
                self._add_to_filters(user_keys[at:upto])
                self._last_key = block.last_key
                self.num_entries += upto - at
                at = upto
                if block.size_estimate() < self._block_size:
                    continue
                self._flush_data_block()
            if self._offset >= limit:
                break
        return at

    def finish(self) -> None:
        """Write the last data block, filters, metaindex, index and footer."""
        if self._finished:
            raise ValueError("finish twice")
        self._flush_data_block()
        self._finished = True
        metaindex = self._write_block(self._write_filters(), self._compression)
        if self._block_to_index is not None:
            successor = self._comparator.find_short_successor(self._last_key)
            self._index_block.add(successor, self._block_to_index.encode())
        index = self._write_block(self._index_block.finish(), self._compression)
        self._append(Footer(metaindex, index).encode())
        self._write_out()

    def _flush_data_block(self) -> None:
        if self._data_block.empty:
            return
        self._block_to_index = self._write_block(self._data_block.finish(), self._compression)
        self._data_block.reset()
        if self._filter_block is not None:
            self._filter_block.start_block(self._offset)

    def _add_to_filters(self, user_keys: list[bytes]) -> None:
        if self._filter_block is not None:
            self._filter_block.add_keys(user_keys)
        if self._table_filter is not None:
            self._table_filter.add_keys(user_keys)
        if self._prefix_filter is not None:
            self._prefix_filter.add_keys(user_keys)

    def _write_filters(self) -> bytes:
        """Write the filters, and return the metaindex that names them: its keys are in order, since
        ``filter.`` < ``fullfilter.`` < ``prefixfilter.``."""
        metaindex = BlockBuilder(self._restart_interval)
        if self._policy is not None:
            name = self._policy.name.encode()
            if self._filter_block is not None:
                handle = self._write_block(self._filter_block.finish(), NO_COMPRESSION)
                metaindex.add(BLOCK_FILTER_PREFIX + name, handle.encode())
            if self._table_filter is not None:
                handle = self._write_block(self._table_filter.finish(), NO_COMPRESSION)
                metaindex.add(TABLE_FILTER_PREFIX + name, handle.encode())
        if self._prefix_filter is not None and self._extractor is not None:
            handle = self._write_block(self._prefix_filter.finish(), NO_COMPRESSION)
            key = prefix_filter_key(self._prefix_filter.policy, self._extractor)
            metaindex.add(key, handle.encode())
        return metaindex.finish()

    def _write_block(self, raw: bytes, compression: int) -> BlockHandle:
        if len(raw) > self._max_block_bytes:
            compression = NO_COMPRESSION  # readers refuse to decompress that much
        stored = seal_block(raw, compression, self._zstd_level)
        handle = BlockHandle(self._offset, len(stored) - BLOCK_TRAILER_SIZE)
        self._append(stored)
        return handle

    def _append(self, data: bytes) -> None:
        # No reader opens a table before it is finished, so one write may hold many blocks.
        self._offset += len(data)
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes >= _WRITE_CHUNK:
            self._write_out()

    def _write_out(self) -> None:
        data = b"".join(self._pending)
        self._pending = []
        self._pending_bytes = 0
        self._file.append(data)
