"""lsmkv.table.reader: answers against a sorted dict, reads counted at the file, and damage."""

from __future__ import annotations

import random
import tracemalloc
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.counters import ReadCounters
from lsmkv.env.base import RandomAccessFile
from lsmkv.env.memory import MemoryEnv
from lsmkv.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.filter.bloom import BloomFilterPolicy
from lsmkv.options import FilterLayout, Options
from lsmkv.table.block_builder import BlockBuilder
from lsmkv.table.builder import TableBuilder
from lsmkv.table.filter_block import FilterBlockReader
from lsmkv.table.format import FOOTER_SIZE, BlockHandle, Footer, seal_block
from lsmkv.table.reader import FROM_CACHE, FROM_FILE, RULED_OUT, Entries, Readahead, Table
from lsmkv.util.block_cache import BlockCache
from lsmkv.util.checksum import masked_crc32c
from lsmkv.util.comparator import BYTEWISE, REVERSE_BYTEWISE, CallableComparator, Comparator
from lsmkv.util.compression import NO_COMPRESSION, SNAPPY, ZSTD

Row = tuple[bytes, bytes]

BLOOM = BloomFilterPolicy(10)
PLAIN = Options(compression=NO_COMPRESSION)
SMALL = PLAIN._replace(block_size=64)
LAYOUTS: list[FilterLayout] = ["block", "table", "both"]


class CountingFile(RandomAccessFile):
    """A file in memory that keeps a list of what was read."""

    def __init__(self, data: bytes) -> None:
        self.path = "db/000005.ldb"
        self.data = data
        self.size = len(data)
        self.reads: list[tuple[int, int]] = []
        self.closed = False

    def read(self, offset: int, length: int) -> bytes:
        self.reads.append((offset, length))
        return self.data[offset : offset + length]

    def close(self) -> None:
        self.closed = True


class OneAnswer:
    """A policy that says the same of every key, and keeps which filters it was asked."""

    name = "test.OneAnswer"

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked: list[bytes] = []

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return b"%d" % len(keys)

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        self.asked.append(filter_data)
        return self.answer


def build(rows: Sequence[Row], options: Options = SMALL) -> bytes:
    directory = MemoryEnv().open_directory("/")
    with directory.create("table") as file:
        builder = TableBuilder(options, file)
        for key, value in rows:
            builder.add(key, value)
        builder.finish()
    return directory.read_file("table", builder.file_size)


def opened(data: bytes, options: Options = SMALL) -> tuple[Table, CountingFile]:
    """The table, and its file with the reads of opening forgotten."""
    file = CountingFile(data)
    table = Table(options, file)
    file.reads.clear()
    return table, file


def rows_of(pieces: Iterator[Entries]) -> list[Row]:
    return [row for keys, values in pieces for row in zip(keys, values, strict=True)]


def ways_to_read(table: Table, key: bytes) -> list[Callable[[], object]]:
    """Each way to come upon the block where ``key`` would be."""
    counters = ReadCounters()
    return [
        lambda: table.get(key, -1, counters),
        lambda: rows_of(table.scan(None, counters)),
        lambda: rows_of(table.scan(key, counters)),
        lambda: rows_of(table.scan(None, counters, readahead=5000)),
        lambda: rows_of(table.scan_back(None, counters)),
        lambda: rows_of(table.scan_back(key, counters)),
        table.check,
    ]


def everything(data: bytes, options: Options, probes: Sequence[bytes]) -> object:
    """All that a table can be asked; equal tables give equal answers."""
    counters = ReadCounters()
    table = Table(options, CountingFile(data))
    return (
        rows_of(table.scan(None, counters)),
        rows_of(table.scan(None, counters, readahead=1000)),
        rows_of(table.scan_back(None, counters)),
        [table.get(key, -1, counters)[1:] for key in probes],
        [rows_of(table.scan(key, counters)) for key in probes],
    )


def assemble(
    blocks: Sequence[tuple[Sequence[Row], bytes]],
    meta: Sequence[Row] = (),
    extra: bytes = b"",
    index_rows: Sequence[Row] | None = None,
) -> bytes:
    """A table by hand: ``(rows, index key)`` of each block, in whatever disorder."""
    data = bytearray(extra)
    index = []
    for rows, index_key in blocks:
        stored = sealed(rows)
        index.append((index_key, BlockHandle(len(data), len(stored) - 5).encode()))
        data += stored
    handles = []
    for rows in (meta, index if index_rows is None else index_rows):
        stored = sealed(rows)
        handles.append(BlockHandle(len(data), len(stored) - 5))
        data += stored
    return bytes(data) + Footer(*handles).encode()


def sealed(rows: Sequence[Row]) -> bytes:
    builder = BlockBuilder(16)
    for key, value in rows:
        builder.add(key, value)
    return seal_block(builder.finish(), NO_COMPRESSION)


ROWS = [(b"k%04d" % number, b"value %d" % number) for number in range(0, 2000, 2)]
ABSENT = [b"k%04d" % number for number in range(1, 2000, 2)]


# Opening


