"""Reads a table: :class:`Table` (source: LevelDB, ``table/table.cc``)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from librt.vecs import append, vec
from mypy_extensions import i64

from lsmkv.env.base import RandomAccessFile
from lsmkv.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.filter.bloom import bloom_may_match
from lsmkv.options import Options
from lsmkv.stats import ReadCounters
from lsmkv.table.block import TAG_SIZE, Block, Row
from lsmkv.table.filter_block import (
    BLOCK_FILTER_PREFIX,
    TABLE_FILTER_PREFIX,
    FilterBlockReader,
    FilterReader,
    TableFilterReader,
    count_denied,
)
from lsmkv.table.format import (
    BLOCK_TRAILER_SIZE,
    FOOTER_SIZE,
    BlockHandle,
    Footer,
    read_block,
    read_stored,
    unpack_block,
)
from lsmkv.util.cache_entry import CacheEntry
from lsmkv.util.comparator import coarse_key
from lsmkv.util.search import SortedKeys

RULED_OUT: Final = 0
"""A lookup's outcome: no data block was needed, the index or a filter knew."""
FROM_CACHE: Final = 1
"""A lookup's outcome: one data block was searched, found in the block cache."""
FROM_FILE: Final = 2
"""A lookup's outcome: one data block was read from the file and searched."""

Entries = tuple[list[bytes], list[bytes]]
"""Keys and values of neighbouring entries: two lists of one length."""

SharedBlocks = dict["Table", tuple[int, Block]]
"""By table: number and content of the block searched last."""

_PLACE_SIZE: Final = 2  # numbers a block: see Table._places
_FILTER_BITS: Final = 32  # of a filter's place, for its size; where it starts stands above them
_FILTER_MASK: Final = 0xFFFFFFFF
_MOST_AHEAD: Final = 1 << 16  # bytes of several blocks that a scan reads at once
_NO_TAG: Final = bytes(TAG_SIZE)


class FilterLook(NamedTuple):
    """One filter, and what it says of a key."""

    layout: str
    data: bytes
    may_match: bool


class BlockLook(NamedTuple):
    """One data block: where it lies, what it took to get it, what is in it."""

    offset: int
    stored_size: int
    """Bytes in the file, trailer included."""
    cached: bool
    compression: int
    """The type byte."""
    plain_size: int
    entries: Entries


class TableLook(NamedTuple):
    """What a lookup meets in a table; for explaining, see :meth:`Table.look`."""

    index_key: bytes | None
    filters: list[FilterLook]
    block: BlockLook | None
    """The block where the key would be, whatever the filters say; None past the last one."""


class Readahead:
    """Neighbouring data blocks as they are stored, from ``first`` to ``stop``.

    Each is unpacked when it is asked for: not all that is read ahead is needed, and a few bytes may
    unpack to many.
    """

    __slots__ = ("first", "stop", "stored", "table")

    def __init__(self, table: Table, stored: bytes, first: i64, stop: i64) -> None:
        self.table = table
        self.stored = stored
        self.first: i64 = first
        self.stop: i64 = stop

    def has(self, table: Table, number: i64) -> bool:
        """Whether it has that block of that table."""
        return table is self.table and self.first <= number < self.stop


