"""Reads a table: :class:`Table` (source: LevelDB, ``table/table.cc``).

A Get in a table has four steps: the index names the block where the key would be; the filter is
asked; only then that block comes from the block cache or the file; and the block is searched.  A
filter of 64-bit hashes for the whole table is asked even before the index.  Scans read the blocks
one by one, or several with one read.  Any thread may read a table without a lock.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

from librt.vecs import vec
from mypy_extensions import i64

from lsmkv.engine.counters import BLOCK_READS, ReadCounters
from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.format.keys import MAX_SEQUENCE, Entry, InternalKeyComparator
from lsmkv.engine.options import Options
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.filter_block import TableFilters
from lsmkv.engine.table.format import read_stored, unpack_block
from lsmkv.engine.table.metadata import TableMetadata
from lsmkv.engine.util.cache_entry import CacheEntry

RULED_OUT: Final = 0
"""A lookup's outcome: the index or a filter ruled the key out; no data block was needed."""
FROM_CACHE: Final = 1
"""A lookup's outcome: one data block was searched, found in the block cache."""
FROM_FILE: Final = 2
"""A lookup's outcome: one data block was read from the file and searched."""
FROM_PACKED: Final = 3
"""A lookup's outcome: one data block was searched, found in the block cache, but compressed."""
ANY_SIZE: Final = 1 << 62  # room in the block cache for a block of any size
_MOST_AHEAD: Final = 1 << 16  # bytes of several blocks that a scan reads at once
_USES_BEFORE_UNPACKING: Final = 8  # of a block that the cache keeps compressed
_PLACE_BITS: Final = 32  # a block's place is the table's number << 32 | block number

_tables = itertools.count(1)