@pytest.mark.parametrize(
    ("layout", "policy", "reads"),
    [("block", None, 2), ("block", BLOOM, 4), ("table", BLOOM, 4), ("both", BLOOM, 5)],
)
def test_opening_counts_its_reads(
    layout: FilterLayout, policy: BloomFilterPolicy | None, reads: int
) -> None:
    options = SMALL._replace(filter_policy=policy, filter_layout=layout)
    file = CountingFile(build(ROWS, options))
    table = Table(options, file)
    assert table.metadata_reads == len(file.reads) == reads
    assert table.metadata_bytes == sum(length for _, length in file.reads)
    assert table.has_filter == (policy is not None)
    assert table.path == file.path
    table.close()
    assert file.closed


def test_readers_use_the_filters_that_they_find() -> None:
    for written in LAYOUTS:
        data = build(ROWS, SMALL._replace(filter_policy=BLOOM, filter_layout=written))
        for told in LAYOUTS:
            options = SMALL._replace(filter_policy=BLOOM, filter_layout=told)
            table, _ = opened(data, options)
            assert table.has_filter
            assert len(table.filters_for(ROWS[0][0])) == (2 if written == "both" else 1)


def test_filters_of_another_policy_are_not_read() -> None:
    data = build(ROWS, SMALL._replace(filter_policy=BLOOM, filter_layout="both"))
    policy = OneAnswer(False)
    table, _ = opened(data, SMALL._replace(filter_policy=policy))
    assert not table.has_filter
    assert table.get(*ROWS[3][:1], -1, ReadCounters())[1:] == ROWS[3]
    assert policy.asked == []


