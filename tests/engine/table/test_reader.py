"""lsmkv.engine.table.reader: answers against a sorted dict, reads counted at the file, and
damage.
"""

from __future__ import annotations

import errno
import tracemalloc
from collections.abc import Callable, Sequence

import pytest
from byte_files import BytesFile
from hooked import HookedEnv
from hostile_filters import hostile_filters
from hypothesis import given
from hypothesis import strategies as st
from orders import COMPARATORS, FOLDING
from plain import (
    ABSENT,
    BLOOM,
    BOUNDS,
    FEW,
    HALF,
    LAYOUTS,
    ORDERS,
    PLAIN,
    ROWS,
    SMALL,
    TAG,
    VALUE_TAG,
    OneAnswer,
    Row,
    Versions,
    assemble,
    build,
    build_table,
    entries_of,
    found,
    get,
    newest,
    opened,
    rows_of,
    sealed,
    with_tag,
    without_tag,
)

import lsmkv
from lsmkv import DB
from lsmkv.engine.counters import BLOCK_READS, ReadCounters
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.engine.filter.hash64 import xxh3_hash
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.filter.prefix import FixedPrefix
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import MAX_SEQUENCE, pack
from lsmkv.engine.options import FilterLayout, Options
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.block_iterator import ALL, BlockIterator
from lsmkv.engine.table.format import FOOTER_SIZE, BlockHandle, Footer, seal_block
from lsmkv.engine.table.inspection import check
from lsmkv.engine.table.reader import (
    ANY_SIZE,
    FROM_CACHE,
    FROM_FILE,
    FROM_PACKED,
    RULED_OUT,
    Readahead,
    Table,
)
from lsmkv.engine.util.block_cache import BlockCache
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.engine.util.compression import NO_COMPRESSION, SNAPPY, ZSTD
from lsmkv.errors import CorruptionError, UnsupportedCompressionError

ABSENT_FROM_BLOCK = (0, None)


def all_rows(
    table: Table, readahead: int = 0, counters: ReadCounters | None = None, enough: int = 0
) -> list[Row]:
    """Plain keys and values, past the cache."""
    used = ReadCounters() if counters is None else counters
    return [row for piece in table.entries(used, readahead, enough) for row in without_tag(piece)]


def rows_from(table: Table, start: bytes, counters: ReadCounters, fill_cache: bool) -> list[Row]:
    """Plain keys and values at ``start`` or after it, through the cache, as a scan reads them."""
    order = table.comparator.order
    rows: list[Row] = []
    first = table.index.block_for(order.of(start), MAX_SEQUENCE)
    for number in range(first, table.num_blocks):
        _, block = table.load_block(number, counters, fill_cache)
        try:
            if number == first:
                iterator = BlockIterator(block, order, MAX_SEQUENCE, start)
            else:
                iterator = BlockIterator(block, order, MAX_SEQUENCE)
            rows += iterator.next_entries(ALL)
        except CorruptionError as error:
            raise table.damaged(error, number) from None
    return rows


def ways_to_read(table: Table, key: bytes) -> list[Callable[[], object]]:
    """Each way to come upon the block where ``key`` would be."""
    counters = ReadCounters()
    return [
        lambda: get(table, key),
        lambda: get(table, key, sequence=5),
        lambda: all_rows(table),
        lambda: all_rows(table, 5000),
        lambda: rows_from(table, key, counters, True),
        lambda: check(table),
    ]


def everything(data: bytes, options: Options, probes: Sequence[bytes]) -> object:
    """All that a table can be asked; equal tables give equal answers."""
    table = Table(options, BytesFile(data))
    return (
        all_rows(table),
        all_rows(table, 1000),
        [get(table, key)[1:] for key in probes],
        [get(table, key, sequence=0)[1:] for key in probes],
        [rows_from(table, key, ReadCounters(), True) for key in probes],
        [
            table.prefix_filter is None or table.prefix_filter.may_match(xxh3_hash(key[:1]))
            for key in probes
        ],
    )


# Get


