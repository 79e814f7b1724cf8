"""Filters inside a table: one per 2 KiB of file offset (LevelDB's), one for the whole table, and
one of the keys' prefixes.

The filter block (source: LevelDB, ``table/filter_block.h``, ``doc/table_format.md``)::

    filter 0 ... filter n-1          each made from the keys of the data blocks that start in
                                     [i * 2 KiB, (i + 1) * 2 KiB) of the file
    n fixed32                        where each filter starts
    fixed32                          where this array starts
    one byte                         11: the base is 2^11 bytes

The whole-table filter is the policy's bytes alone, and so is the prefix filter.  They have
separate metaindex entries, which LevelDB ignores.  A table builder writes filters; an open
table asks them, in any thread without a lock.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i64

from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.filter.bloom64 import Bloom64Policy, build_bloom64
from lsmkv.engine.filter.fuse import BinaryFusePolicy, build_fuse, filter64_may_match, is_filter64
from lsmkv.engine.filter.hash64 import append_hashes, xxh3_hash
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.filter.known import SAMPLE, mean_rate
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.filter.prefix import PrefixExtractor, append_prefix_hashes, prefix_of
from lsmkv.engine.filter.probe import probe_for
from lsmkv.engine.util.arguments import as_bytes
from lsmkv.engine.util.coding import decode_fixed32

FILTER_BASE_LG: Final = 11
_MAX_SHIFT: Final = 63  # shifted by this many bits or more, every offset is 0

_NOT_COMPUTED: Final = -2.0
_NOT_KNOWN: Final = -1.0

BLOCK_FILTER_PREFIX = b"filter."
TABLE_FILTER_PREFIX = b"fullfilter."
"""Metaindex keys are these followed by the policy's name."""
PREFIX_FILTER_PREFIX = b"prefixfilter."


class FilterBlockBuilder:
    """Builds the filter block of a table.

    Call order: ``(start_block add_keys*)* finish``.
    """

    def __init__(self, policy: FilterPolicy) -> None:
        self._policy = policy
        self._keys: list[bytes] = []
        self._result = bytearray()
        self._offsets: list[int] = []
        self._finished = False

    def start_block(self, block_offset: int) -> None:
        """Begin a data block at this offset, to which the next keys belong.  Offsets never
        decrease."""
        if self._finished:
            raise ValueError("start_block after finish")
        index = block_offset >> FILTER_BASE_LG
        if index < len(self._offsets):
            raise ValueError(f"block offset {block_offset} lies before a block already started")
        while index > len(self._offsets):
            self._generate_filter()

    def add_keys(self, keys: list[bytes]) -> None:
        """Add keys of the current block; a key added twice counts twice, as in LevelDB."""
        self._keys += keys

    def finish(self) -> bytes:
        """The filter block's bytes."""
        if self._finished:
            raise ValueError("finish twice")
        if self._keys:
            self._generate_filter()
        self._finished = True
        array_offset = len(self._result)
        for offset in self._offsets:
            self._result += offset.to_bytes(4, "little")
        self._result += array_offset.to_bytes(4, "little")
        self._result.append(FILTER_BASE_LG)
        return bytes(self._result)

    def _generate_filter(self) -> None:
        self._offsets.append(len(self._result))
        if self._keys:
            self._result += as_bytes(self._policy.create_filter(self._keys), "filter")
            self._keys = []


class FilterReader:
    """The filters of one table made by one policy; base class of the two layouts."""

    layout = ""
    """``block`` or ``table``, as in ``filter_layout``."""

    def __init__(self, policy: FilterPolicy, contents: bytes) -> None:
        self.policy = policy
        """The policy that made them."""
        self.contents = contents
        """The bytes of all of them, as the table stores them."""
        self._probe = probe_for(policy)

    def may_match(self, block_offset: i64, hashes: KeyHashes) -> bool:
        """False only if the data block at ``block_offset`` does not hold the user key."""
        return self._probe.may_match(hashes, self.contents, 0, len(self.contents))

    def filter_for(self, block_offset: i64) -> bytes | None:
        """The policy's bytes for the block; None if it has no filter."""
        start, stop = self.place_for(block_offset)
        return None if start < 0 else self.contents[start:stop]

    def place_for(self, block_offset: i64) -> tuple[i64, i64]:
        """Return start and end of the block's filter in ``contents``; -1 and -1 if there is none.

        A block without a filter may hold any key.
        """
        return 0, len(self.contents)