# Get


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("hashed", [False, True], ids=["by key", "by hash"])
def test_get_asks_the_filter_before_it_reads(layout: FilterLayout, hashed: bool) -> None:
    options = SMALL._replace(filter_policy=BLOOM, filter_layout=layout)
    table, file = opened(build(ROWS, options), options)
    counters = ReadCounters()
    ruled_out = 0
    for key in ABSENT:
        file.reads.clear()
        negatives = counters.filter_negatives
        outcome, found, value = table.get(key, BLOOM.key_hash(key) if hashed else -1, counters)
        assert found != key
        if outcome == RULED_OUT:
            assert (found, value, file.reads) == (None, b"", [])
            assert counters.filter_negatives == negatives + 1
            ruled_out += 1
        else:
            assert outcome == FROM_FILE
            assert len(file.reads) == 1
            assert counters.filter_negatives == negatives
    assert ruled_out >= 0.96 * len(ABSENT)
    assert counters.blocks_read == len(ABSENT) - ruled_out
    for key, value in ROWS:
        assert table.get(key, -1, counters) == (FROM_FILE, key, value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_after_a_no_the_file_is_not_touched(layout: FilterLayout) -> None:
    policy = OneAnswer(False)
    options = SMALL._replace(
        filter_policy=policy, filter_layout=layout, block_cache=BlockCache(1 << 20)
    )
    table, file = opened(build(ROWS, options), options)
    counters = ReadCounters()
    for key in [*ABSENT, *(key for key, _ in ROWS)]:
        assert table.get(key, -1, counters) == (RULED_OUT, None, b"")
    assert file.reads == []
    assert counters.blocks_read == counters.bytes_read == counters.block_cache_hits == 0
    asked = len(ABSENT) + len(ROWS)
    assert counters.filters_asked == counters.filter_negatives == len(policy.asked) == asked
    assert table.get(b"z", -1, counters) == (RULED_OUT, None, b"")  # the index knew
    assert counters.filters_asked == asked


@pytest.mark.parametrize("layout", LAYOUTS)
def test_after_a_maybe_one_block_is_read(layout: FilterLayout) -> None:
    policy = OneAnswer(True)
    options = SMALL._replace(filter_policy=policy, filter_layout=layout)
    table, file = opened(build(ROWS, options), options)
    counters = ReadCounters()
    for key, value in ROWS:
        file.reads.clear()
        assert table.get(key, -1, counters) == (FROM_FILE, key, value)
        assert len(file.reads) == 1
    filters = 2 if layout == "both" else 1
    assert counters.filters_asked == filters * len(ROWS)
    assert counters.filter_positives == filters * len(ROWS)
    assert counters.filter_negatives == 0


def test_the_whole_tables_filter_is_asked_first() -> None:
    policy = OneAnswer(True)
    options = SMALL._replace(filter_policy=policy, filter_layout="both")
    table, _ = opened(build(ROWS, options), options)
    table.get(ROWS[0][0], -1, ReadCounters())
    assert policy.asked[0] == b"%d" % len(ROWS)
    assert policy.asked == table.filters_for(ROWS[0][0])
    policy.answer = False
    policy.asked.clear()
    table.get(ROWS[0][0], -1, ReadCounters())
    assert policy.asked == [b"%d" % len(ROWS)]


def test_the_filter_asked_is_that_of_the_keys_own_block() -> None:
    options = SMALL._replace(filter_policy=BLOOM, block_size=512)
    table, _ = opened(build(ROWS, options), options)
    for key, _ in ROWS:
        (data,) = table.filters_for(key)
        assert BLOOM.key_may_match(key, data)
    assert len({bytes(table.filters_for(key)[0]) for key, _ in ROWS}) > 5
    assert table.filters_for(b"l\0") == []  # past the last index key, which is "l"


def test_counters_agree_with_the_file() -> None:
    options = SMALL._replace(filter_policy=BLOOM, block_size=300)
    table, file = opened(build(ROWS, options), options)
    counters = ReadCounters()
    for key in [*ABSENT, *(key for key, _ in ROWS)]:
        table.get(key, -1, counters)
    for start in (None, b"", b"k0100", b"k0101", b"z"):
        rows_of(table.scan(start, counters))
        rows_of(table.scan_back(start, counters))
    assert counters.blocks_read == len(file.reads)
    assert counters.bytes_read == sum(length for _, length in file.reads)
    # Reading ahead takes fewer reads for as many blocks and bytes.
    before = counters.blocks_read, counters.bytes_read
    file.reads.clear()
    rows_of(table.scan(None, counters, readahead=2000))
    assert counters.blocks_read - before[0] == table.num_blocks
    assert counters.bytes_read - before[1] == sum(length for _, length in file.reads)
    assert len(file.reads) < table.num_blocks / 5


def test_get_returns_the_first_entry_at_or_after_the_key() -> None:
    table, _ = opened(build([(b"b", b"1"), (b"d", b"2")], PLAIN), PLAIN)
    counters = ReadCounters()
    for key, expected in {
        b"": (FROM_FILE, b"b", b"1"),
        b"a": (FROM_FILE, b"b", b"1"),
        b"b": (FROM_FILE, b"b", b"1"),
        b"b\0": (FROM_FILE, b"d", b"2"),
        b"d": (FROM_FILE, b"d", b"2"),
        b"d\0": (FROM_FILE, None, b""),  # the index key is "e": the block had to be read
        b"e": (FROM_FILE, None, b""),
        b"e\0": (RULED_OUT, None, b""),
    }.items():
        assert table.get(key, -1, counters) == expected


# Versions of one key


class ByTag:
    """Keys that end in a tag: in the order of their bytes but for it, then the larger one first."""

    name = "test.ByTag"
    coarse_tail = 8

    def compare(self, a: bytes, b: bytes, /) -> int:
        x, y = self.sort_key(a), self.sort_key(b)
        return (x > y) - (x < y)

    def sort_key(self, key: bytes, /) -> tuple[bytes, int]:
        return key[:-8], -int.from_bytes(key[-8:], "little")

    def coarse_key(self, key: bytes, /) -> bytes:
        return key[:-8]

    def find_shortest_separator(self, start: bytes, limit: bytes, /) -> bytes:
        return start

    def find_short_successor(self, key: bytes, /) -> bytes:
        return key


class NamesAlone(OneAnswer):
    """Rules out what it was not given, and looks at no tag."""

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return b"".join(b"<%s>" % key[:-8] for key in keys)

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return b"<%s>" % key[:-8] in filter_data


VERSIONS = [
    (b"name%04d" % name + tag.to_bytes(8, "little"), b"%d" % tag)
    for name in range(0, 300, 3)
    for tag in range(1 + name % 13 * 256, 0, -256)
]


@pytest.mark.parametrize("policy", [None, NamesAlone(True)], ids=["no filter", "by names"])
@pytest.mark.parametrize("cached", [False, True])
def test_newest(policy: NamesAlone | None, cached: bool) -> None:
    """Versions of one key fill several blocks; the first is found, and no other key's."""
    cache: BlockCache[tuple[int, int], object] | None = BlockCache(1 << 20) if cached else None
    options = SMALL._replace(comparator=ByTag(), filter_policy=policy, block_cache=cache)
    table, file = opened(build(VERSIONS, options), options)
    newest = {key[:-8]: (int(value), value) for key, value in reversed(VERSIONS)}
    counters = ReadCounters()
    for name in [b"", *(b"name%04d" % number for number in range(302)), b"name", b"z"]:
        for _ in range(2):
            before = counters.filter_negatives
            file.reads.clear()
            outcome, tag, value = table.newest(name, -1, counters, True)
            assert (tag, value) == newest.get(name, (0, None))
            assert len(file.reads) == (1 if outcome == FROM_FILE else 0)
            if policy is not None and name not in newest:
                assert outcome == RULED_OUT
                assert counters.filter_negatives == before + (name < VERSIONS[-1][0][:-8])
            if value is not None:
                again = table.newest(name, -1, counters, False)
                assert again == (FROM_CACHE if cached else FROM_FILE, tag, value)
    assert table.newest(b"z", -1, counters, True) == (RULED_OUT, 0, None)


@pytest.mark.parametrize("count", [0, 1, 3, 40])
def test_blooms_say_the_same_by_place_as_by_offset(count: int) -> None:
    """Though there be fewer filters than blocks, or empty ones."""
    options = SMALL._replace(filter_policy=BLOOM)
    table, _ = opened(build(ROWS, options), options)
    rng = random.Random(count)
    unfiltered = 0
    for _ in range(30):
        filters = [BLOOM.create_filter([key for key, _ in rng.sample(ROWS, 9)]) for _ in range(3)]
        contents = b"".join(filters)
        starts = sorted(rng.choice([0, *range(13, len(contents) + 1)]) for _ in range(count))
        offsets = b"".join(start.to_bytes(4, "little") for start in [*starts, len(contents)])
        reader = FilterBlockReader(BLOOM, contents + offsets + bytes([rng.choice([7, 9, 11])]))
        table._filters = [reader]
        table._place_filters(reader)
        for number in range(table.num_blocks):
            key, _ = rng.choice(ROWS)
            known = BLOOM.key_hash(key)
            offset = table.approximate_offset(table.index_key(number))
            expected = reader.may_match(offset, key, known)
            assert table._may_match(number, key, known, ReadCounters()) == expected
            unfiltered += reader.filter_for(offset) is None
    assert unfiltered > 0


# Several blocks of one read


def on_the_way(table: Table, number: int, back: bool) -> list[bytes]:
    """The content of a block and of all that follow it."""
    numbers = range(number, -1, -1) if back else range(number, table.num_blocks)
    return [table.block(at, ReadCounters())[1].data for at in numbers]


def numbers_of(span: Readahead, back: bool) -> list[int]:
    numbers = list(range(span.first, span.stop))
    return numbers[::-1] if back else numbers


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("number", [0, 1, 50, -2, -1])
@pytest.mark.parametrize("most", [2, 7, 1000])
def test_neighbours_come_with_a_block(back: bool, number: int, most: int) -> None:
    options = SMALL._replace(block_cache=BlockCache(1 << 20))
    table, file = opened(build(ROWS, options), options)
    number %= table.num_blocks
    expected = on_the_way(table, number, back)[:most]
    file.reads.clear()
    counters = ReadCounters()
    span = table.span(number, most, back, counters)
    if len(expected) == 1:
        assert span is None
        assert file.reads == []
        return
    assert span is not None
    numbers = numbers_of(span, back)
    blocks = [table.block(at, counters, span)[1] for at in numbers]
    assert numbers[0] == number
    assert [block.data for block in blocks] == expected
    assert len(file.reads) == 1
    assert counters.blocks_read == len(blocks)
    assert counters.bytes_read == file.reads[0][1]
    for at, block in zip(numbers, blocks, strict=True):
        table.keep(at, block)
    for at, block in zip(numbers, blocks, strict=True):
        assert table.span(at, most, back, counters) is None
        assert table.block(at, counters) == (FROM_CACHE, block)
    assert len(file.reads) == 1
    assert counters.block_cache_hits == len(blocks)


@pytest.mark.parametrize("most", [-1, 0, 1])
def test_one_block_is_no_span(most: int) -> None:
    table, file = opened(build(ROWS))
    assert table.span(50, most, False, ReadCounters()) is None
    assert file.reads == []


@pytest.mark.parametrize("back", [False, True])
def test_cached_blocks_are_not_read_ahead(back: bool) -> None:
    options = SMALL._replace(block_cache=BlockCache(1 << 20))
    table, _ = opened(build(ROWS, options), options)
    counters = ReadCounters()
    for number in (45, 55):
        table.keep(number, table.block(number, counters)[1])
    for _ in range(2):  # nothing is kept of what is read past the cache
        span = table.span(50, 100, back, counters)
        assert span is not None
        assert numbers_of(span, back) == ([50, 49, 48, 47, 46] if back else [50, 51, 52, 53, 54])
        for number in numbers_of(span, back):
            table.block(number, counters, span)


@pytest.mark.parametrize("back", [False, True])
def test_one_read_has_a_limit(back: bool) -> None:
    rows = [(b"%04d" % number, bytes(10_000)) for number in range(30)]
    table, file = opened(build(rows))
    span = table.span(15, 1000, back, ReadCounters())
    assert span is not None
    assert span.stop - span.first == 6
    assert 50_000 < file.reads[0][1] <= 65_536
    for large in (15, 14, 16):  # no neighbour costs more than the block itself
        some = [*rows[:large], (rows[large][0], bytes(100_000)), *rows[large + 1 :]]
        table, file = opened(build(some))
        span = table.span(15, 1000, back, ReadCounters())
        assert (span is None) == (large == 15 or (large == 14) == back)
        assert sum(length for _, length in file.reads) <= 65_536


@pytest.mark.parametrize("back", [False, True])
def test_blocks_read_ahead_are_decompressed_when_they_are_read(back: bool) -> None:
    """However much a few bytes may unpack to."""
    options = PLAIN._replace(compression=ZSTD)
    rows = [(b"%04d" % number, bytes(1 << 20)) for number in range(12)]
    table, _ = opened(build(rows, options), options)
    tracemalloc.start()
    try:
        span = table.span(6, 1000, back, ReadCounters())
        assert span is not None
        assert span.stop - span.first > 5
        for number in numbers_of(span, back):
            table.block(number, ReadCounters(), span)
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
def test_damage_of_a_block_read_ahead_is_raised_when_it_is_read(back: bool, damage: str) -> None:
    data = build(ROWS)
    whole, _ = opened(data)
    bad = 40 if back else 60
    key = whole.index_key(bad)
    offset = whole.approximate_offset(key)
    end = whole.approximate_offset(whole.index_key(bad + 1))
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
    span = table.span(50, 1000, back, counters)
    assert span is not None
    expected = on_the_way(whole, 50, back)
    for number in numbers_of(span, back)[:10]:
        assert table.block(number, counters, span)[1].data == expected[abs(number - 50)]
    for its in (None, span):
        with pytest.raises((CorruptionError, UnsupportedCompressionError), match=str(offset)):
            table.block(bad, counters, its)


@pytest.mark.parametrize("back", [False, True])
def test_a_span_that_cannot_be_read_is_none(back: bool) -> None:
    table, file = opened(build(ROWS))
    bad = 40 if back else 60
    start = table.approximate_offset(table.index_key(bad))

    def read(offset: int, length: int) -> bytes:
        if offset <= start < offset + length:
            raise OSError(5, "the disk")
        return file.data[offset : offset + length]

    file.read = read  # type: ignore[method-assign]
    counters = ReadCounters()
    assert table.span(50, 1000, back, counters) is None
    assert counters.blocks_read == 0
    table.block(50, counters)
    assert table.span(50, 10, back, counters) is not None
    with pytest.raises(OSError, match="the disk"):
        table.block(bad, counters)


# The cache


def test_the_block_cache_serves_the_second_lookup() -> None:
    options = SMALL._replace(block_cache=BlockCache(1 << 20))
    table, file = opened(build(ROWS, options), options)
    counters = ReadCounters()
    assert table.get(b"k0000", -1, counters) == (FROM_FILE, *ROWS[0])
    assert table.get(b"k0000", -1, counters) == (FROM_CACHE, *ROWS[0])
    assert table.get(b"k0001", -1, counters)[0] == FROM_CACHE
    assert (counters.blocks_read, counters.block_cache_hits, len(file.reads)) == (1, 2, 1)
    rows_of(table.scan(None, counters))
    assert len(file.reads) == counters.blocks_read == table.num_blocks
    rows_of(table.scan_back(None, counters))
    assert len(file.reads) == table.num_blocks
    assert counters.block_cache_hits == 3 + table.num_blocks


@pytest.mark.parametrize("how", ["clear", "push out"])
def test_a_block_that_left_the_cache_is_read_again(how: str) -> None:
    cache: BlockCache[tuple[int, int], object] = BlockCache(1 << 20)
    table, file = opened(build(ROWS, SMALL), SMALL._replace(block_cache=cache))
    for _ in range(2):
        assert table.get(*ROWS[0][:1], -1, ReadCounters()) == (FROM_FILE, *ROWS[0])
        assert table.get(*ROWS[0][:1], -1, ReadCounters()) == (FROM_CACHE, *ROWS[0])
        if how == "clear":
            cache.clear()
        else:
            cache.add("as large as all", 1 << 20)
    assert len(file.reads) == 2


def test_fill_cache_off_leaves_the_cache_alone() -> None:
    cache: BlockCache[tuple[int, int], object] = BlockCache(1 << 20)
    options = SMALL._replace(block_cache=cache)
    table, _ = opened(build(ROWS, options), options)
    counters = ReadCounters()
    table.get(b"k0000", -1, counters, fill_cache=False)
    rows_of(table.scan(None, counters, fill_cache=False))
    rows_of(table.scan(b"k", counters, fill_cache=False))
    rows_of(table.scan_back(None, counters, fill_cache=False))
    rows_of(table.scan_back(b"k0300", counters, fill_cache=False))
    rows_of(table.scan(None, counters, readahead=1000))
    table.check()
    assert len(cache) == 0


def test_the_caches_charge_is_the_block_decompressed() -> None:
    cache: BlockCache[tuple[int, int], object] = BlockCache(1 << 20)
    options = PLAIN._replace(block_cache=cache, compression=SNAPPY)
    table, _ = opened(build([(b"k", b"v" * 3000)], options), options)
    table.get(b"k", -1, ReadCounters())
    assert cache.usage == 3 + 1 + 1 + 3000 + 8  # the value's length takes two bytes


def test_a_block_that_two_have_read_is_charged_once() -> None:
    cache: BlockCache[tuple[int, int], object] = BlockCache(1 << 20)
    table, _ = opened(build(ROWS, SMALL), SMALL._replace(block_cache=cache))
    (_, first), (_, second) = (table.block(1, ReadCounters()) for _ in range(2))
    for block in (first, second):
        table.keep(1, block)
        assert (len(cache), cache.usage) == (1, len(first))
    assert table.block(1, ReadCounters()) == (FROM_CACHE, first)
    cache.clear()
    table.keep(1, second)
    assert table.block(1, ReadCounters()) == (FROM_CACHE, second)


def test_tables_that_share_a_cache_and_a_path_do_not_mix() -> None:
    options = SMALL._replace(block_cache=BlockCache(1 << 20))
    counters = ReadCounters()
    for value in (b"old", b"new"):
        table, _ = opened(build([(b"k", value)], options), options)
        assert table.get(b"k", -1, counters) == (FROM_FILE, b"k", value)


# Scans against a sorted list


def starts_around(rows: Sequence[Row]) -> list[bytes]:
    """Every kind of place to start: before all, at, just before and just after each key."""
    starts = [b"", b"\0", b"\xff" * 30]
    for key, _ in rows:
        starts += [key, key + b"\0", key[:-1], key[:-1] + b"\xff"]
    return starts


def check_scans(table: Table, rows: Sequence[Row], reverse: bool = False) -> None:
    order = [key for key, _ in rows] if not reverse else [key for key, _ in rows][::-1]
    counters = ReadCounters()
    for readahead in (0, 1, 200, 1 << 20):
        assert rows_of(table.scan(None, counters, readahead=readahead)) == rows
    back = list(table.scan_back(None, counters))
    assert [row for piece in back[::-1] for row in zip(*piece, strict=True)] == rows
    for start in starts_around(rows):
        at = bisect_left(order, start)
        if reverse:
            at = len(rows) - at - (start in order)
        for readahead in (0, 1, 200):
            assert rows_of(table.scan(start, counters, readahead=readahead)) == rows[at:]
        back = list(table.scan_back(start, counters))
        assert [row for piece in back[::-1] for row in zip(*piece, strict=True)] == rows[:at]
        _, found, value = table.get(start, -1, counters)
        if start in order:
            assert (found, value) == rows[at]
        else:
            assert found is None or (found, value) == rows[at]


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
    check_scans(table, rows)
    table.check()


def test_an_empty_table() -> None:
    for policy in (None, BLOOM):
        options = SMALL._replace(filter_policy=policy, filter_layout="both")
        table, file = opened(build([], options), options)
        assert table.num_blocks == 0
        check_scans(table, [])
        table.check()
        assert table.get(b"k", -1, ReadCounters()) == (RULED_OUT, None, b"")
        assert table.approximate_offset(b"k") <= file.size
        assert table.filters_for(b"k") == []
        assert file.reads == []


@pytest.mark.parametrize("row", [(b"", b""), (b"k", b"v"), (b"\xff\xff", b"x" * 10_000)])
def test_a_table_of_one_entry(row: Row) -> None:
    table, _ = opened(build([row]))
    assert table.num_blocks == 1
    check_scans(table, [row])
    table.check()


def test_pieces_are_blocks() -> None:
    table, _ = opened(build(ROWS))
    pieces = list(table.scan(None, ReadCounters()))
    assert len(pieces) == table.num_blocks > 100
    assert list(table.scan(None, ReadCounters(), readahead=777)) == pieces
    assert list(table.scan_back(None, ReadCounters())) == pieces[::-1]


def test_a_scan_that_is_left_reads_no_further() -> None:
    table, file = opened(build(ROWS))
    counters = ReadCounters()
    scan = table.scan(b"k0500", counters)
    assert file.reads == []
    next(scan)
    assert counters.blocks_read == len(file.reads) == 1


def test_a_folding_comparator() -> None:
    def fold(a: bytes, b: bytes) -> int:
        x, y = a.lower(), b.lower()
        return (x > y) - (x < y)

    options = SMALL._replace(comparator=CallableComparator(fold, "test.Fold"))
    rows = [(b"Apple" * 9, b"1"), (b"bEAR" * 9, b"2"), (b"CHERRY" * 9, b"3")]
    table, _ = opened(build(rows, options), options)
    counters = ReadCounters()
    assert table.get(b"bear" * 9, -1, counters)[1:] == rows[1]
    assert rows_of(table.scan(b"BEAR" * 9, counters)) == rows[1:]
    assert rows_of(table.scan_back(b"BEAR" * 9, counters)) == rows[:1]
    table.check()


keys = st.binary(max_size=10) | st.text("ab\xff", max_size=6).map(lambda text: text.encode("latin"))


@given(
    entries=st.dictionaries(keys, st.binary(max_size=60), max_size=60),
    block_size=st.sampled_from([64, 65, 100, 300, 4096]),
    interval=st.integers(1, 20),
    kind=st.sampled_from([NO_COMPRESSION, SNAPPY, ZSTD]),
    layout=st.sampled_from(LAYOUTS),
    policy=st.sampled_from([None, BLOOM, BloomFilterPolicy(1)]),
    comparator=st.sampled_from([BYTEWISE, REVERSE_BYTEWISE]),
    cached=st.booleans(),
)
def test_round_trip(
    entries: dict[bytes, bytes],
    block_size: int,
    interval: int,
    kind: int,
    layout: FilterLayout,
    policy: BloomFilterPolicy | None,
    comparator: Comparator,
    cached: bool,
) -> None:
    options = Options(
        comparator=comparator,
        block_size=block_size,
        block_restart_interval=interval,
        compression=kind,
        filter_policy=policy,
        filter_layout=layout,
        block_cache=BlockCache(1000) if cached else None,
    )
    reverse = comparator is REVERSE_BYTEWISE
    rows = sorted(entries.items(), reverse=reverse)
    table, file = opened(build(rows, options), options)
    check_scans(table, rows, reverse)
    table.check()
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


# check()


@pytest.mark.parametrize(
    ("blocks", "reason", "block"),
    [
        ([([(b"b", b""), (b"a", b"")], b"c")], "out of order", 0),
        ([([(b"a", b""), (b"a", b"")], b"c")], "out of order", 0),
        ([([(b"a", b"")], b"b"), ([(b"c", b""), (b"bb", b"")], b"d")], "out of order", 1),
        ([([(b"a", b""), (b"c", b"")], b"b")], "past its index key", 0),
        ([([(b"a", b"")], b"c"), ([(b"b", b"")], b"d")], "before its index key", 1),
        ([([(b"a", b"")], b"c"), ([(b"c", b"")], b"d")], "before its index key", 1),
        ([([(b"a", b"")], b"b"), ([], b"d")], "empty data block", 1),
    ],
)
def test_check_finds_disorder(
    blocks: list[tuple[list[Row], bytes]], reason: str, block: int
) -> None:
    table, _ = opened(assemble(blocks))
    with pytest.raises(CorruptionError, match=reason) as caught:
        table.check()
    assert caught.value.path == "db/000005.ldb"
    assert caught.value.offset == len(sealed(blocks[0][0])) * block


def test_check_passes_a_table_made_by_hand() -> None:
    table, _ = opened(assemble([([(b"a", b""), (b"b", b"")], b"b"), ([(b"c", b"")], b"d")]))
    table.check()


def test_check_reads_every_block() -> None:
    data = build(ROWS)
    table, _ = opened(data)
    for number in (0, table.num_blocks // 2, table.num_blocks - 1):
        offset = table.approximate_offset(list(table.scan(None, ReadCounters()))[number][0][0])
        damaged = data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :]
        with pytest.raises(CorruptionError, match="checksum") as caught:
            opened(damaged)[0].check()
        assert caught.value.offset == offset


# Damage at rest

FEW = [(b"a", b"1"), (b"bb", b"22"), (b"c" * 30, b"3" * 30), (b"d", b""), (b"e", b"5")]
PROBES = [b"", b"a", b"b", b"bb", b"c", b"c" * 30, b"cd", b"d", b"e", b"f", b"z"]
DAMAGED = [
    SMALL,
    SMALL._replace(filter_policy=BLOOM, compression=SNAPPY),
    SMALL._replace(filter_policy=BLOOM, filter_layout="both"),
]


def damage_in(data: bytes, options: Options, sound: object) -> CorruptionError | None:
    """The damage that reading everything comes upon; if none, the answers are the sound ones."""
    try:
        answers = everything(data, options, PROBES)
    except CorruptionError as error:
        return error
    assert answers == sound
    return None


@pytest.mark.parametrize("options", DAMAGED, ids=["plain", "snappy", "both"])
def test_any_bit_flipped(options: Options) -> None:
    data = build(FEW, options)
    sound = everything(data, options, PROBES)
    # The footer has no checksum, and its padding is not read; nor is the metaindex, where nobody
    # asks for filters.
    footer_at = len(data) - FOOTER_SIZE
    metaindex = Footer.decode(data[footer_at:]).metaindex
    unread = set(range(footer_at, len(data)))
    if options.filter_policy is None:
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


@pytest.mark.parametrize("options", DAMAGED, ids=["plain", "snappy", "both"])
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
                    Table(options, CountingFile(part))


@pytest.mark.parametrize("readahead", [0, 100_000])
def test_a_file_that_shrank_since_it_was_opened(readahead: int) -> None:
    table, file = opened(build(ROWS))
    file.data = file.data[:1000]
    with pytest.raises(CorruptionError) as caught:
        rows_of(table.scan(None, ReadCounters(), readahead=readahead))
    assert caught.value.offset is not None
    assert caught.value.offset <= 1000
    with pytest.raises(CorruptionError, match="cut short"):
        table.get(ROWS[-1][0], -1, ReadCounters())


def test_damage_is_reported_with_the_offset_of_the_block() -> None:
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
    assert table.get(ROWS[0][0], -1, ReadCounters())[1:] == ROWS[0]


# Hostile tables, their checksums right

HUGE = [BlockHandle(2**64 - 1, 2**64 - 1), BlockHandle(0, 2**64 - 1), BlockHandle(2**63, 0)]
GARBAGE = [b"", b"\x80", b"\xff" * 11, b"\x00", b"\x00" + b"\xff" * 10]


@pytest.mark.parametrize("handle", HUGE)
@pytest.mark.parametrize("policy", [None, BLOOM])
def test_handles_in_the_footer_beyond_the_file(
    handle: BlockHandle, policy: BloomFilterPolicy | None
) -> None:
    options = SMALL._replace(filter_policy=policy)
    data = build(FEW, options)
    footer = Footer.decode(data[-FOOTER_SIZE:])
    for wrong in (Footer(handle, footer.index), Footer(footer.metaindex, handle)):
        file = CountingFile(data[:-FOOTER_SIZE] + wrong.encode())
        with pytest.raises(CorruptionError, match="beyond"):
            Table(options, file)
        assert all(length < 1000 for _, length in file.reads)


@pytest.mark.parametrize(
    "value", [*(handle.encode() for handle in HUGE), BlockHandle(0, 200).encode(), *GARBAGE]
)
def test_index_entries_that_lead_nowhere(value: bytes) -> None:
    data = assemble([([(b"a", b"")], b"b")], index_rows=[(b"b", value)])
    with pytest.raises(CorruptionError) as caught:
        Table(SMALL, CountingFile(data))
    index = Footer.decode(data[-FOOTER_SIZE:]).index
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", index.offset)


@pytest.mark.parametrize("prefix", [b"filter.", b"fullfilter."])
@pytest.mark.parametrize("value", [*(handle.encode() for handle in HUGE), *GARBAGE])
def test_metaindex_entries_that_lead_nowhere(prefix: bytes, value: bytes) -> None:
    meta = [(prefix + BLOOM.name.encode(), value)]
    data = assemble([([(b"a", b"")], b"b")], meta)
    with pytest.raises(CorruptionError):
        Table(SMALL._replace(filter_policy=BLOOM), CountingFile(data))
    Table(SMALL, CountingFile(data))  # nobody asked for filters


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"\x0b",
        b"\xff\xff\xff\xff\x0b",
        b"\x05\0\0\0" + b"\0\0\0\0\x0b",
        b"\xff\xff\xff\xff" * 2 + b"\0\0\0\0\x0b",
    ],
)
def test_a_filter_block_that_is_none(contents: bytes) -> None:
    extra = seal_block(contents, NO_COMPRESSION)
    meta = [(b"filter." + BLOOM.name.encode(), BlockHandle(0, len(contents)).encode())]
    data = assemble([([(b"a", b"")], b"b")], meta, extra)
    with pytest.raises(CorruptionError) as caught:
        Table(SMALL._replace(filter_policy=BLOOM), CountingFile(data))
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", 0)