@pytest.mark.parametrize("layout", LAYOUTS)
def test_get_asks_the_filter_before_it_reads(layout: FilterLayout) -> None:
    options = SMALL._replace(filter_policy=BLOOM, filter_layout=layout)
    table, file = opened(build(ROWS, options), options)
    counters = ReadCounters()
    ruled_out = 0
    for key in ABSENT:
        file.reads.clear()
        negatives = counters.filter_negatives
        outcome, tag, value = get(table, key, counters)
        assert (tag, value) == (0, None)
        if outcome == RULED_OUT:
            assert file.reads == []
            assert counters.filter_negatives == negatives + 1
            ruled_out += 1
        else:
            assert outcome == FROM_FILE
            assert len(file.reads) == 1
            assert counters.filter_negatives == negatives
    assert ruled_out >= 0.96 * len(ABSENT)
    assert counters.blocks_read == len(ABSENT) - ruled_out
    for key, value in ROWS:
        assert get(table, key, counters) == found(value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_after_a_no_the_file_is_not_touched(layout: FilterLayout) -> None:
    policy = OneAnswer(False)
    options = SMALL._replace(
        filter_policy=policy, filter_layout=layout, block_cache=BlockCache(1 << 20)
    )
    table, file = opened(build(ROWS, options), options)
    counters = ReadCounters()
    for key in [*ABSENT, *(key for key, _ in ROWS)]:
        for sequence in (0, 1, MAX_SEQUENCE):
            assert get(table, key, counters, sequence=sequence) == (RULED_OUT, 0, None)
    assert file.reads == []
    assert counters.blocks_read == counters.bytes_read == counters.block_cache_hits == 0
    # Bounded below all versions, the index may know that there is no block.
    asked = len(policy.asked)
    assert 2 * (len(ABSENT) + len(ROWS)) < asked <= 3 * (len(ABSENT) + len(ROWS))
    assert counters.filters_asked == counters.filter_negatives == asked
    assert get(table, b"z", counters) == (RULED_OUT, 0, None)  # the index knew
    assert counters.filters_asked == asked


@pytest.mark.parametrize("layout", LAYOUTS)
def test_after_a_maybe_one_block_is_read(layout: FilterLayout) -> None:
    policy = OneAnswer(True)
    options = SMALL._replace(filter_policy=policy, filter_layout=layout)
    table, file = opened(build(ROWS, options), options)
    counters = ReadCounters()
    for key, value in ROWS:
        file.reads.clear()
        assert get(table, key, counters) == found(value)
        assert len(file.reads) == 1
    filters = 2 if layout == "both" else 1
    assert counters.filters_asked == filters * len(ROWS)
    assert counters.filters_asked - counters.filter_negatives == filters * len(ROWS)
    assert counters.filter_negatives == 0


def test_the_whole_tables_filter_is_asked_first() -> None:
    policy = OneAnswer(True)
    options = SMALL._replace(filter_policy=policy, filter_layout="both")
    table, _ = opened(build(ROWS, options), options)
    get(table, ROWS[0][0])
    assert policy.asked[0] == b"%d" % len(ROWS)
    assert len(policy.asked) == 2
    policy.answer = False
    policy.asked.clear()
    get(table, ROWS[0][0])
    assert policy.asked == [b"%d" % len(ROWS)]


def test_a_policy_of_the_users_is_asked_with_user_keys() -> None:
    policy = Names()
    options = SMALL._replace(filter_policy=policy, filter_layout="both")
    table, file = opened(build(ROWS, options), options)
    counters = ReadCounters()
    for key, value in ROWS[::50]:
        policy.asked.clear()
        assert get(table, key, counters) == found(value)
        assert policy.asked == [key, key]
        file.reads.clear()
        assert get(table, key + b"+", counters) == (RULED_OUT, 0, None)
        assert policy.asked == [key, key, key + b"+"]
        assert file.reads == []
    asked = len(ROWS[::50])
    assert counters.filters_asked == 3 * asked
    assert counters.filter_negatives == asked


def test_the_filter_is_asked_in_every_order() -> None:
    for comparator in COMPARATORS:
        policy = Names()
        options = SMALL._replace(filter_policy=policy, comparator=comparator)
        rows = rows_of({(key, 1): 1 for key, _ in ROWS}, KeyOrder(comparator))
        table, file = opened(build_table(rows, options), options)
        for key in ABSENT[::20]:
            assert get(table, key) == (RULED_OUT, 0, None)
        assert file.reads == []
        for key, _ in ROWS[::50]:
            assert get(table, key) == found(b"1")


def test_may_contain_asks_index_and_filter_alone() -> None:
    for layout in LAYOUTS:
        options = SMALL._replace(filter_policy=BLOOM, filter_layout=layout)
        table, file = opened(build(ROWS, options), options)
        counters = ReadCounters()
        admitted = 0
        for key, _ in ROWS:
            assert table.may_contain(key, KeyHashes(key), counters)
        for key in ABSENT:
            admitted += table.may_contain(key, KeyHashes(key), counters)
        assert admitted < 0.04 * len(ABSENT)
        asked = counters.filters_asked
        assert not table.may_contain(b"z", KeyHashes(b"z"), counters)
        assert counters.filters_asked == asked
        assert file.reads == []
    table, file = opened(build(ROWS))
    assert table.may_contain(ABSENT[0], KeyHashes(ABSENT[0]), ReadCounters())
    assert not table.may_contain(b"z", KeyHashes(b"z"), ReadCounters())
    assert file.reads == []


def test_counters_agree_with_the_file() -> None:
    options = SMALL._replace(filter_policy=BLOOM, block_size=300)
    table, file = opened(build(ROWS, options), options)
    counters = ReadCounters()
    for key in [*ABSENT, *(key for key, _ in ROWS)]:
        get(table, key, counters)
    for start in (b"", b"k0100", b"k0101", b"z"):
        rows_from(table, start, counters, True)
    all_rows(table, 0, counters)
    assert counters.blocks_read == len(file.reads)
    assert counters.bytes_read == sum(length for _, length in file.reads)
    # Reading ahead takes fewer reads for as many blocks and bytes.
    before = counters.blocks_read, counters.bytes_read
    file.reads.clear()
    all_rows(table, 2000, counters)
    assert counters.blocks_read - before[0] == table.num_blocks
    assert counters.bytes_read - before[1] == sum(length for _, length in file.reads)
    assert len(file.reads) < table.num_blocks / 5


def test_get_reads_a_block_where_the_index_does_not_know() -> None:
    table, _ = opened(build([(b"b", b"1"), (b"dd", b"2")], PLAIN), PLAIN)
    counters = ReadCounters()
    for key, expected in {
        b"": (FROM_FILE, 0, None),
        b"a": (FROM_FILE, 0, None),
        b"b": found(b"1"),
        b"b\0": (FROM_FILE, 0, None),
        b"dd": found(b"2"),
        b"dd\0": (FROM_FILE, 0, None),  # the index key is "e": the block had to be read
        b"e": (FROM_FILE, 0, None),
        b"e\0": (RULED_OUT, 0, None),
    }.items():
        assert get(table, key, counters) == expected


# Versions of one key


class Names(OneAnswer):
    """Rules out what it was not given, and keeps the keys that it is asked."""

    def __init__(self) -> None:
        super().__init__(True)

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return b"".join(b"<%s>" % key for key in keys)

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        self.asked.append(key)
        return b"<%s>" % key in filter_data


VERSIONS: Versions = {
    (b"name%04d" % name, sequence): sequence % 3 > 0
    for name in range(0, 60, 3)
    for sequence in [*range(1, 2 + name % 13 * 4, 2), *(BOUNDS if name % 4 == 0 else [])]
}


@pytest.mark.parametrize("order", ORDERS, ids=[each.name for each in COMPARATORS])
@pytest.mark.parametrize("filtered", [False, True], ids=["no filter", "by names"])
@pytest.mark.parametrize("cached", [False, True])
def test_get_returns_the_newest_version_within_the_bound(
    order: KeyOrder, filtered: bool, cached: bool
) -> None:
    """Versions of one key fill several blocks; the right one is found with one read."""
    comparator = COMPARATORS[ORDERS.index(order)]
    cache: BlockCache[object, object] | None = BlockCache(1 << 20) if cached else None
    options = SMALL._replace(
        comparator=comparator, filter_policy=Names() if filtered else None, block_cache=cache
    )
    rows = rows_of(VERSIONS, order)
    table, file = opened(build_table(rows, options), options)
    assert table.num_blocks > 40
    there = {key for key, _ in VERSIONS}
    counters = ReadCounters()
    for name in [b"", *(b"name%04d" % number for number in range(62)), b"name", b"z" * 9]:
        own = {sequence for key, sequence in VERSIONS if key == name}
        for bound in {*own, *(max(0, sequence - 1) for sequence in own), 0, HALF, MAX_SEQUENCE}:
            expected = newest(rows, name, bound, order)
            for _ in range(2):
                file.reads.clear()
                outcome, tag, value = get(table, name, counters, sequence=bound)
                assert (tag, value) == expected
                assert len(file.reads) == (1 if outcome == FROM_FILE else 0)
                if filtered and name not in there:
                    assert outcome == RULED_OUT
            if value is not None:
                again = get(table, name, counters, sequence=bound, fill_cache=False)
                assert again == (FROM_CACHE if cached else FROM_FILE, tag, value)


def test_the_index_alone_knows_where_all_versions_are_too_new() -> None:
    rows = [(pack(b"k", sequence, 1), b"v" * 60) for sequence in (9, 7, 5)]
    table, file = opened(build_table(rows))
    assert table.num_blocks == 3
    for sequence, number in {9: 0, 8: 1, 7: 1, 6: 2, 5: 2}.items():
        file.reads.clear()
        assert get(table, b"k", sequence=sequence)[2] == b"v" * 60
        assert file.reads == [(table.index.offsets[number], table.index.sizes[number])]
    file.reads.clear()
    assert get(table, b"k", sequence=4) == (RULED_OUT, 0, None)
    assert file.reads == []


def test_keys_that_are_equal_in_the_order_are_one_key() -> None:
    options = SMALL._replace(comparator=FOLDING)
    rows = [(pack(b"Key", 9, 1), b"new" * 20), (pack(b"kEY", 5, 1), b"old" * 20)]
    table, _ = opened(build_table(rows, options), options)
    assert table.num_blocks == 2
    for key in (b"key", b"KEY", b"Key"):
        assert get(table, key)[2] == b"new" * 20
        assert get(table, key, sequence=8)[2] == b"old" * 20
        assert get(table, key, sequence=4) == (RULED_OUT, 0, None)


# Several blocks of one read


def on_the_way(table: Table, number: int, back: bool) -> list[bytes]:
    """The content of a block and of all that follow it."""
    numbers = range(number, -1, -1) if back else range(number, table.num_blocks)
    return [table.load_block(at, ReadCounters(), False)[1].data for at in numbers]


def numbers_of(ahead: Readahead, back: bool) -> list[int]:
    numbers = list(range(ahead.first, ahead.stop))
    return numbers[::-1] if back else numbers


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("number", [0, 1, 50, -2, -1])
@pytest.mark.parametrize("most", [2, 7, 1000])
def test_neighbors_come_with_a_block(back: bool, number: int, most: int) -> None:
    options = SMALL._replace(block_cache=BlockCache(1 << 20))
    table, file = opened(build(ROWS, options), options)
    number %= table.num_blocks
    expected = on_the_way(table, number, back)[:most]
    file.reads.clear()
    counters = ReadCounters()
    ahead = table.read_ahead(number, most, back, counters)
    if len(expected) == 1:
        assert ahead is None
        assert file.reads == []
        return
    assert ahead is not None
    numbers = numbers_of(ahead, back)
    blocks = [table.find_ahead(at, counters, ahead, ANY_SIZE)[1] for at in numbers]
    assert numbers[0] == number
    assert [block.data for block in blocks] == expected
    assert len(file.reads) == 1
    assert counters.blocks_read == len(blocks)
    assert counters.bytes_read == file.reads[0][1]
    for at, block in zip(numbers, blocks, strict=True):
        assert table.read_ahead(at, most, back, counters) is None
        assert table.find_ahead(at, counters, None) == (FROM_CACHE, block)
    assert len(file.reads) == 1
    assert counters.block_cache_hits == len(blocks)


@pytest.mark.parametrize("most", [-1, 0, 1])
def test_one_block_is_not_read_ahead(most: int) -> None:
    table, file = opened(build(ROWS))
    assert table.read_ahead(50, most, False, ReadCounters()) is None
    assert file.reads == []


@pytest.mark.parametrize("back", [False, True])
def test_what_is_cached_is_not_read_with_a_block(back: bool) -> None:
    options = SMALL._replace(block_cache=BlockCache(1 << 20))
    table, _ = opened(build(ROWS, options), options)
    counters = ReadCounters()
    for number in (45, 55):
        table.load_block(number, counters, True)
    for _ in range(2):  # nothing is kept of what is read past the cache
        ahead = table.read_ahead(50, 100, back, counters)
        assert ahead is not None
        assert numbers_of(ahead, back) == ([50, 49, 48, 47, 46] if back else [50, 51, 52, 53, 54])
        for number in numbers_of(ahead, back):
            table.find_ahead(number, counters, ahead)


@pytest.mark.parametrize("back", [False, True])
def test_one_read_has_a_limit(back: bool) -> None:
    rows = [(b"%04d" % number, bytes(10_000)) for number in range(30)]
    table, file = opened(build(rows))
    ahead = table.read_ahead(15, 1000, back, ReadCounters())
    assert ahead is not None
    assert ahead.stop - ahead.first == 6
    assert 50_000 < file.reads[0][1] <= 65_536
    for large in (15, 14, 16):  # no neighbor costs more than the block itself
        some = [*rows[:large], (rows[large][0], bytes(100_000)), *rows[large + 1 :]]
        table, file = opened(build(some))
        ahead = table.read_ahead(15, 1000, back, ReadCounters())
        assert (ahead is None) == (large == 15 or (large == 14) == back)
        assert sum(length for _, length in file.reads) <= 65_536


@pytest.mark.parametrize("back", [False, True])
def test_what_is_read_ahead_is_unpacked_when_it_is_asked_for(back: bool) -> None:
    """However much a few bytes may unpack to."""
    options = PLAIN._replace(compression=ZSTD)
    rows = [(b"%04d" % number, bytes(1 << 20)) for number in range(12)]
    table, _ = opened(build(rows, options), options)
    tracemalloc.start()
    try:
        ahead = table.read_ahead(6, 1000, back, ReadCounters())
        assert ahead is not None
        assert ahead.stop - ahead.first > 5
        for number in numbers_of(ahead, back):
            table.find_ahead(number, ReadCounters(), ahead)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("back", "damage"),
    [
        *((back, damage) for back in (False, True) for damage in ("byte", "codec", "restarts")),
        (False, "cut short"),  # only the end of a file can be missing
    ],
)
def test_damage_of_a_neighbor_is_reported_when_it_is_read(back: bool, damage: str) -> None:
    data = build(ROWS)
    whole, _ = opened(data)
    bad = 40 if back else 60
    offset = whole.index.offsets[bad]
    end = whole.index.offsets[bad + 1]
    body = data[offset : end - 5]
    stored = data[offset:end]
    if damage == "byte":
        stored = body[:-1] + b"\xff" + stored[-5:]
    elif damage == "codec":
        stored = body + b"\x09" + masked_crc32c(body + b"\x09").to_bytes(4, "little")
    elif damage == "restarts":
        body = body[:-4] + b"\xff\xff\xff\xff"
        stored = body + b"\0" + masked_crc32c(body + b"\0").to_bytes(4, "little")
    table, file = opened(data[:offset] + stored + data[end:])
    if damage == "cut short":
        file.data = data[: end - 1]
    counters = ReadCounters()
    ahead = table.read_ahead(50, 1000, back, counters)
    assert ahead is not None
    expected = on_the_way(whole, 50, back)
    for number in numbers_of(ahead, back)[:10]:
        assert table.find_ahead(number, counters, ahead)[1].data == expected[abs(number - 50)]
    for its in (None, ahead):
        with pytest.raises((CorruptionError, UnsupportedCompressionError), match=str(offset)):
            table.find_ahead(bad, counters, its)