class Table:
    """An open table of internal keys.  Safe for many threads; immutable, except that its file may
    be closed.

    The index is held decoded (one key and one handle for each data block), and so are the filters.
    Blocks in the cache are reachable only through their table, so a file number that is used twice
    cannot return blocks of the other file.
    """

    def __init__(self, options: Options, file: RandomAccessFile) -> None:
        """Read footer, index, metaindex and filters.  The table owns the file.

        Raises :class:`CorruptionError` with file and offset.
        """
        self.file = file
        self._raw_read = file.raw_read
        self._mapping = file.mapping
        self.options = options
        self.comparator = InternalKeyComparator(options.comparator)
        self._order = self.comparator.order
        self._cache = options.block_cache
        self._max_block_bytes = options.max_block_bytes
        metadata = TableMetadata(options, file, self._order)
        self.metadata_reads = metadata.reads
        self.metadata_bytes = metadata.bytes_read
        self.identity_check = ReadCounters()
        """Counts what :meth:`begins_with` reads, for which no lookup has asked."""
        self.index = metadata.index
        self.filters = TableFilters(metadata.filters, self.index.offsets)
        self.has_filter = bool(metadata.filters)
        """True if lookups ask a filter before they read a data block."""
        self.prefix_filter = metadata.prefix_filter
        """The filter that scans of one prefix ask."""
        self._cached: list[CacheEntry | None] = [None] * len(self.index)
        """The entry of each data block in the block cache, by block number, or None."""
        self._missed = vec[i64]([0] * len(self.index))
        """For each data block, the cache's count of misses when it was read last, or 0."""
        self._place: i64 = next(_tables) << _PLACE_BITS
        self._data_end = metadata.data_end
        self.memory: i64 = self.index.memory + metadata.filter_bytes
        """About how many bytes the index and the filters take in memory."""

    def get(
        self,
        user_key: bytes,
        sort_key: Any,
        sequence: i64,
        hashes: KeyHashes,
        counters: ReadCounters,
        fill_cache: bool,
    ) -> tuple[i64, i64, bytes | None]:
        """The newest version of a user key at or before ``sequence``.

        Returns ``(outcome, tag, value)``; the value is None where the table has no such version.  A
        deletion has an empty value, and the kind in its tag.  ``sort_key`` is the key's sort key,
        ``hashes`` are the key's.  Raises the errors of reading a file, and
        :class:`CorruptionError`.

        Cost: a binary search of the index, k bits of a filter, at most one block.
        """
        filters = self.filters
        filter_first = filters.need_no_block
        if filter_first and not filters.may_match(0, hashes, counters):
            return RULED_OUT, 0, None
        number = self.index.block_for(sort_key, sequence)
        if number == len(self._cached):
            return RULED_OUT, 0, None
        # The filter comes before any data block: if it denies the key, the file is not read.
        if not filter_first and not filters.may_match(number, hashes, counters):
            return RULED_OUT, 0, None
        outcome, block = self.load_block(number, counters, fill_cache)
        try:
            tag, value = block.get(user_key, sequence, self._order)
        except CorruptionError as error:
            raise self.damaged(error, number) from None
        return outcome, tag, value

    def load_block(
        self, number: i64, counters: ReadCounters, fill_cache: bool
    ) -> tuple[i64, Block]:
        """A data block, and before it where it comes from, as a lookup's outcome."""
        return self._load(number, counters, ANY_SIZE if fill_cache else 0)

    def _load(self, number: i64, counters: ReadCounters, room: i64) -> tuple[i64, Block]:
        """The same.  A block that is read goes into the cache if it has ``room`` bytes at most."""
        outcome, cached = self._block_in_cache(number)
        if cached is not None:
            counters.block_cache_hits += 1
            return outcome, cached
        with BLOCK_READS:
            stored = self._read_stored(number, number + 1, counters)
            return FROM_FILE, self._admit(stored, self.index.offsets[number], number, room)

    # Beyond the tour: the bytes of a block, and everything but Get

    def _read_stored(self, first: i64, stop: i64, counters: ReadCounters) -> bytes:
        """The data blocks from ``first`` to ``stop``, which adjoin, as they are stored."""
        start = self.index.offsets[first]
        size = self.index.end(stop - 1) - start
        mapping = self._mapping
        try:
            if mapping is None:
                stored = self._raw_read(size, start)
            else:
                stored = mapping[start : start + size]
        except OSError as error:
            error.filename = self.path
            raise
        except MemoryError:
            stored = b""  # read_stored finds the cause
        if len(stored) < size:
            stored = read_stored(self.file, start, size)
        counters.blocks_read += stop - first
        counters.bytes_read += size
        return stored

    def _block_in(self, stored: bytes, begin: i64, number: i64, verified: bool = False) -> Block:
        """A data block in ``stored``, the bytes of the file from the offset ``begin`` on."""
        sealed = stored[self.index.offsets[number] - begin : self.index.end(number) - begin]
        return self._unpack(sealed, number, verified)

    def _unpack(self, sealed: bytes, number: i64, verified: bool) -> Block:
        """The data block that is stored in these bytes."""
        offset = self.index.offsets[number]
        most = self._max_block_bytes
        data, size = unpack_block(sealed, self.file, offset, most, verified)
        try:
            return Block(data, most, size)
        except CorruptionError as error:
            raise self.damaged(error, number) from None

    def read(self, number: i64, counters: ReadCounters) -> Block:
        """A data block, from the file."""
        stored = self._read_stored(number, number + 1, counters)
        return self._block_in(stored, self.index.offsets[number], number)

    def look_at_block(self, number: i64) -> tuple[bool, Block]:
        """Return True if the block cache has a data block, and the block.

        The cache does not learn of it: the block counts as used no more than before.
        """
        held = self._cached[number]
        value = None if held is None else held.value
        if value is None:
            return False, self.read(number, ReadCounters())
        if isinstance(value, Block):
            return True, value
        return True, self._unpack(value, number, True)

    def _admit(self, stored: bytes, begin: i64, number: i64, room: i64) -> Block:
        """A data block, as :meth:`_block_in` returns it, which goes into the cache if it has at
        most ``room`` bytes.  A mapped block's checksum is verified the first time alone."""
        verified = self._mapping is not None and self._missed[number] > 0
        block = self._block_in(stored, begin, number, verified)
        if len(block) <= room:
            self._fill_cache(block, stored, begin, number)
        return block

    def _fill_cache(self, block: Block, stored: bytes, begin: i64, number: i64) -> None:
        """Put a data block into the cache, if there is one.  A full cache takes it only if it was
        missed before, and then as it is in ``stored``, if that is smaller."""
        cache = self._cache
        if cache is None:
            self._missed[number] = 1
            return
        value: Any = block
        charge: i64 = len(block)
        packed = self.index.sizes[number]
        packs = packed < charge and cache.is_full(charge)
        admitted = cache.admits(packed if packs else charge, self._missed[number])
        self._missed[number] = cache.misses
        if not admitted:
            block.place = self._place | number
            cache.latest = block if charge <= cache.capacity else None
            return
        if packs:
            begin = self.index.offsets[number] - begin
            value = stored[begin : begin + packed]
            charge = packed
        held = self._cached[number]
        if held is None:
            self._cached[number] = cache.add(value, charge)
        else:
            cache.refill(held, value, charge)

    def _block_in_cache(self, number: i64) -> tuple[i64, Block | None]:
        """:data:`FROM_CACHE` or :data:`FROM_PACKED`, and the data block if the cache has it.

        One that it has compressed is kept decompressed from its eighth use on.
        """
        held = self._cached[number]
        value = None if held is None else held.take()
        if held is None or value is None:
            cache = self._cache
            latest: Any = None if cache is None else cache.latest
            if isinstance(latest, Block) and latest.place == self._place | number:
                return FROM_CACHE, latest
            return FROM_CACHE, None
        if isinstance(value, Block):
            return FROM_CACHE, value
        with BLOCK_READS:
            block = self._unpack(value, number, True)
        cache = self._cache
        if held.uses >= _USES_BEFORE_UNPACKING and cache is not None:
            cache.replace(held, block, len(block))
        return FROM_PACKED, block

    def may_contain(self, sort_key: Any, hashes: KeyHashes, counters: ReadCounters) -> bool:
        """False if the index or a filter rules a user key out; no data block is read.

        The arguments are those of :meth:`get`.
        """
        number = self.index.block_for(sort_key, MAX_SEQUENCE)
        return number < len(self._cached) and self.filters.may_match(number, hashes, counters)

    def entries(self, counters: ReadCounters, readahead: int, enough: int) -> Iterator[list[Entry]]:
        """All entries in order, in reads of about ``readahead`` bytes; the block cache is not used.

        Each list has the entries of whole blocks: about ``enough`` bytes, and one block at least.
        """
        found: list[Entry] = []
        size: i64 = 0
        for number, block in self._blocks_ahead(counters, readahead):
            try:
                found += block.tagged_entries()
            except CorruptionError as error:
                raise self.damaged(error, number) from None
            size += len(block)
            if size >= enough:
                yield found
                found = []
                size = 0
        if found:
            yield found

    def approximate_offset(self, user_key: bytes) -> int:
        """Return the offset where the data of ``user_key`` would begin; no data block is read."""
        number = self.index.block_for(self._order.of(user_key), MAX_SEQUENCE)
        return self._data_end if number == len(self._cached) else self.index.offsets[number]

    def begins_with(self, key: bytes, fill_cache: bool) -> bool:
        """False if the table has another first key, which means that the file is another table.

        True if its block cannot be read: the first read of the block raises that error.  One read,
        of a block that then goes into the cache, unless ``fill_cache`` is False.
        """
        if self.num_blocks == 0:
            return False
        begin = self.index.offsets[0]
        try:
            stored = self._read_stored(0, 1, self.identity_check)
            block = self._block_in(stored, begin, 0)
            if block.first_key() != key:
                return False
            if fill_cache:
                self._fill_cache(block, stored, begin, 0)
        except (CorruptionError, UnsupportedCompressionError):
            pass
        return True

    def forget_blocks(self) -> None:
        """Remove the table's blocks from the block cache: they will not be read again."""
        if self._cache is not None:
            self._cache.forget([held for held in self._cached if held is not None])

    def damaged(self, error: CorruptionError, number: int) -> CorruptionError:
        """The error for damage in a data block, with the file and the block's offset."""
        return CorruptionError(error.reason, self.path, self.index.offsets[number])

    def close(self) -> None:
        """Close the file."""
        self.file.close()
        self._mapping = None
        self._raw_read = self.file.raw_read  # which raises from now on

    @property
    def path(self) -> str:
        """The file's path, for messages."""
        return self.file.path

    @property
    def num_blocks(self) -> i64:
        """The number of data blocks."""
        return len(self._cached)

    # Fast paths: neighboring blocks with one read

    def find_ahead(
        self, number: i64, counters: ReadCounters, ahead: Readahead | None, room: i64 = 0
    ) -> tuple[i64, Block]:
        """:meth:`load_block` for a scan: from the readahead, if that has the block."""
        if ahead is None or not ahead.has(self, number):
            return self._load(number, counters, room)
        begin = self.index.offsets[ahead.first]
        return FROM_FILE, self._admit(ahead.stored, begin, number, room)

    def read_ahead(
        self, number: i64, most: i64, back: bool, counters: ReadCounters
    ) -> Readahead | None:
        """Data block ``number`` and neighbors of it, with one read, as far as they are not cached:
        up to ``most`` blocks and 64 KiB in all, after it or, with ``back``, before it.

        None if that would be one block alone, or cannot be read.
        """
        if most < 2 or not self._is_missing(number):
            return None
        index = self.index
        first = number
        stop = number + 1
        while stop - first < most:
            low = first - 1 if back else first
            high = stop if back else stop + 1
            if (
                low < 0
                or high > self.num_blocks
                or not self._is_missing(low if back else stop)
                or not index.adjoins(first if back else stop)
                or index.end(high - 1) - index.offsets[low] > _MOST_AHEAD
            ):
                break
            first = low
            stop = high
        if stop - first < 2:
            return None
        try:
            return Readahead(self, self._read_stored(first, stop, counters), first, stop)
        except OSError:
            return None  # a read of this block alone shows whether it is the one

    def _is_missing(self, number: i64) -> bool:
        """Return True if the block cache does not hold a block."""
        held = self._cached[number]
        return held is None or held.value is None

    def _blocks_ahead(self, counters: ReadCounters, readahead: int) -> Iterator[tuple[int, Block]]:
        """All blocks with their numbers, several to a read."""
        index = self.index
        count = self.num_blocks
        number: i64 = 0
        while number < count:
            first = index.offsets[number]
            stop = number + 1
            while stop < count and index.end(stop - 1) - first < readahead and index.adjoins(stop):
                stop += 1
            stored = self._read_stored(number, stop, counters)
            for at in range(number, stop):
                yield at, self._block_in(stored, first, at)
            number = stop


class Readahead:
    """Neighboring data blocks as they are stored, from ``first`` to ``stop``.

    A block is decompressed only when it is needed: the scan may end before, and a few bytes may
    decompress to many.
    """

    __slots__ = ("first", "stop", "stored", "table")

    def __init__(self, table: Table, stored: bytes, first: i64, stop: i64) -> None:
        self.table = table
        self.stored = stored
        self.first: i64 = first
        self.stop: i64 = stop

    def has(self, table: Table, number: i64) -> bool:
        """Return True if it has that block of that table."""
        return table is self.table and self.first <= number < self.stop