class Table:
    """An open table.  Safe for many threads; immutable but for its file being closed.

    The index is held decoded (one key and one handle for each data block), and so are the filters.
    What the block cache holds of a table is found here alone, so that two files that bear one
    number in turn are not confused.
    """

    def __init__(self, options: Options, file: RandomAccessFile) -> None:
        """Read footer, index, metaindex and filters: 2 to 5 reads.  The file becomes the table's.

        Raises :class:`CorruptionError` with file and offset.
        """
        self._file = file
        self._options = options
        self._comparator = options.comparator
        self._compare = options.comparator.compare
        self._coarse_key = coarse_key(options.comparator)
        self._cache = options.block_cache
        self._max_block_bytes = options.max_block_bytes
        self.metadata_reads = 0
        """Reads that opening took."""
        self.metadata_bytes = 0
        """Bytes that they returned."""
        footer = self._read_footer()
        self._read_index(footer.index)
        self._filters: list[FilterReader] = []
        self._blooms: bytes | None = None
        """One block of Bloom filters, if there are no others."""
        self._bloom_places = vec[i64]()
        """By number of a data block: where its filter is there, and its size; below 0 for none."""
        if options.filter_policy is not None:
            self._read_filters(footer.metaindex, options)
        self._metaindex_offset = footer.metaindex.offset

    @property
    def path(self) -> str:
        """The file, for messages."""
        return self._file.path

    @property
    def has_filter(self) -> bool:
        """Whether lookups ask a filter before they read a data block."""
        return bool(self._filters)

    @property
    def num_blocks(self) -> i64:
        """Data blocks."""
        return len(self._index_keys)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def get(
        self,
        key: bytes,
        key_hash: i64,
        counters: ReadCounters,
        fill_cache: bool = True,
        shared: SharedBlocks | None = None,
        order: Any = None,
    ) -> tuple[i64, bytes | None, bytes]:
        """The first entry at or after ``key`` in the block where ``key`` would be.

        Returns ``(outcome, key found or None, value)``; the caller compares the keys.  The filter
        is asked before any data block is read: after a *no* the outcome is :data:`RULED_OUT` and
        the file was not touched.  ``key_hash`` is the filter policy's hash of the key, or -1.
        ``shared`` holds the block that the lookup before this one searched, for neighbouring keys.
        ``order`` is the key's coarse key, if that is at hand.

        Cost: a binary search of the index, k bits of a filter, at most one block.
        """
        if order is None:
            order = self._coarse(key)
        number = self.find_block(key, order)
        if number == len(self._index_keys):
            return RULED_OUT, None, b""
        if self._filters and not self._may_match(number, key, key_hash, counters):
            return RULED_OUT, None, b""
        at_hand = None if shared is None else shared.get(self)
        if at_hand is not None and at_hand[0] == number:
            outcome, block = FROM_CACHE, at_hand[1]
        else:
            outcome, block = self._find(number, counters, fill_cache)
            if shared is not None:
                shared[self] = (number, block)
        try:
            entry = block.find(key, order, self._compare, self._coarse_key)
        except CorruptionError as error:
            raise self.damaged(error, number) from None
        if entry is None:
            return outcome, None, b""
        return outcome, entry[0], entry[1]

    def newest(
        self, name: bytes, key_hash: i64, counters: ReadCounters, fill_cache: bool
    ) -> tuple[i64, i64, bytes | None]:
        """The first entry whose key is ``name`` but for its tag of eight bytes.

        Returns ``(outcome, tag, value)``, the value None without such an entry.  For a comparator
        whose coarse keys are the keys without their tags, and that orders them as bytes.  Filters
        are asked as by :meth:`get`; a policy that goes by whole keys gets one with a tag of zeros.

        Cost: that of :meth:`get`.
        """
        number = self.block_of(name)
        if number == len(self._index_keys):
            return RULED_OUT, 0, None
        if self._filters:
            key = name if key_hash >= 0 else name + _NO_TAG
            if not self._may_match(number, key, key_hash, counters):
                return RULED_OUT, 0, None
        outcome, block = self._find(number, counters, fill_cache)
        try:
            tag, value = block.newest(name)
        except CorruptionError as error:
            raise self.damaged(error, number) from None
        return outcome, tag, value

    def scan(
        self,
        start: bytes | None,
        counters: ReadCounters,
        fill_cache: bool = True,
        readahead: int = 0,
    ) -> Iterator[Entries]:
        """Entries at or after ``start`` in order, a block (or the rest of one) at a time.

        With ``readahead`` > 0, about that many bytes of neighbouring blocks are read at once, past
        the cache.
        """
        number = 0
        if start is not None:
            number = self.find_block(start)
            if number == len(self._index_keys):
                return
            yield self._block_from(number, start, counters, fill_cache)
            number += 1
        if readahead > 0:
            for at, block in self._blocks_ahead(number, counters, readahead):
                yield self._decode(block, at)
            return
        while number < len(self._index_keys):
            yield self._entries(number, counters, fill_cache)
            number += 1

    def rows(
        self, tail: i64, counters: ReadCounters, readahead: int, enough: int
    ) -> Iterator[list[Row]]:
        """All entries in order, as rows whose keys' tails are ``tail`` bytes, past the cache.

        Each list has those of some whole blocks: of ``enough`` bytes about, and one at least.
        """
        rows: list[Row] = []
        size: i64 = 0
        for number, block in self._blocks_ahead(0, counters, readahead):
            try:
                rows += block.rows(tail)
            except CorruptionError as error:
                raise self.damaged(error, number) from None
            size += len(block)
            if size >= enough:
                yield rows
                rows = []
                size = 0
        if rows:
            yield rows

    def scan_back(
        self, before: bytes | None, counters: ReadCounters, fill_cache: bool = True
    ) -> Iterator[Entries]:
        """Entries before ``before``, the last block first; each block in rising order."""
        number = len(self._index_keys) - 1
        if before is not None:
            boundary = self.find_block(before)
            if boundary <= number:
                keys, values = self._entries(boundary, counters, fill_cache)
                cut = self._position(keys, before)
                if cut > 0:
                    yield keys[:cut], values[:cut]
                number = boundary - 1
        while number >= 0:
            yield self._entries(number, counters, fill_cache)
            number -= 1

    def find_block(self, key: bytes, order: Any = None) -> i64:
        """Number of the first block whose index key is >= ``key``; of none, one past the last."""
        if order is None:
            order = self._coarse(key)
        index = self._index_order
        at = self._index_ends.first_at_or_after(order)
        while (
            at < len(index)
            and not order < index[at]
            and self._compare(self._index_keys[at], key) < 0
        ):
            at += 1
        return at

    def block_of(self, name: bytes) -> i64:
        """Number of the first block that may hold a key that is ``name`` but for its tag, or a key
        after it; of none, one past the last.  For comparators as in :meth:`newest`."""
        return self._index_ends.first_at_or_after(name)

    def index_key(self, number: int) -> bytes:
        """A key at or after the last one of a data block, and before the first one of the next."""
        return self._index_keys[number]

    def span(self, number: i64, most: i64, back: bool, counters: ReadCounters) -> Readahead | None:
        """Data block ``number`` and neighbours of it, read at once, as far as they are not cached:
        up to ``most`` blocks and 64 KiB in all, behind it or, with ``back``, before it.

        None if that is one block, or cannot be read.
        """
        if most < 2 or not self._is_missing(number):
            return None
        first = number
        stop = number + 1
        while stop - first < most:
            low = first - 1 if back else first
            high = stop if back else stop + 1
            if (
                low < 0
                or high > self.num_blocks
                or not self._is_missing(low if back else stop)
                or not self._adjoins(first if back else stop)
                or self._end(high - 1) - self._offset(low) > _MOST_AHEAD
            ):
                break
            first = low
            stop = high
        if stop - first < 2:
            return None
        try:
            return Readahead(self, self._read_span(first, stop, counters), first, stop)
        except OSError:
            return None  # whether it is this block that cannot be read, a read of its own tells

    def block(
        self, number: i64, counters: ReadCounters, span: Readahead | None = None
    ) -> tuple[i64, Block]:
        """A data block: out of a span, if that has it, else from the cache or from the file.

        Before it :data:`FROM_CACHE` or :data:`FROM_FILE`; :meth:`keep` puts it into the cache.
        """
        if span is None or not span.has(self, number):
            return self._find(number, counters, False)
        return FROM_FILE, self._block_in(span.stored, self._offset(span.first), number)

    def keep(self, number: i64, block: Block) -> None:
        """Put a data block into the cache, if there is one and it does not hold the block."""
        cache = self._cache
        if cache is not None:
            held = self._cached[number]
            if held is None:
                self._cached[number] = cache.add(block, len(block))
            else:
                cache.refill(held, block, len(block))

    def forget_blocks(self) -> None:
        """Let the cache have the room of the table's blocks: nobody will ask for them."""
        if self._cache is not None:
            self._cache.forget([held for held in self._cached if held is not None])

    def damaged(self, error: CorruptionError, number: int) -> CorruptionError:
        """What damage of a data block is to be told as: with the file, and the block's offset."""
        return CorruptionError(error.reason, self.path, self._offset(number))

    def approximate_offset(self, key: bytes) -> int:
        """Where in the file the data of ``key`` would begin, in bytes; no data block is read."""
        number = self.find_block(key)
        if number == len(self._index_keys):
            return self._metaindex_offset
        return self._offset(number)

    def may_contain(self, key: bytes, key_hash: i64, counters: ReadCounters) -> bool:
        """False if the index or a filter rules ``key`` out; no data block is read."""
        number = self.find_block(key)
        if number == len(self._index_keys):
            return False
        return not self._filters or self._may_match(number, key, key_hash, counters)

    def look(self, key: bytes, key_hash: i64) -> TableLook:
        """Everything that a lookup of ``key`` meets here, without a trace: nothing is counted, and
        nothing is put into the cache.  The block is read even where a filter says no."""
        number = self.find_block(key)
        if number == len(self._index_keys):
            return TableLook(None, [], None)
        handle = self._handle(number)
        filters: list[FilterLook] = []
        for reader in self._filters:
            data = reader.filter_for(handle.offset)
            if data is not None:
                may_match = reader.may_match(handle.offset, key, key_hash)
                filters.append(FilterLook(reader.layout, data, may_match))
                if not may_match:
                    break
        outcome, block = self._find(number, ReadCounters(), fill_cache=False)
        compression = self._file.read(handle.offset + handle.size, 1)
        try:
            entries = block.entries()
        except CorruptionError as error:
            raise self.damaged(error, number) from None
        look = BlockLook(
            offset=handle.offset,
            stored_size=handle.size + BLOCK_TRAILER_SIZE,
            cached=outcome == FROM_CACHE,
            compression=compression[0] if compression else 0,
            plain_size=len(block),
            entries=entries,
        )
        return TableLook(self._index_keys[number], filters, look)

    def filters_for(self, key: bytes) -> list[bytes]:
        """The filter bytes that a lookup of ``key`` would ask, in that order (for experiments)."""
        number = self.find_block(key)
        if number == len(self._index_keys):
            return []
        offset = self._offset(number)
        found = [reader.filter_for(offset) for reader in self._filters]
        return [data for data in found if data is not None]

    def begins_with(self, key: bytes) -> bool:
        """False if the first key is another one: the file is not the table that it was taken for.

        True if its block cannot be read: whoever needs what is in it will be told.  One read.
        """
        if not self._index_keys:
            return False
        try:
            block = Block(self._read_raw(self._handle(0)), self._max_block_bytes)
            return block.first_key() == key
        except (CorruptionError, UnsupportedCompressionError):
            return True

    def check_metadata(self) -> None:
        """Read footer, index and filters again: what is held of them hides damage since then."""
        Table(self._options, self._file)

    def check(self) -> tuple[bytes, bytes]:
        """Read every block and assert the invariants; first and last key.  O(size of the file).

        Keys rise strictly, each index key lies at or after the last key of its block and before the
        first key of the next, restart points are entries of their block, and filters admit every
        key.  Raises :class:`CorruptionError`.
        """
        counters = ReadCounters()
        first = b""
        last: bytes | None = None
        for number in range(len(self._index_keys)):
            # Past the cache: it is the file that is checked.
            block = self._read(number, counters)
            keys, _ = self._decode(block, number)
            try:
                block.check()
            except CorruptionError as error:
                raise self.damaged(error, number) from None
            offset = self._offset(number)
            if not keys:
                raise CorruptionError("an empty data block", self.path, offset)
            if number > 0 and self._compare(keys[0], self._index_keys[number - 1]) <= 0:
                raise CorruptionError("a block starts before its index key", self.path, offset)
            for key in keys:
                if last is not None and self._compare(last, key) >= 0:
                    raise CorruptionError("keys out of order", self.path, offset)
                last = key
            if number == 0:
                first = keys[0]
            if last is not None and self._compare(last, self._index_keys[number]) > 0:
                raise CorruptionError("a block runs past its index key", self.path, offset)
            if count_denied(self._filters, offset, keys) > 0:
                raise CorruptionError("a filter denies a key of its block", self.path, offset)
        return first, last or b""

    # Opening

    def _read_footer(self) -> Footer:
        file = self._file
        start = file.size - FOOTER_SIZE
        if start < 0:
            raise CorruptionError(f"a table of {file.size} bytes has no footer", file.path, 0)
        data = file.read(start, FOOTER_SIZE)
        self._count_metadata(len(data))
        try:
            footer = Footer.decode(data)
        except CorruptionError as error:
            raise error.located(file.path, start) from None
        # The metaindex may never be read, while approximate_offset tells its place all the same.
        end = footer.metaindex.offset + footer.metaindex.size + BLOCK_TRAILER_SIZE
        if end > start:
            raise CorruptionError(f"{footer.metaindex} lies beyond the file", file.path, start)
        return footer

    def _read_index(self, handle: BlockHandle) -> None:
        keys, values = self._read_metadata(handle)
        limit = self._file.size - FOOTER_SIZE
        places = vec[i64](capacity=_PLACE_SIZE * len(values))
        for value in values:
            try:
                block, _ = BlockHandle.decode(value)
            except CorruptionError as error:
                raise CorruptionError(error.reason, self.path, handle.offset) from None
            if block.offset + block.size + BLOCK_TRAILER_SIZE > limit:
                raise CorruptionError(f"{block} lies beyond the file", self.path, handle.offset)
            places = append(append(places, block.offset), block.size)
        self._index_keys = keys
        coarse = self._coarse_key
        self._index_order: list[Any] = (
            list(keys) if coarse is None else [coarse(key) for key in keys]
        )
        self._index_ends = SortedKeys(self._index_order)
        self._places = places
        """Of each data block, side by side: offset and size."""
        self._cached: list[CacheEntry | None] = [None] * len(keys)
        """By number of a data block: where the block cache keeps it, or kept it."""

    def _read_filters(self, handle: BlockHandle, options: Options) -> None:
        policy = options.filter_policy
        assert policy is not None
        keys, values = self._read_metadata(handle)
        metaindex = dict(zip(keys, values, strict=True))
        name = policy.name.encode()
        # The whole-table filter first, where there are both: it is the smaller step for a no.
        for prefix in (TABLE_FILTER_PREFIX, BLOCK_FILTER_PREFIX):
            value = metaindex.get(prefix + name)
            if value is None:
                continue
            try:
                where, _ = BlockHandle.decode(value)
            except CorruptionError as error:
                raise CorruptionError(error.reason, self.path, handle.offset) from None
            contents = self._read_raw(where)
            try:
                if prefix == BLOCK_FILTER_PREFIX:
                    self._filters.append(FilterBlockReader(policy, contents))
                else:
                    self._filters.append(TableFilterReader(policy, contents))
            except CorruptionError as error:
                raise CorruptionError(error.reason, self.path, where.offset) from None
        only = self._filters[0] if len(self._filters) == 1 else None
        if isinstance(only, FilterBlockReader) and only.is_bloom:
            self._place_filters(only)

    def _place_filters(self, reader: FilterBlockReader) -> None:
        """Note where each block's filter is, so that a lookup need not go through its offset."""
        places = vec[i64](capacity=self.num_blocks)
        number: i64 = 0
        while number < self.num_blocks:
            start, stop = reader.place_for(self._offset(number))
            places = append(places, start << _FILTER_BITS | stop - start)
            number += 1
        self._bloom_places = places
        self._blooms = reader.contents

    def _read_metadata(self, handle: BlockHandle) -> Entries:
        contents = self._read_raw(handle)
        try:
            return Block(contents, self._max_block_bytes).entries()
        except CorruptionError as error:
            raise CorruptionError(error.reason, self.path, handle.offset) from None

    def _read_raw(self, handle: BlockHandle) -> bytes:
        contents = read_block(self._file, handle, self._max_block_bytes)
        self._count_metadata(handle.size + BLOCK_TRAILER_SIZE)
        return contents

    def _count_metadata(self, size: int) -> None:
        self.metadata_reads += 1
        self.metadata_bytes += size

    # Searching

    def _coarse(self, key: bytes) -> Any:
        coarse = self._coarse_key
        return key if coarse is None else coarse(key)

    def _position(self, keys: list[bytes], key: bytes) -> int:
        """How many of these sorted keys are below ``key``."""
        coarse = self._coarse_key
        if coarse is None:
            return bisect_left(keys, key)
        order = coarse(key)
        at = bisect_left(keys, order, key=coarse)
        while at < len(keys) and self._compare(keys[at], key) < 0:
            at += 1
        return at

    def _may_match(self, number: i64, key: bytes, key_hash: i64, counters: ReadCounters) -> bool:
        blooms = self._blooms
        if blooms is not None and key_hash >= 0:
            counters.filters_asked += 1
            place = self._bloom_places[number]
            start = place >> _FILTER_BITS
            if place < 0 or bloom_may_match(
                key_hash, blooms, start, start + (place & _FILTER_MASK)
            ):
                return True
            counters.filter_negatives += 1
            return False
        offset = self._offset(number)
        for reader in self._filters:
            counters.filters_asked += 1
            if not reader.may_match(offset, key, key_hash):
                counters.filter_negatives += 1
                return False
        return True

    # Data blocks

    def _offset(self, number: i64) -> i64:
        """Where data block ``number`` begins."""
        return self._places[_PLACE_SIZE * number]

    def _end(self, number: i64) -> i64:
        """Where data block ``number`` ends, with its trailer."""
        places = self._places
        at = _PLACE_SIZE * number
        return places[at] + places[at + 1] + BLOCK_TRAILER_SIZE

    def _adjoins(self, number: i64) -> bool:
        """Whether block ``number`` begins where the one before it ends.

        Blocks need not adjoin, though every writer known lays them so.
        """
        return self._offset(number) == self._end(number - 1)

    def _handle(self, number: i64) -> BlockHandle:
        places = self._places
        return BlockHandle(places[_PLACE_SIZE * number], places[_PLACE_SIZE * number + 1])

    def _is_missing(self, number: i64) -> bool:
        """Whether the block cache does not hold block ``number``."""
        held = self._cached[number]
        return held is None or held.value is None

    def _find(self, number: i64, counters: ReadCounters, fill_cache: bool) -> tuple[i64, Block]:
        """Data block ``number``, from the cache or from the file."""
        held = self._cached[number]
        cached: Block | None = None if held is None else held.take()
        if cached is not None:
            counters.block_cache_hits += 1
            return FROM_CACHE, cached
        block = self._read(number, counters)
        if fill_cache:
            self.keep(number, block)
        return FROM_FILE, block

    def _read(self, number: i64, counters: ReadCounters) -> Block:
        """Data block ``number``, from the file."""
        handle = self._handle(number)
        contents = read_block(self._file, handle, self._max_block_bytes)
        counters.blocks_read += 1
        counters.bytes_read += handle.size + BLOCK_TRAILER_SIZE
        return self._block_of(contents, number)

    def _entries(self, number: int, counters: ReadCounters, fill_cache: bool) -> Entries:
        _, block = self._find(number, counters, fill_cache)
        return self._decode(block, number)

    def _decode(self, block: Block, number: int) -> Entries:
        try:
            return block.entries()
        except CorruptionError as error:
            raise self.damaged(error, number) from None

    def _block_from(
        self, number: int, start: bytes, counters: ReadCounters, fill_cache: bool
    ) -> Entries:
        """The entries of a block at or after ``start``."""
        _, block = self._find(number, counters, fill_cache)
        try:
            keys, values = block.entries(start, self._compare)
        except CorruptionError as error:
            raise self.damaged(error, number) from None
        cut = self._position(keys, start)
        return (keys[cut:], values[cut:]) if cut > 0 else (keys, values)

    def _blocks_ahead(
        self, number: int, counters: ReadCounters, readahead: int
    ) -> Iterator[tuple[int, Block]]:
        """All blocks from ``number`` on with their numbers, several to a read."""
        count = self.num_blocks
        while number < count:
            first = self._offset(number)
            stop = number + 1
            while stop < count and self._end(stop - 1) - first < readahead and self._adjoins(stop):
                stop += 1
            stored = self._read_span(number, stop, counters)
            for at in range(number, stop):
                yield at, self._block_in(stored, first, at)
            number = stop

    def _read_span(self, first: i64, stop: i64, counters: ReadCounters) -> bytes:
        """The data blocks from ``first`` to ``stop``, which adjoin, as they are stored."""
        start = self._offset(first)
        size = self._end(stop - 1) - start
        stored = read_stored(self._file, start, size)
        counters.blocks_read += stop - first
        counters.bytes_read += size
        return stored

    def _block_in(self, stored: bytes, begin: i64, number: i64) -> Block:
        """Data block ``number``, in what is stored from the offset ``begin`` on."""
        offset = self._offset(number)
        contents = unpack_block(
            stored,
            self.path,
            offset,
            self._max_block_bytes,
            offset - begin,
            self._end(number) - begin,
        )
        return self._block_of(contents, number)

    def _block_of(self, contents: bytes, number: i64) -> Block:
        """Data block ``number``, unpacked."""
        try:
            return Block(contents, self._max_block_bytes)
        except CorruptionError as error:
            raise self.damaged(error, number) from None