@pytest.mark.parametrize("back", [False, True])
def test_what_cannot_be_read_ahead_is_none(back: bool) -> None:
    table, file = opened(build(ROWS))
    bad = 40 if back else 60
    start = table.index.offsets[bad]

    def read(offset: int, length: int) -> bytes:
        if offset <= start < offset + length:
            raise OSError(5, "the disk")
        return file.data[offset : offset + length]

    file.read = read  # type: ignore[method-assign]
    counters = ReadCounters()
    assert table.read_ahead(50, 1000, back, counters) is None
    assert counters.blocks_read == 0
    table.find_ahead(50, counters, None)
    assert table.read_ahead(50, 10, back, counters) is not None
    with pytest.raises(OSError, match="the disk"):
        table.find_ahead(bad, counters, None)


# The cache


def test_the_block_cache_serves_the_second_lookup() -> None:
    options = SMALL._replace(block_cache=BlockCache(1 << 20))
    table, file = opened(build(ROWS, options), options)
    counters = ReadCounters()
    assert get(table, b"k0000", counters) == found(ROWS[0][1])
    assert get(table, b"k0000", counters) == found(ROWS[0][1], FROM_CACHE)
    assert get(table, b"k0000", counters, sequence=0) == (FROM_CACHE, 0, None)
    assert get(table, b"k0001", counters) == (FROM_CACHE, 0, None)
    assert len(file.reads) == counters.blocks_read
    rows_from(table, b"", counters, True)
    assert len(file.reads) == counters.blocks_read == table.num_blocks
    hits = counters.block_cache_hits
    rows_from(table, b"", counters, True)
    assert len(file.reads) == table.num_blocks
    assert counters.block_cache_hits == hits + table.num_blocks