@pytest.mark.parametrize("contents", [b"", b"\0", b"\xff\x1f", bytes(8) + b"\xff", b"\xff" * 9])
def test_a_whole_table_filter_of_any_bytes(contents: bytes) -> None:
    extra = seal_block(contents, NO_COMPRESSION)
    meta = [(b"fullfilter." + BLOOM.name.encode(), BlockHandle(0, len(contents)).encode())]
    data = assemble([([(b"a", b"1")], b"b")], meta, extra)
    table, _ = opened(data, SMALL._replace(filter_policy=BLOOM))
    expected = (None, b"") if len(contents) < 2 else (b"a", b"1")
    assert table.get(b"a", -1, ReadCounters())[1:] == expected


@pytest.mark.parametrize("order", ["ac", "ca", "aa", "cc", "acac", "aacca"])
def test_blocks_that_overlap_or_do_not_adjoin(order: str) -> None:
    first, second = sealed([(b"a", b"1")]), sealed([(b"c", b"2")])
    rows = {"a": (b"a", b"1"), "c": (b"c", b"2")}
    handles = {
        "a": BlockHandle(0, len(first) - 5),
        "c": BlockHandle(len(first) + 7, len(second) - 5),
    }
    index = [(b"%d" % at, handles[name].encode()) for at, name in enumerate(order)]
    data = assemble([], extra=first + b"padding" + second, index_rows=index)
    table, _ = opened(data)
    for readahead in (0, 1000):
        found = rows_of(table.scan(None, ReadCounters(), readahead=readahead))
        assert found == [rows[name] for name in order]
    for number in range(len(order)):
        for back in (False, True):
            span = table.span(number, 9, back, ReadCounters())
            expected = on_the_way(table, number, back)
            for at in [] if span is None else numbers_of(span, back):
                _, block = table.block(at, ReadCounters(), span)
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
        Table(options, CountingFile(body + bad + wrong.encode()))
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", handle.offset)


