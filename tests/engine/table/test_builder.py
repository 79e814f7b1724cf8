"""lsmkv.engine.table.builder: exact bytes of whole tables, and LevelDB's own tables rebuilt."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from byte_files import BytesFile
from orders import COMPARATORS, FOLDING
from plain import PLAIN, TAG, Row, entries_of, with_tag

from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.env.base import WritableFile
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.format.keys import KIND_VALUE, MAX_SEQUENCE, before_versions, pack
from lsmkv.engine.options import FilterLayout, Options
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.builder import TableBuilder
from lsmkv.engine.table.format import (
    BLOCK_TRAILER_SIZE,
    FOOTER_SIZE,
    BlockHandle,
    Footer,
    open_block,
)
from lsmkv.engine.table.inspection import check
from lsmkv.engine.table.reader import Table
from lsmkv.engine.util.comparator import REVERSE_BYTEWISE, Comparator
from lsmkv.engine.util.compression import SNAPPY, ZSTD

Rows = Iterable[Row]

MIB = 1 << 20


class Sink(WritableFile):
    """A file that keeps each write apart."""

    def __init__(self) -> None:
        self.path = "sink"
        self.writes: list[bytes] = []

    @property
    def data(self) -> bytes:
        return b"".join(self.writes)

    def append(self, data: bytes) -> None:
        self.writes.append(data)

    def size(self) -> int:
        return len(self.data)

    def truncate(self, length: int) -> None:
        raise AssertionError("a table's file is only appended to")

    def sync(self) -> None:
        raise AssertionError("the caller syncs")

    def close(self) -> None:
        raise AssertionError("the caller closes")


class NamesPolicy:
    """A filter that says in clear what went into it."""

    name = "test.Names"

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return b"<" + b",".join(keys) + b">"

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return key in filter_data


def build_internal(rows: Rows, options: Options = PLAIN) -> bytes:
    """A table of internal keys."""
    sink = Sink()
    builder = TableBuilder(options, sink)
    for key, value in rows:
        builder.add(key, value)
    builder.finish()
    assert builder.file_size == len(sink.data)
    return sink.data


def build(rows: Rows, options: Options = PLAIN) -> bytes:
    """A table of plain keys."""
    return build_internal(with_tag(rows), options)


def build_entries(rows: Rows, options: Options = PLAIN, many: int = 200) -> bytes:
    """The same by entries, ``many`` to a call at most."""
    sink = Sink()
    builder = TableBuilder(options, sink)
    entries = entries_of(rows)
    user_keys = [user_key for user_key, _ in entries]
    tagged = [rest for _, rest in entries]
    at = 0
    while at < len(entries):
        stop = min(at + many, len(entries))
        upto = builder.add_entries(user_keys, tagged, at, stop, 1 << 62)
        assert upto == stop
        at = upto
    assert builder.num_entries == len(entries)
    if entries:
        assert builder.last_key == user_keys[-1] + tagged[-1][:8]
    builder.finish()
    return sink.data


def added(builder: TableBuilder, user_key: bytes, value: bytes = b"") -> None:
    builder.add(user_key + TAG, value)


def block_at(table: bytes, handle: BlockHandle) -> bytes:
    stored = table[handle.offset : handle.offset + handle.size + BLOCK_TRAILER_SIZE]
    return open_block(stored, MIB)


def pairs(table: bytes, handle: BlockHandle) -> list[tuple[bytes, bytes]]:
    return list(zip(*Block(block_at(table, handle)).entries(), strict=True))


def index_of(table: bytes) -> list[tuple[bytes, BlockHandle]]:
    footer = Footer.decode(table[-FOOTER_SIZE:])
    return [(key, BlockHandle.decode(value)[0]) for key, value in pairs(table, footer.index)]


def metaindex_of(table: bytes) -> list[tuple[bytes, BlockHandle]]:
    footer = Footer.decode(table[-FOOTER_SIZE:])
    return [(key, BlockHandle.decode(value)[0]) for key, value in pairs(table, footer.metaindex)]


def stored_type(table: bytes, handle: BlockHandle) -> int:
    return table[handle.offset + handle.size]


# Whole files


def test_an_empty_table() -> None:
    empty_block = "0000000001000000" + "00" + "c0f2a1b0"
    footer = "0008" + "0d08" + "00" * 36 + "57fb808b247547db"
    assert build([]).hex() == empty_block + empty_block + footer


def test_a_table_of_one_block() -> None:
    table = build([(b"apple", b"red"), (b"apricot", b"orange")])
    last = "01" + "ff" * 7  # the tag of a shortened key
    body = (
        # offset 0: the data block, two entries that share "ap", one restart point at 0
        "000d03" + b"apple".hex() + TAG.hex() + b"red".hex()
        + "020d06" + b"ricot".hex() + TAG.hex() + b"orange".hex()
        + "00000000" + "01000000"
        + "00" + "3d24f111"
        # 54: the metaindex, empty
        + "00000000" + "01000000" + "00" + "c0f2a1b0"
        # 67: the index: "b" -> (0, 49)
        + "000902" + b"b".hex() + last + "0031" + "00000000" + "01000000" + "00" + "4e897818"
        # 94: the footer: metaindex (54, 8), index (67, 22)
        + "3608" + "4316" + "00" * 36 + "57fb808b247547db"
    )  # fmt: skip
    assert table.hex() == body


def test_a_table_with_a_filter() -> None:
    options = PLAIN._replace(filter_policy=BloomFilterPolicy(10))
    table = build([(b"hello", b""), (b"world", b"")], options)
    metaindex = [(b"filter.leveldb.BuiltinBloomFilter2", BlockHandle(45, 18))]
    assert metaindex_of(table) == metaindex
    assert block_at(table, metaindex[0][1]).hex() == (
        "114000414410401006" + "00000000" + "09000000" + "0b"
    )


@pytest.mark.parametrize("layout", ["block", "table", "both"])
def test_metaindex_of_the_three_layouts(layout: FilterLayout) -> None:
    options = PLAIN._replace(filter_policy=NamesPolicy(), filter_layout=layout, block_size=2500)
    rows = [(b"a", b"x" * 2600), (b"b", b"x" * 2600), (b"c", b""), (b"d", b"")]
    table = build(rows, options)
    end = sum(handle.size + BLOCK_TRAILER_SIZE for _, handle in index_of(table))
    # The third block starts at 5,252, in the third stretch of 2 KiB.
    per_block = b"<a><b><c,d>" + b"".join(n.to_bytes(4, "little") for n in (0, 3, 6, 11)) + b"\x0b"
    whole = b"<a,b,c,d>"
    found = [(key, block_at(table, handle)) for key, handle in metaindex_of(table)]
    expected = {
        "block": [(b"filter.test.Names", per_block)],
        "table": [(b"fullfilter.test.Names", whole)],
        "both": [(b"filter.test.Names", per_block), (b"fullfilter.test.Names", whole)],
    }
    assert found == expected[layout]
    at = end  # right behind the data blocks, one after the other
    for _, handle in metaindex_of(table):
        assert handle.offset == at
        at += handle.size + BLOCK_TRAILER_SIZE
    assert Footer.decode(table[-FOOTER_SIZE:]).metaindex.offset == at


def test_no_policy_no_filter() -> None:
    for layout in ("block", "table", "both"):
        assert metaindex_of(build([(b"k", b"v")], PLAIN._replace(filter_layout=layout))) == []


def test_filters_are_never_compressed() -> None:
    options = PLAIN._replace(compression=SNAPPY, filter_policy=NamesPolicy(), filter_layout="both")
    table = build([(b"k%05d" % number, b"v" * 20) for number in range(2000)], options)
    assert [stored_type(table, handle) for _, handle in metaindex_of(table)] == [0, 0]
    footer = Footer.decode(table[-FOOTER_SIZE:])
    assert stored_type(table, footer.index) == SNAPPY
    assert {stored_type(table, handle) for _, handle in index_of(table)} == {SNAPPY}


# Blocks and the index


def test_index_separators_are_short() -> None:
    rows = [(key, b"v" * 100) for key in (b"abcdefgh", b"abxyz", b"b", b"caaa", b"d", b"d\xff")]
    table = build(rows, PLAIN._replace(block_size=64))
    assert [key for key, _ in index_of(table)] == [
        before_versions(b"abd"),  # between abcdefgh and abxyz
        b"abxyz" + TAG,  # nothing shorter lies before b
        b"b" + TAG,
        b"caaa" + TAG,
        b"d" + TAG,
        before_versions(b"e"),  # behind everything
    ]


def test_versions_of_one_key_have_their_last_one_in_the_index() -> None:
    rows = [(pack(b"key", sequence, sequence % 2), b"v" * 100) for sequence in (9, 4, 3, 1)]
    rows.append((pack(b"keys", 7, KIND_VALUE), b""))
    table = build_internal(rows, PLAIN._replace(block_size=64))
    index = [key for key, _ in index_of(table)]
    assert index == [*(key for key, _ in rows[:4]), before_versions(b"l")]


def test_the_last_index_key_where_none_is_shorter() -> None:
    table = build([(b"\xff\xff", b"")])
    assert [key for key, _ in index_of(table)] == [b"\xff\xff" + TAG]


def test_another_order_keeps_whole_keys_in_the_index() -> None:
    options = PLAIN._replace(block_size=64, comparator=REVERSE_BYTEWISE)
    table = build([(b"zebra", b"v" * 100), (b"ant", b"")], options)
    assert [key for key, _ in index_of(table)] == [b"zebra" + TAG, b"ant" + TAG]


class Halving:
    """Bytewise, with separators of its own."""

    name = "test.Halving"

    def compare(self, a: bytes, b: bytes, /) -> int:
        return (a > b) - (a < b)

    def find_shortest_separator(self, start: bytes, limit: bytes, /) -> bytes:
        return limit[: len(limit) // 2] if limit[: len(limit) // 2] > start else start

    def find_short_successor(self, key: bytes, /) -> bytes:
        return b"~"


def test_the_users_comparator_shortens_user_keys() -> None:
    comparator: Comparator = Halving()
    options = PLAIN._replace(block_size=64, comparator=comparator)
    table = build([(b"alpha", b"v" * 100), (b"omegas", b"v" * 100), (b"omegas!", b"")], options)
    assert [key for key, _ in index_of(table)] == [
        before_versions(b"ome"),
        b"omegas" + TAG,
        before_versions(b"~"),
    ]


def test_a_block_ends_once_it_has_the_block_size() -> None:
    # An entry takes 3 + 2 + 8 + 30 bytes, a block 8 more: 3 entries make 137, 4 make 180.
    rows = [(b"%02d" % number, b"v" * 30) for number in range(0, 80, 10)]
    for block_size, entries in ((137, 3), (138, 4), (180, 4), (181, 5)):
        table = build(rows, PLAIN._replace(block_size=block_size))
        counts = [len(pairs(table, handle)) for _, handle in index_of(table)]
        assert counts[0] == entries
        assert sum(counts) == 8
        assert counts[:-1] == [entries] * (len(counts) - 1)


def test_blocks_adjoin_and_nothing_else_is_in_the_file() -> None:
    options = PLAIN._replace(block_size=64, filter_policy=BloomFilterPolicy(10))
    table = build([(b"%04d" % number, b"v") for number in range(300)], options)
    footer = Footer.decode(table[-FOOTER_SIZE:])
    handles = [handle for _, handle in [*index_of(table), *metaindex_of(table)]]
    at = 0
    for handle in [*handles, footer.metaindex, footer.index]:
        assert handle.offset == at
        at += handle.size + BLOCK_TRAILER_SIZE
    assert at + FOOTER_SIZE == len(table)


def test_restart_intervals() -> None:
    rows = [(b"k%02d" % number, b"") for number in range(10)]
    for interval, restarts in ((1, 10), (3, 4), (16, 1)):
        table = build(rows, PLAIN._replace(block_restart_interval=interval))
        block = Block(block_at(table, index_of(table)[0][1]))
        assert len(block.restart_points()) == restarts
    rows = [(b"%04d" % number, b"v" * 50) for number in range(0, 100, 10)]
    table = build(rows, PLAIN._replace(block_size=64))
    index = Block(block_at(table, Footer.decode(table[-FOOTER_SIZE:]).index))
    assert len(index.restart_points()) == len(index_of(table)) == 10


@pytest.mark.parametrize("kind", [SNAPPY, ZSTD])
def test_compressed_tables_hold_the_same(kind: int) -> None:
    rows = [(b"%06d" % number, b"value of %d" % number) for number in range(3000)]
    plain, packed = build(rows), build(rows, PLAIN._replace(compression=kind))
    assert len(packed) < len(plain) / 2
    assert [block_at(packed, handle) for _, handle in index_of(packed)] == [
        block_at(plain, handle) for _, handle in index_of(plain)
    ]
    assert [key for key, _ in index_of(packed)] == [key for key, _ in index_of(plain)]


def test_zstd_level_is_passed_on() -> None:
    rows = [(b"%06d" % number, b"value of %d" % number**3) for number in range(3000)]
    options = PLAIN._replace(compression=ZSTD)
    assert len(build(rows, options._replace(zstd_compression_level=19))) < len(build(rows, options))


# Calls


def test_keys_out_of_order() -> None:
    builder = TableBuilder(PLAIN, Sink())
    added(builder, b"b")
    for key in (b"b", b"a", b""):
        with pytest.raises(ValueError, match="out of order"):
            added(builder, key)
    added(builder, b"b\0")
    assert builder.num_entries == 2

    builder = TableBuilder(PLAIN._replace(comparator=REVERSE_BYTEWISE), Sink())
    added(builder, b"b")
    for key in (b"b", b"c"):
        with pytest.raises(ValueError, match="out of order"):
            added(builder, key)
    added(builder, b"a")


def test_versions_out_of_order() -> None:
    for comparator in COMPARATORS:
        builder = TableBuilder(PLAIN._replace(comparator=comparator), Sink())
        builder.add(pack(b"k", 1 << 55, 1), b"")
        builder.add(pack(b"k", 5, 1), b"")
        for sequence, kind in ((5, 1), (6, 0), (1 << 55, 1), (MAX_SEQUENCE, 1)):
            with pytest.raises(ValueError, match="out of order"):
                builder.add(pack(b"k", sequence, kind), b"")
        builder.add(pack(b"k", 5, 0), b"")  # the kind is the end of the order
        builder.add(pack(b"k", 4, 1), b"")
        assert builder.num_entries == 4


def test_equal_keys_of_other_bytes_are_versions_of_one() -> None:
    builder = TableBuilder(PLAIN._replace(comparator=FOLDING), Sink())
    builder.add(pack(b"Key", 5, 1), b"")
    with pytest.raises(ValueError, match="out of order"):
        builder.add(pack(b"kEY", 5, 1), b"")
    builder.add(pack(b"kEY", 4, 1), b"")


@pytest.mark.parametrize("size", range(8))
def test_a_key_without_a_tag_is_refused(size: int) -> None:
    builder = TableBuilder(PLAIN, Sink())
    with pytest.raises(ValueError, match="not an internal key"):
        builder.add(b"k" * size, b"v")
    assert builder.num_entries == 0


def internal_rows(count: int) -> list[tuple[bytes, bytes]]:
    """Keys of which some have several versions, and some are the beginning of the next."""
    rows: list[tuple[bytes, bytes]] = []
    for number in range(count):
        key = b"%06d" % (number // 2) + b"+" * (number % 2 * 3)
        rows += [
            (pack(key, sequence, number % 7 > 0), b"v" * (number * 31 % 300))
            for sequence in range(1 + 3 * (number % 11 == 0), 0, -1)
        ]
    return rows


@pytest.mark.parametrize("layout", ["block", "table", "both"])
@pytest.mark.parametrize("many", [1, 7, 1000])
def test_entries_make_the_same_table(layout: FilterLayout, many: int) -> None:
    rows = internal_rows(1500)
    filtered = PLAIN._replace(filter_layout=layout, filter_policy=BloomFilterPolicy(10))
    for options in (
        filtered,
        filtered._replace(block_size=100, block_restart_interval=3),
        filtered._replace(filter_policy=NamesPolicy()),
        filtered._replace(filter_policy=None),
    ):
        assert build_entries(rows, options, many) == build_internal(rows, options)
    plain = [(b"%06d" % number, b"v" * (number % 90)) for number in range(2000)]
    options = PLAIN._replace(filter_policy=NamesPolicy(), filter_layout=layout)
    for comparator in COMPARATORS:
        own = options._replace(comparator=comparator)
        ordered = plain[::-1] if comparator is REVERSE_BYTEWISE else plain
        assert build_entries(with_tag(ordered), own, many) == build(ordered, own)


@pytest.mark.parametrize("layout", ["block", "table", "both"])
def test_filters_are_made_from_user_keys(layout: FilterLayout) -> None:
    rows = [(pack(b"a", 9, 1), b"v"), (pack(b"a", 5, 0), b""), (pack(b"b", 7, 1), b"w")]
    options = PLAIN._replace(filter_policy=NamesPolicy(), filter_layout=layout)
    for table in (build_internal(rows, options), build_entries(rows, options)):
        for _, handle in metaindex_of(table):
            assert block_at(table, handle).startswith(b"<a,a,b>")  # one for each version
    policy = BloomFilterPolicy(10)
    table = build_internal(rows, PLAIN._replace(filter_policy=policy, filter_layout=layout))
    for _, handle in metaindex_of(table):
        assert block_at(table, handle).startswith(policy.create_filter([b"a", b"a", b"b"]))


def test_entries_stop_at_the_limit() -> None:
    entries = entries_of((pack(b"%06d" % number, 1, 1), bytes(100)) for number in range(2000))
    user_keys = [user_key for user_key, _ in entries]
    tagged = [rest for _, rest in entries]
    builder = TableBuilder(PLAIN._replace(filter_policy=BloomFilterPolicy(10)), Sink())
    upto = builder.add_entries(user_keys, tagged, 0, 2000, 50_000)
    assert 400 < upto < 500
    assert 50_000 <= builder.file_size < 55_000
    assert builder.add_entries(user_keys, tagged, upto, 2000, 50_000) == upto + 1  # it goes on
    assert builder.add_entries(user_keys, tagged, upto + 1, 2000, 1 << 62) == 2000
    builder.finish()
    with pytest.raises(ValueError, match="add after finish"):
        builder.add_entries(user_keys, tagged, 0, 1, 1 << 62)


@pytest.mark.parametrize("block_size", [1, 4096])
def test_entries_out_of_order(block_size: int) -> None:
    tag = pack(b"", 5, 1)
    for user_keys, tags in (
        ([b"a", b"c", b"b"], [tag] * 3),
        ([b"a", b"b", b"b"], [tag] * 3),
        ([b"a", b"b", b"b"], [tag, tag, pack(b"", 6, 1)]),
        ([b"a", b"bc", b"b"], [tag] * 3),
        ([*(b"%02d" % number for number in range(40)), b"38"], [tag] * 41),
    ):
        builder = TableBuilder(PLAIN._replace(block_size=block_size), Sink())
        with pytest.raises(ValueError, match="out of order"):
            builder.add_entries(user_keys, tags, 0, len(user_keys), 1 << 62)
        assert builder.num_entries == len(user_keys) - 1


def test_order_is_kept_across_blocks() -> None:
    builder = TableBuilder(PLAIN._replace(block_size=64), Sink())
    added(builder, b"b", b"v" * 100)
    with pytest.raises(ValueError, match="out of order"):
        added(builder, b"a")
    added(builder, b"c")
    builder.finish()


def test_calls_after_finish() -> None:
    builder = TableBuilder(PLAIN, Sink())
    builder.finish()
    with pytest.raises(ValueError, match="finish twice"):
        builder.finish()
    with pytest.raises(ValueError, match="add after finish"):
        added(builder, b"k", b"v")


def test_the_empty_key_may_come_first() -> None:
    table = build([(b"", b"e"), (b"\0", b"z")])
    assert pairs(table, index_of(table)[0][1]) == with_tag([(b"", b"e"), (b"\0", b"z")])


def test_file_size_counts_what_is_not_written_yet() -> None:
    sink = Sink()
    builder = TableBuilder(PLAIN._replace(block_size=64), sink)
    added(builder, b"a", b"v" * 100)
    assert builder.file_size == 3 + 1 + 8 + 100 + 8 + 5
    assert sink.writes == []


def test_blocks_go_out_many_to_a_write() -> None:
    sink = Sink()
    builder = TableBuilder(PLAIN, sink)
    for number in range(10_000):
        added(builder, b"%08d" % number, b"v" * 100)
    builder.finish()
    assert 1_000_000 < len(sink.data) == builder.file_size
    assert len(sink.writes) <= 20
    assert max(map(len, sink.writes)) < 100_000
    with_all = Table(Options(), BytesFile(sink.data))
    assert with_all.num_blocks > 250


# LevelDB's own tables, rebuilt from their entries

Change = tuple[bytes, bytes | None]


def _records() -> list[Change]:
    rng = random.Random(1)
    return [(b"%016d" % number, rng.randbytes(100)) for number in range(5000)]


def _empty_values() -> list[Change]:
    return [(b"key%d" % number, b"") for number in range(2000)]


def _large_values() -> list[Change]:
    rng = random.Random(2)
    return [(b"k%03d" % n, rng.randbytes(rng.randrange(1, 150_000))) for n in range(30)]


def _long_keys() -> list[Change]:
    rng = random.Random(3)
    return [
        (b"p" * rng.randrange(400) + b"%d" % number, b"v" * rng.randrange(300))
        for number in range(1500)
    ]


def _prefixes_and_ff() -> list[Change]:
    rng = random.Random(4)
    return [
        (bytes(rng.choice(b"\0\x01a\xfe\xff") for _ in range(rng.randrange(10))), b"%d" % number)
        for number in range(3000)
    ]


def _versions_and_deletions() -> list[Change]:
    rng = random.Random(5)
    return [
        (b"%d" % rng.randrange(300), None if rng.random() < 0.3 else rng.randbytes(30))
        for _ in range(3000)
    ]


def _one_entry() -> list[Change]:
    return [(b"", b"")]


SHAPES: list[Callable[[], list[Change]]] = [
    _records,
    _empty_values,
    _large_values,
    _long_keys,
    _prefixes_and_ff,
    _versions_and_deletions,
    _one_entry,
]


def all_rows(table: Table) -> list[Row]:
    """Internal keys and values."""
    return [
        (user_key + tagged[:8], tagged[8:])
        for piece in table.entries(ReadCounters(), 1 << 16, 1 << 16)
        for user_key, tagged in piece
    ]


@pytest.mark.parametrize("bits", [0, 10], ids=["unfiltered", "bloom"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__.strip("_"))
def test_leveldb_writes_the_same_bytes(
    shape: Callable[[], list[Change]], bits: int, tmp_path: Path
) -> None:
    plyvel = pytest.importorskip("plyvel")
    settings = {"compression": None, "bloom_filter_bits": bits, "block_size": 4096}
    path = str(tmp_path / "db")
    store = plyvel.DB(path, create_if_missing=True, write_buffer_size=64 * MIB, **settings)
    for key, value in shape():
        if value is None:
            store.delete(key)
        else:
            store.put(key, value)
    store.close()
    # Reopening turns the log into one table of level 0.
    plyvel.DB(path, write_buffer_size=64 * MIB, **settings).close()
    (file,) = (tmp_path / "db").glob("*.ldb")
    theirs = file.read_bytes()

    options = PLAIN._replace(filter_policy=BloomFilterPolicy(bits) if bits else None)
    table = Table(options, BytesFile(theirs))
    assert table.has_filter == (bits > 0)
    check(table)
    rows = all_rows(table)
    assert {key[:-8] for key, _ in rows} == {key for key, _ in shape()}
    assert build_internal(rows, options) == theirs
    assert build_entries(rows, options) == theirs


@pytest.mark.parametrize("interval", [1, 5, 64])
@pytest.mark.parametrize("block_size", [1024, 65536])
def test_leveldb_with_other_block_settings(block_size: int, interval: int, tmp_path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    settings = {
        "compression": None,
        "bloom_filter_bits": 7,
        "block_size": block_size,
        "block_restart_interval": interval,
    }
    path = str(tmp_path / "db")
    with plyvel.DB(path, create_if_missing=True, **settings) as store:
        for key, value in _long_keys():
            store.put(key, value)
    plyvel.DB(path, **settings).close()
    (file,) = (tmp_path / "db").glob("*.ldb")
    options = PLAIN._replace(
        filter_policy=BloomFilterPolicy(7),
        block_size=block_size,
        block_restart_interval=interval,
    )
    rows = all_rows(Table(options, BytesFile(file.read_bytes())))
    assert len(rows) > 1000
    assert build_internal(rows, options) == file.read_bytes()
    assert build_entries(rows, options) == file.read_bytes()