@pytest.mark.parametrize("how", ["clear", "push out"])
def test_a_block_that_left_the_cache_is_read_again(how: str) -> None:
    cache: BlockCache[object, object] = BlockCache(1 << 20)
    table, file = opened(build(ROWS, SMALL), SMALL._replace(block_cache=cache))
    for _ in range(2):
        assert get(table, ROWS[0][0]) == found(ROWS[0][1])
        assert get(table, ROWS[0][0]) == found(ROWS[0][1], FROM_CACHE)
        if how == "clear":
            cache.clear()
        else:
            cache.add("as large as all", 1 << 20)
    assert len(file.reads) == 2


def test_blocks_of_a_table_that_is_left_give_their_room() -> None:
    cache: BlockCache[object, object] = BlockCache(1 << 20)
    options = SMALL._replace(block_cache=cache)
    tables = [opened(build(ROWS, options), options)[0] for _ in range(2)]
    for table in tables:
        rows_from(table, b"", ReadCounters(), True)
    held = len(cache)
    assert held == 2 * tables[0].num_blocks
    tables[0].forget_blocks()
    assert len(cache) == held // 2
    assert get(tables[1], ROWS[0][0])[0] == FROM_CACHE
    assert get(tables[0], ROWS[0][0])[0] == FROM_FILE
    opened(build(ROWS))[0].forget_blocks()  # there may be no cache


def test_fill_cache_off_leaves_the_cache_alone() -> None:
    cache: BlockCache[object, object] = BlockCache(1 << 20)
    options = SMALL._replace(block_cache=cache)
    table, _ = opened(build(ROWS, options), options)
    counters = ReadCounters()
    get(table, b"k0000", counters, fill_cache=False)
    rows_from(table, b"", counters, False)
    all_rows(table, 0)
    all_rows(table, 1000)
    table.find_ahead(3, counters, None)
    table.read_ahead(3, 9, False, counters)
    check(table)
    assert table.begins_with(ROWS[0][0] + TAG, False)
    assert len(cache) == 0


def test_the_caches_charge_is_the_block_decompressed() -> None:
    cache: BlockCache[object, object] = BlockCache(1 << 20)
    options = PLAIN._replace(block_cache=cache, compression=SNAPPY)
    table, _ = opened(build([(b"k", b"v" * 3000)], options), options)
    get(table, b"k")
    assert cache.usage == 3 + 1 + 1 + 8 + 3000 + 8  # the value's length takes two bytes


def test_a_block_that_two_have_read_is_charged_once() -> None:
    """The second read begins and ends in the middle of the first, as another thread's may."""
    cache: BlockCache[object, object] = BlockCache(1 << 20)
    table, file = opened(build(ROWS, SMALL), SMALL._replace(block_cache=cache))
    nested: list[bool] = []
    inner: list[Block] = []

    def read(offset: int, length: int) -> bytes:
        if not nested:
            nested.append(True)
            inner.append(table.load_block(1, ReadCounters(), True)[1])
        return file.data[offset : offset + length]

    file.read = read  # type: ignore[method-assign]
    outcome, outer = table.load_block(1, ReadCounters(), True)
    assert (outcome, outer.data) == (FROM_FILE, inner[0].data)
    assert (len(cache), cache.usage) == (1, len(outer))
    assert table.load_block(1, ReadCounters(), True) == (FROM_CACHE, inner[0])


# The cache, once it is full


COMPRESSED = PLAIN._replace(compression=SNAPPY, block_size=4000)
COMPRESSIBLE: list[Row] = [(b"k%04d" % number, b"%04d" % number * 250) for number in range(40)]
FREE = 3900
"""Bytes: less than a block has, and more than all of them have as they are stored."""