def test_a_restart_point_inside_an_entry_is_found_by_check_alone() -> None:
    """Whoever reads all entries needs none."""
    bad = seal_block(b"\0\x01\x01kv" + b"\x02\0\0\0\x01\0\0\0", NO_COMPRESSION)
    index = [(b"z", BlockHandle(0, len(bad) - 5).encode())]
    table, _ = opened(assemble([], extra=bad, index_rows=index))
    assert rows_of(table.scan(None, ReadCounters())) == [(b"k", b"v")]
    with pytest.raises(CorruptionError, match="restart") as caught:
        table.check()
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", 0)


def test_entries_that_are_none_in_a_block_that_is_one() -> None:
    bad = seal_block(b"\x09\x01\x01kv" + b"\0\0\0\0\x01\0\0\0", NO_COMPRESSION)
    index = [(b"z", BlockHandle(0, len(bad) - 5).encode())]
    table, _ = opened(assemble([], extra=bad, index_rows=index))
    for call in ways_to_read(table, b"a"):
        with pytest.raises(CorruptionError, match="shares more") as caught:
            call()
        assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", 0)


def test_keys_that_would_outgrow_memory() -> None:
    content = b"\x00\xa0\x8d\x06\x00" + b"k" * 100_000 + b"\xa0\x8d\x06\x00\x00" * 100_000
    bad = seal_block(content + b"\0\0\0\0\x01\0\0\0", SNAPPY)
    index = [(b"z", BlockHandle(0, len(bad) - 5).encode())]
    options = SMALL._replace(max_block_bytes=1 << 20)
    data = assemble([], extra=bad, index_rows=index)
    table, _ = opened(data, options)
    assert len(data) < 50_000  # and its keys are 10 GB
    with pytest.raises(CorruptionError, match="share more"):
        rows_of(table.scan(None, ReadCounters()))
    with pytest.raises(CorruptionError, match="share more"):
        table.get(b"l", -1, ReadCounters())


def test_an_unknown_codec_is_named() -> None:
    typed = sealed([(b"a", b"1")])[:-5] + b"\x09"
    extra = typed + masked_crc32c(typed).to_bytes(4, "little")
    index = [(b"b", BlockHandle(0, len(typed) - 1).encode())]
    table, _ = opened(assemble([], extra=extra, index_rows=index))
    with pytest.raises(UnsupportedCompressionError, match=r"000005\.ldb: unknown .* type 9"):
        table.get(b"a", -1, ReadCounters())