class FilterBlockReader(FilterReader):
    """Per-block filters, found by the block's start offset."""

    layout = "block"

    def __init__(self, policy: FilterPolicy, contents: bytes) -> None:
        """Checks the offset array here, once for all lookups."""
        super().__init__(policy, contents)
        size = len(contents)
        if size < 5:
            raise CorruptionError("filter block cut short", None, 0)
        base_lg = contents[size - 1]
        array = decode_fixed32(contents, size - 5)
        if array > size - 5 or (size - 5 - array) % 4 != 0:
            raise CorruptionError("filter offsets beyond the filter block", None, size - 5)
        starts = vec[i64](capacity=(size - array) // 4)
        for at in range(array, size - 4, 4):
            starts = append(starts, decode_fixed32(contents, at))
            if len(starts) > 1 and starts[-2] > starts[-1]:
                raise CorruptionError("filter offsets out of order", None, array)
        self._starts = starts  # where each filter starts, and where the last one ends
        self._count: i64 = len(starts) - 1
        self._base_lg: i64 = min(base_lg, _MAX_SHIFT)

    def may_match(self, block_offset: i64, hashes: KeyHashes) -> bool:
        """As in the base class."""
        index = block_offset >> self._base_lg
        if index >= self._count:
            return True
        starts = self._starts
        return self._probe.may_match(hashes, self.contents, starts[index], starts[index + 1])

    def place_for(self, block_offset: i64) -> tuple[i64, i64]:
        """As in the base class."""
        index = block_offset >> self._base_lg
        if index >= self._count:
            return -1, -1
        return self._starts[index], self._starts[index + 1]


class TableFilters:
    """The filters of one table, for its data blocks by their numbers."""

    def __init__(self, readers: list[FilterReader], offsets: vec[i64]) -> None:
        """``readers`` are asked in their order; they are at most two, one for each layout, and of
        one policy.  ``offsets`` are those of the data blocks."""
        self.readers = readers
        self._first = readers[0] if readers else None
        self._second = readers[1] if len(readers) > 1 else None
        self.need_no_block = (
            len(readers) == 1
            and readers[0].layout == "table"
            and is_filter64(readers[0].policy)
            and len(offsets) > 0
        )
        """True if the only filter is one of 64-bit hashes for the whole table.  It gives the same
        answer for every block, and is asked before the index: it costs less than the index does."""
        self._offsets = offsets
        self._expected = _NOT_COMPUTED

    def may_match(self, number: i64, hashes: KeyHashes, counters: ReadCounters) -> bool:
        """False only if data block ``number`` does not hold the user key.

        Every filter asked is counted, and so is every "no".  Cost: k bits of each filter, until one
        says no.
        """
        reader = self._first
        while reader is not None:
            counters.filters_asked += 1
            if not reader.may_match(self._offsets[number], hashes):
                counters.filter_negatives += 1
                return False
            reader = self._second if reader is self._first else None
        return True

    # Beyond the tour: what the filters promise

    def expected_rate(self) -> float | None:
        """The false-positive rate that the filters' bits promise; None if it is not known.

        The mean of a sample of filters.  Several readers count as if they erred independently.
        Computed once: O(bits of the sample).
        """
        if self._expected == _NOT_COMPUTED:
            self._expected = self._compute_rate()
        return None if self._expected < 0.0 else self._expected

    def _compute_rate(self) -> float:
        rate = 1.0
        known = False
        for reader in self.readers:
            mean = mean_rate(reader.policy.name, self._sample(reader))
            if mean is not None:
                known = True
                rate *= mean
        return rate if known else _NOT_KNOWN

    def _sample(self, reader: FilterReader) -> list[bytes]:
        """Filters of different data blocks."""
        if isinstance(reader, TableFilterReader):
            return [reader.contents]
        found: list[bytes] = []
        every = len(self._offsets) // SAMPLE + 1
        for number in range(0, len(self._offsets), every):
            data = reader.filter_for(self._offsets[number])
            if data:
                found.append(data)
        return found


# Filters of a whole table, of its keys or of their prefixes


class TableFilterBuilder:
    """Builds the filter of a whole table.

    Call order: ``add_keys* finish``.  One of lsmkv's policies with 64-bit hashes gets hashes, which
    take 8 bytes a key until the table is finished; any other policy gets the keys.
    """

    def __init__(self, policy: FilterPolicy) -> None:
        self._policy = policy
        self._takes_hashes = is_filter64(policy)
        self._hashes = vec[i64]()
        self._last: bytes | None = None
        self._keys: list[bytes] = []

    def add_keys(self, keys: list[bytes]) -> None:
        """Add keys of the table."""
        if self._takes_hashes:
            self._hashes = append_hashes(self._hashes, keys, self._last)
            self._last = keys[-1] if keys else self._last
        else:
            self._keys += keys

    def finish(self) -> bytes:
        """The filter."""
        if self._takes_hashes:
            return build_filter64(self._policy, self._hashes)
        return as_bytes(self._policy.create_filter(self._keys), "filter")


class TableFilterReader(FilterReader):
    """One filter for every block of the table."""

    layout = "table"


def prefix_filter_key(policy: FilterPolicy, extractor: PrefixExtractor) -> bytes:
    """The metaindex key of a prefix filter: it names the policy and the extractor."""
    return PREFIX_FILTER_PREFIX + f"{policy.name}.{extractor.name}".encode()


def prefix_policy(policy: FilterPolicy | None) -> FilterPolicy:
    """The policy of prefix filters in a store whose other filters use ``policy``.

    Prefixes often differ in few bits, for which LevelDB's hash is unsuitable; and LevelDB reads no
    prefix filters.
    """
    return policy if policy is not None and is_filter64(policy) else Bloom64Policy()


class PrefixFilterBuilder:
    """Builds a table's prefix filter.

    Call order: ``add_keys* finish``.  Deletions count as keys.
    """

    def __init__(self, policy: FilterPolicy | None, extractor: PrefixExtractor) -> None:
        """``policy`` is that of the store's other filters."""
        self.policy = prefix_policy(policy)
        self._extractor = extractor
        self._hashes = vec[i64]()
        self._last: bytes | None = None

    def add_keys(self, keys: list[bytes]) -> None:
        """Add keys of the table."""
        self._hashes, self._last = append_prefix_hashes(
            self._hashes, keys, self._extractor, self._last
        )

    def finish(self) -> bytes:
        """The filter."""
        return build_filter64(self.policy, self._hashes)


class PrefixFilterReader:
    """The prefix filter of one table."""

    def __init__(self, policy: FilterPolicy, extractor: PrefixExtractor, contents: bytes) -> None:
        self.policy = policy
        self.extractor = extractor
        self.contents = contents

    def may_match(self, prefix_hash: i64) -> bool:
        """False only if no key of the table has the prefix of this hash."""
        return filter64_may_match(prefix_hash, self.contents, 0, len(self.contents))

    def count_denied(self, user_keys: list[bytes]) -> int:
        """Return the number of keys with prefixes that the filter denies; scans would miss them."""
        denied = 0
        for user_key in user_keys:
            prefix = prefix_of(self.extractor, user_key)
            if prefix is not None and not self.may_match(xxh3_hash(prefix)):
                denied += 1
        return denied


def build_filter64(policy: FilterPolicy, hashes: vec[i64]) -> bytes:
    """The filter that a policy with 64-bit hashes makes from these hashes."""
    if isinstance(policy, BinaryFusePolicy):
        return build_fuse(hashes, policy.bloom_bits_per_key)
    assert isinstance(policy, Bloom64Policy)
    return build_bloom64(hashes, policy.bits_per_key)


def count_denied(readers: list[FilterReader], block_offset: int, user_keys: list[bytes]) -> int:
    """Return the number of keys of a block that its filters deny; if not 0, lookups miss keys.

    O(keys): a hash and some bits of each filter for every key.
    """
    denied = 0
    for reader in readers:
        start, stop = reader.place_for(block_offset)
        if start >= 0:  # else the block has no filter
            denied += reader._probe.count_denied(user_keys, reader.contents, start, stop)
    return denied