def full_cache() -> tuple[BlockCache[object, object], int]:
    """A cache with few bytes free, and how many bytes are used."""
    cache: BlockCache[object, object] = BlockCache(1 << 16)
    for _ in range(100):
        cache.add("other", (cache.capacity - FREE) // 100)
    return cache, cache.usage


def test_a_full_cache_takes_blocks_as_they_are_stored() -> None:
    cache, others = full_cache()
    table, file = opened(build(COMPRESSIBLE, COMPRESSED), COMPRESSED._replace(block_cache=cache))
    counters = ReadCounters()
    assert rows_from(table, b"", counters, True) == COMPRESSIBLE
    assert len(cache) == 100 + table.num_blocks > 105  # decompressed, not one of them would fit
    assert cache.usage == others + sum(table.index.sizes)
    cache.check()
    assert rows_from(table, b"", counters, True) == COMPRESSIBLE
    assert len(file.reads) == table.num_blocks
    assert counters.block_cache_hits == table.num_blocks
    for key, value in COMPRESSIBLE:
        assert get(table, key) == found(value, FROM_PACKED)


def test_a_full_cache_keeps_the_last_block_until_the_next_miss() -> None:
    cache, _ = full_cache()
    cache.add("other", FREE)
    table, file = opened(build(COMPRESSIBLE, COMPRESSED), COMPRESSED._replace(block_cache=cache))
    other, _ = opened(build(COMPRESSIBLE, COMPRESSED), COMPRESSED._replace(block_cache=cache))
    (key, value), last = COMPRESSIBLE[0], COMPRESSIBLE[-1][0]
    assert [get(table, key)[0] for _ in range(3)] == [FROM_FILE, FROM_CACHE, FROM_CACHE]
    assert get(other, key) == found(value)  # the same block of another table
    assert get(other, last)[0] == FROM_FILE
    assert get(table, key) == found(value)  # it comes back: admitted
    assert get(table, last)[0] == FROM_FILE
    assert get(table, key) == found(value, FROM_PACKED)
    assert len(file.reads) == 3
    cache.check()
    cache.clear()
    assert get(table, last)[0] == FROM_FILE


def test_a_block_that_is_used_often_is_kept_decompressed() -> None:
    cache, others = full_cache()
    table, _ = opened(build(COMPRESSIBLE, COMPRESSED), COMPRESSED._replace(block_cache=cache))
    key, value = COMPRESSIBLE[0]
    usages = []
    for _ in range(10):
        get(table, key)
        usages.append(cache.usage)
    packed, size = table.index.sizes[0], len(table.read(0, ReadCounters()))
    assert packed < FREE < size
    assert usages[:8] == [others + packed] * 8
    assert cache.capacity - 2 * size < usages[8] == usages[9]  # others give way
    assert get(table, key) == found(value, FROM_CACHE)
    cache.check()


def test_a_block_larger_than_the_cache_stays_as_it_is_stored() -> None:
    cache: BlockCache[object, object] = BlockCache(FREE)
    table, _ = opened(build(COMPRESSIBLE, COMPRESSED), COMPRESSED._replace(block_cache=cache))
    key, value = COMPRESSIBLE[0]
    for _ in range(20):
        assert get(table, key)[1:] == found(value)[1:]
    assert cache.usage == table.index.sizes[0]
    cache.check()


def test_a_full_cache_takes_blocks_that_do_not_compress_as_they_are() -> None:
    cache, others = full_cache()
    table, _ = opened(build(ROWS, SMALL), SMALL._replace(block_cache=cache))
    cache.add("other", cache.capacity - others)
    for number in [*range(60)] * 2:
        table.load_block(number, ReadCounters(), True)
    sizes = [len(table.read(number, ReadCounters())) for number in range(60)]
    for number in range(60):
        assert table.load_block(number, ReadCounters(), True)[0] == FROM_CACHE
    cache.check()
    assert cache.capacity - max(sizes) - 600 < cache.usage


@pytest.mark.parametrize("back", [False, True])
def test_what_is_read_ahead_goes_into_a_full_cache_as_it_is_stored(back: bool) -> None:
    cache, others = full_cache()
    table, _ = opened(build(COMPRESSIBLE, COMPRESSED), COMPRESSED._replace(block_cache=cache))
    expected = [table.read(number, ReadCounters()).data for number in range(table.num_blocks)]
    ahead = table.read_ahead(5, 3, back, ReadCounters())
    assert ahead is not None
    numbers = numbers_of(ahead, back)
    for number in numbers:
        table.find_ahead(number, ReadCounters(), ahead, ANY_SIZE)
    assert cache.usage == others + sum(table.index.sizes[number] for number in numbers)
    for number in numbers:
        outcome, block = table.load_block(number, ReadCounters(), False)
        assert (outcome, block.data) == (FROM_PACKED, expected[number])


def test_a_block_without_room_is_not_cached() -> None:
    cache: BlockCache[object, object] = BlockCache(1 << 20)
    table, _ = opened(build(ROWS, SMALL), SMALL._replace(block_cache=cache))
    size = len(table.read(1, ReadCounters()))
    table.find_ahead(1, ReadCounters(), None, size - 1)
    assert len(cache) == 0
    table.find_ahead(1, ReadCounters(), None, size)
    assert cache.usage == size


def test_tables_that_share_a_cache_and_a_path_do_not_mix() -> None:
    options = SMALL._replace(block_cache=BlockCache(1 << 20))
    for value in (b"old", b"new"):
        table, _ = opened(build([(b"k", value)], options), options)
        assert get(table, b"k") == found(value)


# Everything against a sorted list


def starts_around(rows: Sequence[Row]) -> list[bytes]:
    """Every kind of place to start: before all, at, just before and just after each key."""
    starts = [b"", b"\0", b"\xff" * 30]
    for key, _ in rows:
        starts += [key, key + b"\0", key[:-1], key[:-1] + b"\xff"]
    return starts


def check_reads(table: Table, rows: Sequence[Row]) -> None:
    order = table.comparator.order
    for readahead in (0, 1, 200, 1 << 20):
        for enough in (0, 300, 1 << 30):
            assert all_rows(table, readahead, enough=enough) == rows
    for start in starts_around(rows):
        beyond = [row for row in rows if order.compare(row[0], start) >= 0]
        assert rows_from(table, start, ReadCounters(), True) == beyond
        same = [value for key, value in rows if key == start]
        for sequence in (1, MAX_SEQUENCE):
            _, tag, value = get(table, start, sequence=sequence)
            assert (tag, value) == ((VALUE_TAG, same[0]) if same else ABSENT_FROM_BLOCK)
        assert get(table, start, sequence=0)[1:] == ABSENT_FROM_BLOCK


@pytest.mark.parametrize("block_size", [64, 200, 4096])
@pytest.mark.parametrize("kind", [NO_COMPRESSION, SNAPPY, ZSTD])
def test_every_possible_start(block_size: int, kind: int) -> None:
    rows = [
        (b"", b"empty"),
        *((b"%03d" % number, b"v" * (number % 50)) for number in range(0, 60, 3)),
        *((b"\xff" * number, b"") for number in range(1, 20)),
    ]
    options = SMALL._replace(block_size=block_size, compression=kind, filter_policy=BLOOM)
    table, _ = opened(build(rows, options), options)
    check_reads(table, rows)
    check(table)


def test_an_empty_table() -> None:
    for policy in (None, BLOOM):
        options = SMALL._replace(filter_policy=policy, filter_layout="both")
        table, file = opened(build([], options), options)
        assert table.num_blocks == 0
        check_reads(table, [])
        check(table)
        for sequence in (0, MAX_SEQUENCE):
            assert get(table, b"k", sequence=sequence) == (RULED_OUT, 0, None)
        assert table.approximate_offset(b"k") <= file.size
        assert not table.may_contain(b"k", KeyHashes(b"k"), ReadCounters())
        assert not table.begins_with(b"k" + TAG, True)
        assert file.reads == []


@pytest.mark.parametrize("row", [(b"", b""), (b"k", b"v"), (b"\xff\xff", b"x" * 10_000)])
def test_a_table_of_one_entry(row: Row) -> None:
    table, _ = opened(build([row]))
    assert table.num_blocks == 1
    check_reads(table, [row])
    check(table)


def test_pieces_are_blocks() -> None:
    table, _ = opened(build(ROWS))
    pieces = list(table.entries(ReadCounters(), 0, 0))
    assert len(pieces) == table.num_blocks > 100
    assert [entry for piece in pieces for entry in piece] == entries_of(with_tag(ROWS))
    assert list(table.entries(ReadCounters(), 777, 0)) == pieces
    sizes = [len(table.read(number, ReadCounters())) for number in range(table.num_blocks)]
    larger = list(table.entries(ReadCounters(), 777, 3 * max(sizes)))
    assert table.num_blocks / 5 < len(larger) <= table.num_blocks / 3 + 1
    assert [entry for piece in larger for entry in piece] == entries_of(with_tag(ROWS))


def test_entries_that_are_left_are_not_read() -> None:
    table, file = opened(build(ROWS))
    counters = ReadCounters()
    entries = table.entries(counters, 0, 0)
    assert file.reads == []
    next(entries)
    assert counters.blocks_read == len(file.reads) == 1


def test_entries_are_all_versions_in_order() -> None:
    for comparator, order in zip(COMPARATORS, ORDERS, strict=True):
        options = SMALL._replace(comparator=comparator)
        rows = rows_of(VERSIONS, order)
        table, _ = opened(build_table(rows, options), options)
        for readahead in (0, 500):
            pieces = table.entries(ReadCounters(), readahead, 0)
            assert [entry for piece in pieces for entry in piece] == entries_of(rows)


def test_a_folding_comparator() -> None:
    options = SMALL._replace(comparator=FOLDING)
    rows = [(b"Apple" * 9, b"1"), (b"bEAR" * 9, b"2"), (b"CHERRY" * 9, b"3")]
    table, _ = opened(build(rows, options), options)
    for key in (b"bear" * 9, b"BEAR" * 9, b"bEAR" * 9):
        assert get(table, key) == found(b"2")
        assert rows_from(table, key, ReadCounters(), True) == rows[1:]
        assert table.approximate_offset(key) == table.index.offsets[1]
    check(table)


def test_the_first_key_tells_one_table_from_another() -> None:
    data = build(ROWS)
    table, file = opened(data)
    first = ROWS[0][0] + TAG
    assert table.begins_with(first, True)
    assert len(file.reads) == 1
    for other in (ROWS[0][0], ROWS[1][0] + TAG, pack(ROWS[0][0], 2, 1), b""):
        assert not table.begins_with(other, True)
    file.data = bytes([data[0] ^ 1]) + data[1:]
    assert table.begins_with(b"any", True)  # a read that needs its content raises
    assert table.identity_check.blocks_read == len(file.reads) == 6
    assert table.identity_check.bytes_read == sum(length for _, length in file.reads)


@pytest.mark.parametrize("full", [False, True])
def test_the_block_that_tells_it_goes_into_the_cache(full: bool) -> None:
    """As the block of a lookup does: as it is stored, if the cache is full."""
    cache, others = full_cache() if full else (BlockCache[object, object](1 << 20), 0)
    table, file = opened(build(COMPRESSIBLE, COMPRESSED), COMPRESSED._replace(block_cache=cache))
    assert table.begins_with(COMPRESSIBLE[0][0] + TAG, True)
    size = table.index.sizes[0] if full else len(table.read(0, ReadCounters()))
    assert cache.usage == others + size
    cache.check()
    before = len(file.reads)
    key, value = COMPRESSIBLE[0]
    assert get(table, key) == found(value, FROM_PACKED if full else FROM_CACHE)
    assert len(file.reads) == before


def test_a_block_of_another_table_does_not_go_into_the_cache() -> None:
    cache: BlockCache[object, object] = BlockCache(1 << 20)
    table, _ = opened(build(ROWS, SMALL), SMALL._replace(block_cache=cache))
    assert not table.begins_with(b"other" + TAG, True)
    assert len(cache) == 0


keys = st.binary(max_size=10) | st.text("ab\xff", max_size=6).map(lambda text: text.encode("latin"))


@given(
    entries=st.dictionaries(keys, st.binary(max_size=60), max_size=60),
    block_size=st.sampled_from([64, 65, 100, 300, 4096]),
    interval=st.integers(1, 20),
    kind=st.sampled_from([NO_COMPRESSION, SNAPPY, ZSTD]),
    layout=st.sampled_from(LAYOUTS),
    policy=st.sampled_from([None, BLOOM, BloomFilterPolicy(1)]),
    order=st.sampled_from(ORDERS),
    cached=st.booleans(),
)
def test_round_trip(
    entries: dict[bytes, bytes],
    block_size: int,
    interval: int,
    kind: int,
    layout: FilterLayout,
    policy: BloomFilterPolicy | None,
    order: KeyOrder,
    cached: bool,
) -> None:
    options = Options(
        comparator=COMPARATORS[ORDERS.index(order)],
        block_size=block_size,
        block_restart_interval=interval,
        compression=kind,
        filter_policy=policy,
        filter_layout=layout,
        block_cache=BlockCache(1000) if cached else None,
    )
    # Of keys that are equal in the order, one.
    ordered = [key[:-8] for key, _ in rows_of({(key, 1): 1 for key in entries}, order)]
    rows = [(key, entries[key]) for key in ordered]
    table, file = opened(build(rows, options), options)
    if order is ORDERS[2]:
        assert all_rows(table) == rows
        for key, value in rows:
            assert get(table, key)[1:] == (VALUE_TAG, value)
    else:
        check_reads(table, rows)
    check(table)
    offsets = [table.approximate_offset(key) for key, _ in rows]
    assert offsets == sorted(offsets)
    assert all(0 <= offset < file.size for offset in offsets)


# Offsets


def test_approximate_offset_rises_with_the_key() -> None:
    options = PLAIN._replace(filter_policy=BLOOM)
    rows = [(b"%05d" % number, b"v" * 1000) for number in range(200)]
    table, file = opened(build(rows, options), options)
    offsets = [table.approximate_offset(key) for key, _ in rows]
    assert offsets == sorted(offsets)
    assert table.approximate_offset(b"") == offsets[0] == 0
    assert all(abs(offset - 1008 * number) < 5 * 1008 for number, offset in enumerate(offsets))
    # Past the last key stands the metaindex, as in LevelDB.
    footer = Footer.decode(file.data[-FOOTER_SIZE:])
    assert table.approximate_offset(b"2") == footer.metaindex.offset > offsets[-1]
    assert file.reads == []


# Damage at rest

PROBES = [b"", b"a", b"b", b"bb", b"c", b"c" * 30, b"cd", b"d", b"e", b"f", b"z"]
DAMAGED = [
    SMALL,
    SMALL._replace(filter_policy=BLOOM, compression=SNAPPY),
    SMALL._replace(filter_policy=BLOOM, filter_layout="both"),
    SMALL._replace(filter_policy=Bloom64Policy(10)),
    SMALL._replace(
        filter_policy=BinaryFusePolicy(), filter_layout="table", prefix_extractor=FixedPrefix(1)
    ),
    SMALL._replace(
        filter_policy=Bloom64Policy(10), filter_layout="both", prefix_extractor=FixedPrefix(1)
    ),
    SMALL._replace(prefix_extractor=FixedPrefix(1)),
]
DAMAGED_IDS = ["plain", "snappy", "both", "bloom64", "fuse", "bloom64 both", "prefixes alone"]


def damage_in(data: bytes, options: Options, sound: object) -> CorruptionError | None:
    """The damage that reading everything comes upon; if none, the answers are the sound ones."""
    try:
        answers = everything(data, options, PROBES)
    except CorruptionError as error:
        return error
    assert answers == sound
    return None


@pytest.mark.parametrize("options", DAMAGED, ids=DAMAGED_IDS)
def test_any_bit_flipped(options: Options) -> None:
    data = build(FEW, options)
    sound = everything(data, options, PROBES)
    # The footer has no checksum, and its padding is not read; nor is the metaindex, where nobody
    # asks for filters.
    footer_at = len(data) - FOOTER_SIZE
    metaindex = Footer.decode(data[footer_at:]).metaindex
    unread = set(range(footer_at, len(data)))
    if options.filter_policy is None and options.prefix_extractor is None:
        unread |= set(range(metaindex.offset, metaindex.offset + metaindex.size + 5))
    found = 0
    for at in range(len(data)):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            damaged = bytearray(data)
            damaged[at] ^= mask
            error = damage_in(bytes(damaged), options, sound)
            if error is None:
                assert at in unread
                continue
            found += 1
            assert error.path == "db/000005.ldb"
            assert error.offset is not None
    assert found > 9 * (len(data) - len(unread))


@pytest.mark.parametrize("options", DAMAGED, ids=DAMAGED_IDS)
def test_cut_anywhere(options: Options) -> None:
    data = build(FEW, options)
    for length in range(len(data)):
        for part in (data[:length], data[length + 1 :]):
            if part.endswith(data[-FOOTER_SIZE:]):
                # The end is there and the beginning is not: every handle is off.
                with pytest.raises(CorruptionError):
                    everything(part, options, PROBES)
            else:
                with pytest.raises(CorruptionError):
                    Table(options, BytesFile(part))


@pytest.mark.parametrize("readahead", [0, 100_000])
def test_a_file_that_shrank_since_it_was_opened(readahead: int) -> None:
    table, file = opened(build(ROWS))
    file.data = file.data[:1000]
    with pytest.raises(CorruptionError) as caught:
        all_rows(table, readahead)
    assert caught.value.offset is not None
    assert caught.value.offset <= 1000
    with pytest.raises(CorruptionError, match="cut short"):
        get(table, ROWS[-1][0])


def test_damage_is_reported_with_the_blocks_offset() -> None:
    data = build(ROWS)
    table, _ = opened(data)
    offset = table.approximate_offset(b"k1000")
    assert offset > 0
    damaged = data[:offset] + b"\xff" + data[offset + 1 :]
    table, _ = opened(damaged)
    for call in ways_to_read(table, b"k1000"):
        with pytest.raises(CorruptionError, match="checksum") as caught:
            call()
        assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", offset)
    assert get(table, ROWS[0][0]) == found(ROWS[0][1])


# Hostile tables, their checksums right


@pytest.mark.parametrize("contents", [b"", b"\0", b"\xff\x1f", bytes(8) + b"\xff", b"\xff" * 9])
def test_a_whole_table_filter_of_any_bytes(contents: bytes) -> None:
    extra = seal_block(contents, NO_COMPRESSION)
    meta = [(b"fullfilter." + BLOOM.name.encode(), BlockHandle(0, len(contents)).encode())]
    data = assemble([([(b"a", b"1")], b"b")], meta, extra)
    table, _ = opened(data, SMALL._replace(filter_policy=BLOOM))
    expected = (RULED_OUT, 0, None) if len(contents) < 2 else found(b"1")
    assert get(table, b"a") == expected


POLICIES64: list[FilterPolicy] = [Bloom64Policy(10), BinaryFusePolicy()]


@pytest.mark.parametrize("policy", POLICIES64, ids=repr)
@pytest.mark.parametrize("kind", ["block", "table", "prefix"])
def test_filters_of_64_bit_hashes_of_any_bytes(policy: FilterPolicy, kind: str) -> None:
    """A key is found, or the filter says no to it and ``check`` says so; nothing else."""
    found_it = denied_it = 0
    for at, filter_data in enumerate(hostile_filters()):
        if at % 4:
            continue
        options = PLAIN._replace(filter_policy=policy)
        contents = filter_data
        name = b"fullfilter." + policy.name.encode()
        if kind == "block":
            name = b"filter." + policy.name.encode()
            array = b"\0" * 4 + len(filter_data).to_bytes(4, "little") + b"\x0b"
            contents = filter_data + array
        elif kind == "prefix":
            options = options._replace(prefix_extractor=FixedPrefix(1))
            name = f"prefixfilter.{policy.name}.lsmkv.FixedPrefix.1".encode()
        meta = [(name, BlockHandle(0, len(contents)).encode())]
        # The block starts within the first 2 KiB.
        table, _ = opened(
            assemble([([(b"a", b"1")], b"b")], meta, seal_block(contents, NO_COMPRESSION)), options
        )
        if kind == "prefix":
            assert table.prefix_filter is not None
            says_yes = table.prefix_filter.may_match(xxh3_hash(b"a"))
            assert get(table, b"a") == found(b"1")
        else:
            answer = get(table, b"a")
            assert answer == (RULED_OUT, 0, None) or answer == found(b"1")
            says_yes = answer[2] is not None
        if says_yes:
            found_it += 1
            assert check(table) == (b"a" + TAG, b"a" + TAG)
        else:
            denied_it += 1
            with pytest.raises(CorruptionError, match="denies a key"):
                check(table)
    assert min(found_it, denied_it) > 100


@pytest.mark.parametrize("order", ["ac", "ca", "aa", "cc", "acac", "aacca"])
def test_blocks_that_overlap_or_do_not_adjoin(order: str) -> None:
    first, second = sealed(with_tag([(b"a", b"1")])), sealed(with_tag([(b"c", b"2")]))
    rows = {"a": (b"a", b"1"), "c": (b"c", b"2")}
    handles = {
        "a": BlockHandle(0, len(first) - 5),
        "c": BlockHandle(len(first) + 7, len(second) - 5),
    }
    index = [(b"%d" % at, handles[name].encode()) for at, name in enumerate(order)]
    data = assemble([], extra=first + b"padding" + second, index_rows=index)
    table, _ = opened(data)
    for readahead in (0, 1000):
        assert all_rows(table, readahead) == [rows[name] for name in order]
    for number in range(len(order)):
        for back in (False, True):
            ahead = table.read_ahead(number, 9, back, ReadCounters())
            expected = on_the_way(table, number, back)
            for at in [] if ahead is None else numbers_of(ahead, back):
                _, block = table.find_ahead(at, ReadCounters(), ahead)
                assert block.data == expected[abs(at - number)]


@pytest.mark.parametrize("place", ["data", "index", "metaindex"])
def test_a_block_that_is_none(place: str) -> None:
    """Its checksum is right, its restart points are not."""
    bad = seal_block(b"\xff\xff\xff\xff", NO_COMPRESSION)
    good = assemble([([(b"a", b"")], b"b")])
    footer = Footer.decode(good[-FOOTER_SIZE:])
    body = good[:-FOOTER_SIZE]
    handle = BlockHandle(len(body), 4)
    options = SMALL._replace(filter_policy=BLOOM)
    if place == "data":
        data = assemble([], extra=bad, index_rows=[(b"b", BlockHandle(0, 4).encode())])
        table, _ = opened(data, options)
        for call in ways_to_read(table, b"a"):
            with pytest.raises(CorruptionError, match="restart") as caught:
                call()
            assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", 0)
        return
    if place == "metaindex":
        wrong = Footer(handle, footer.index)
    else:
        wrong = Footer(footer.metaindex, handle)
    with pytest.raises(CorruptionError, match="restart") as caught:
        Table(options, BytesFile(body + bad + wrong.encode()))
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", handle.offset)


def test_entries_that_are_none_in_a_block_that_is_one() -> None:
    bad = seal_block(b"\x09\x09\x01k" + TAG + b"v" + b"\0\0\0\0\x01\0\0\0", NO_COMPRESSION)
    index = [(b"z", BlockHandle(0, len(bad) - 5).encode())]
    table, _ = opened(assemble([], extra=bad, index_rows=index))
    for call in ways_to_read(table, b"a"):
        with pytest.raises(CorruptionError, match=r"shares more|incomplete") as caught:
            call()
        assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", 0)


def test_a_key_without_a_tag() -> None:
    bad = sealed([(b"short", b"v")])
    index = [(b"z", BlockHandle(0, len(bad) - 5).encode())]
    for comparator in COMPARATORS:
        options = SMALL._replace(comparator=comparator)
        table, _ = opened(assemble([], extra=bad, index_rows=index), options)
        for call in ways_to_read(table, b"z"):
            with pytest.raises(CorruptionError, match="shorter than its tag") as caught:
                call()
            assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", 0)


@pytest.mark.parametrize("size", range(8))
def test_an_index_key_without_a_tag(size: int) -> None:
    good = assemble([([(b"a", b"")], b"b")])
    footer = Footer.decode(good[-FOOTER_SIZE:])
    stored = sealed([(b"k" * size, BlockHandle(0, 1).encode())])
    wrong = Footer(footer.metaindex, BlockHandle(footer.index.offset, len(stored) - 5))
    data = good[: footer.index.offset] + stored + wrong.encode()
    with pytest.raises(CorruptionError, match="shorter than its tag") as caught:
        Table(SMALL, BytesFile(data))
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", footer.index.offset)


def test_keys_that_would_outgrow_memory() -> None:
    content = b"\x00\xa0\x8d\x06\x00" + b"k" * 99_992 + TAG + b"\xa0\x8d\x06\x00\x00" * 100_000
    bad = seal_block(content + b"\0\0\0\0\x01\0\0\0", SNAPPY)
    index = [(b"z", BlockHandle(0, len(bad) - 5).encode())]
    options = SMALL._replace(max_block_bytes=1 << 20)
    data = assemble([], extra=bad, index_rows=index)
    table, _ = opened(data, options)
    assert len(data) < 50_000  # and its keys are 10 GB
    with pytest.raises(CorruptionError, match="share more"):
        all_rows(table)
    with pytest.raises(CorruptionError, match="share more"):
        rows_from(table, b"", ReadCounters(), True)


def test_an_unknown_codec_is_named() -> None:
    typed = sealed(with_tag([(b"a", b"1")]))[:-5] + b"\x09"
    extra = typed + masked_crc32c(typed).to_bytes(4, "little")
    index = [(b"b", BlockHandle(0, len(typed) - 1).encode())]
    table, _ = opened(assemble([], extra=extra, index_rows=index))
    with pytest.raises(UnsupportedCompressionError, match=r"000005\.ldb: unknown .* type 9"):
        get(table, b"a")


def test_a_block_read_is_under_way_until_it_ends_or_fails() -> None:
    seen: list[int] = []
    fails = False

    def before(call: str, name: str) -> None:
        if call == "read" and name.endswith(".ldb"):
            seen.append(BLOCK_READS.under_way)
            if fails:
                raise OSError(errno.EIO, "unreadable")

    with DB("db", create_if_missing=True, env=HookedEnv(before), lru_cache_size=0) as db:
        db.put(b"k", b"v")
        db.flush()
        assert b"k" in db  # opens the table
        seen.clear()
        ended = BLOCK_READS.ended
        db.get(b"k")
        list(db)
        fails = True
        with pytest.raises(lsmkv.IOError):
            db.get(b"k")
    assert seen == [1, 1, 1]
    assert BLOCK_READS.under_way == 0
    assert BLOCK_READS.ended == ended + 3
