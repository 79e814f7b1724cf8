"""lsmkv.engine.table.inspection: what a lookup meets, the first and last key, and the
invariants.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from orders import COMPARATORS, FOLDING
from plain import PLAIN, SMALL, TAG, Row, assemble, build, build_table, opened, sealed, with_tag

from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.format.keys import MAX_SEQUENCE, before_versions, pack
from lsmkv.engine.options import FilterLayout
from lsmkv.engine.table.format import FOOTER_SIZE, BlockHandle, Footer, seal_block
from lsmkv.engine.table.inspection import (
    BlockLook,
    TableLook,
    check,
    check_metadata,
    first_and_last_key,
    look,
)
from lsmkv.engine.util.block_cache import BlockCache
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.engine.util.comparator import REVERSE_BYTEWISE
from lsmkv.engine.util.compression import NO_COMPRESSION, SNAPPY
from lsmkv.errors import CorruptionError, UnsupportedCompressionError

BLOOM = BloomFilterPolicy(10)
LAYOUTS: list[FilterLayout] = ["block", "table", "both"]
ROWS = [(b"k%04d" % number, b"value %d" % number) for number in range(0, 2000, 2)]


class Denying:
    """A policy that says no to one key, though it is there, and keeps what it was asked."""

    name = "test.Denying"

    def __init__(self, denied: bytes) -> None:
        self.denied = denied
        self.asked: list[bytes] = []

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return b"<" + b",".join(keys) + b">"

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        self.asked.append(key)
        return key != self.denied


# What a lookup meets


def test_a_look_at_a_table_of_one_block() -> None:
    options = PLAIN._replace(filter_policy=BLOOM)
    rows = [(b"b", b"1"), (b"dd", b"2")]
    table, _ = opened(build(rows, options), options)
    contents = len(sealed(with_tag(rows))) - 5
    for key in (b"a", b"b", b"c", b"dd", b"e"):
        found = look(table, key)
        assert found.index_key == before_versions(b"e")
        assert [(each.layout, each.data) for each in found.filters] == [
            ("block", BLOOM.create_filter([b"b", b"dd"]))
        ]
        assert found.filters[0].may_match == BLOOM.key_may_match(key, found.filters[0].data)
        assert found.block == BlockLook(
            offset=0,
            stored_size=contents + 5,
            cached=False,
            codec="none",
            plain_size=contents,
            entries=([b"b" + TAG, b"dd" + TAG], [b"1", b"2"]),
        )
    assert look(table, b"e\0") == TableLook(None, [], None)


def test_a_look_leaves_no_trace() -> None:
    cache: BlockCache[object, object] = BlockCache(1 << 20)
    options = SMALL._replace(block_cache=cache, filter_policy=BLOOM)
    table, _ = opened(build(ROWS, options), options)
    for key, _ in ROWS[::100]:
        assert look(table, key) == look(table, key)
    assert len(cache) == 0


def test_a_look_tells_what_is_cached_and_how_it_is_stored() -> None:
    options = PLAIN._replace(block_cache=BlockCache(1 << 20), compression=SNAPPY)
    table, file = opened(build(ROWS, options), options)
    key = ROWS[500][0]
    first = look(table, key).block
    assert first is not None
    assert (first.cached, first.codec) == (False, "snappy")
    assert first.plain_size > first.stored_size
    assert key + TAG in first.entries[0]
    table.get(key, key, MAX_SEQUENCE, KeyHashes(key), ReadCounters(), True)
    assert look(table, key).block == first._replace(cached=True)
    file.data = file.data[: first.offset]
    again = look(table, key).block
    assert again is not None
    assert again.cached


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_look_reads_the_block_though_a_filter_says_no(layout: FilterLayout) -> None:
    key = ROWS[500][0]
    policy = Denying(key)
    options = SMALL._replace(filter_policy=policy, filter_layout=layout)
    table, _ = opened(build(ROWS, options), options)
    for wanted in (key, ROWS[501][0]):
        policy.asked.clear()
        found = look(table, wanted)
        expected = ["table", "block"] if layout == "both" else [layout]
        answers = [each.may_match for each in found.filters]
        if wanted == key:  # after the first no, none is asked
            assert [each.layout for each in found.filters] == expected[:1]
            assert answers == [False]
        else:
            assert [each.layout for each in found.filters] == expected
            assert answers == [True] * len(expected)
        assert policy.asked == [wanted] * len(answers)
        assert found.block is not None
        assert wanted + TAG in found.block.entries[0]


def test_the_filter_of_a_look_is_that_of_the_keys_own_block() -> None:
    options = SMALL._replace(filter_policy=BLOOM, block_size=512)
    table, _ = opened(build(ROWS, options), options)
    looks = [look(table, key) for key, _ in ROWS]
    for (key, _), found in zip(ROWS, looks, strict=True):
        assert len(found.filters) == 1
        assert BLOOM.key_may_match(key, found.filters[0].data)
    assert len({found.filters[0].data for found in looks}) > 5


def test_a_look_in_another_order() -> None:
    options = SMALL._replace(comparator=FOLDING)
    table, _ = opened(build([(b"Apple" * 9, b"1"), (b"bEAR" * 9, b"2")], options), options)
    found = look(table, b"BEAR" * 9)
    assert found.block is not None
    assert found.block.entries == ([b"bEAR" * 9 + TAG], [b"2"])


def test_damage_that_a_look_meets() -> None:
    bad = seal_block(b"\x09\x09\x01k" + TAG + b"v" + b"\0\0\0\0\x01\0\0\0", NO_COMPRESSION)
    index = [(b"z", BlockHandle(0, len(bad) - 5).encode())]
    table, _ = opened(assemble([], extra=bad, index_rows=index))
    with pytest.raises(CorruptionError, match="shares more") as caught:
        look(table, b"k")
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", 0)


# The first key and the last


def test_the_first_and_the_last_key() -> None:
    for comparator in COMPARATORS:
        options = SMALL._replace(comparator=comparator)
        rows = ROWS[::-1] if comparator is REVERSE_BYTEWISE else ROWS
        table, file = opened(build(rows, options), options)
        assert first_and_last_key(table) == (rows[0][0] + TAG, rows[-1][0] + TAG)
        assert len(file.reads) == 2
    table, _ = opened(build([]))
    assert first_and_last_key(table) is None
    table, _ = opened(build([(b"", b"")]))
    assert first_and_last_key(table) == (TAG, TAG)


def test_blocks_without_entries_have_no_first_key() -> None:
    table, _ = opened(assemble([([], b"a"), ([(b"b", b"")], b"c"), ([], b"d")]))
    assert first_and_last_key(table) == (b"b" + TAG, b"b" + TAG)
    table, _ = opened(assemble([([], b"a")]))
    assert first_and_last_key(table) is None


@pytest.mark.parametrize("damage", ["byte", "entry"])
@pytest.mark.parametrize("number", [0, -1])
def test_damage_at_an_edge_of_a_table(damage: str, number: int) -> None:
    data = build(ROWS)
    whole, _ = opened(data)
    handle = whole.index.handle(number % whole.num_blocks)
    body = bytearray(data[handle.offset : handle.offset + handle.size + 1])
    body[0] = 99  # of the first entry's key so much is shared
    seal = masked_crc32c(bytes(body)).to_bytes(4, "little")
    stored = bytes(body) + (seal if damage == "entry" else bytes(4))
    table, _ = opened(data[: handle.offset] + stored + data[handle.offset + len(stored) :])
    with pytest.raises(CorruptionError) as caught:
        first_and_last_key(table)
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", handle.offset)


# check()


def test_a_sound_table_passes() -> None:
    for comparator in COMPARATORS:
        for layout in LAYOUTS:
            options = SMALL._replace(
                comparator=comparator,
                filter_layout=layout,
                # A filter's hash differs for keys that are equal in a custom order.
                filter_policy=BLOOM,
            )
            rows = with_tag(ROWS[::-1] if comparator is REVERSE_BYTEWISE else ROWS)
            table, _ = opened(build_table(rows, options), options)
            assert check(table) == (rows[0][0], rows[-1][0])
    table, _ = opened(build([]))
    assert check(table) == (b"", b"")


def test_versions_of_one_key_in_many_blocks_pass() -> None:
    rows = [
        (pack(key, sequence, sequence % 3 > 0), b"v" * 40)
        for key in (b"a", b"b")
        for sequence in (MAX_SEQUENCE, 1 << 55, 9, 5, 1, 0)
    ]
    for comparator in (COMPARATORS[0], COMPARATORS[2]):
        options = SMALL._replace(comparator=comparator, filter_policy=BLOOM)
        table, _ = opened(build_table(rows, options), options)
        assert check(table) == (rows[0][0], rows[-1][0])
        assert table.num_blocks > 3


A_B = [(b"a", b""), (b"b", b"")]


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
        check(table)
    assert caught.value.path == "db/000005.ldb"
    assert caught.value.offset == len(sealed(with_tag(blocks[0][0]))) * block


@pytest.mark.parametrize(
    ("older", "newer"), [(5, 5), (5, 6), (1, 1 << 55), ((1 << 55) - 1, MAX_SEQUENCE)]
)
def test_check_finds_versions_out_of_order(older: int, newer: int) -> None:
    rows = [(pack(b"k", older, 1), b""), (pack(b"k", newer, 1), b"")]
    stored = sealed(rows)
    index = [(b"z", BlockHandle(0, len(stored) - 5).encode())]
    table, _ = opened(assemble([], extra=stored, index_rows=index))
    with pytest.raises(CorruptionError, match="out of order"):
        check(table)


def test_check_passes_a_table_made_by_hand() -> None:
    table, _ = opened(assemble([(A_B, b"b"), ([(b"c", b"")], b"d")]))
    assert check(table) == (b"a" + TAG, b"c" + TAG)


def test_check_finds_a_key_without_a_tag() -> None:
    stored = sealed([(b"short", b"")])
    index = [(b"z", BlockHandle(0, len(stored) - 5).encode())]
    table, _ = opened(assemble([], extra=stored, index_rows=index))
    with pytest.raises(CorruptionError, match="shorter than its tag") as caught:
        check(table)
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_check_finds_a_filter_that_denies_a_key(layout: FilterLayout) -> None:
    policy = Denying(ROWS[500][0])
    options = SMALL._replace(filter_policy=policy, filter_layout=layout)
    table, _ = opened(build(ROWS, options), options)
    number = table.index.block_for(policy.denied, MAX_SEQUENCE)
    with pytest.raises(CorruptionError, match="a filter denies") as caught:
        check(table)
    assert caught.value.offset == table.index.offsets[number] > 0
    policy.denied = b"absent"
    assert check(table) == (ROWS[0][0] + TAG, ROWS[-1][0] + TAG)


def test_check_reads_every_block_past_the_cache() -> None:
    cache: BlockCache[object, object] = BlockCache(1 << 20)
    data = build(ROWS)
    table, file = opened(data, SMALL._replace(block_cache=cache))
    for number in range(table.num_blocks):
        table.load_block(number, ReadCounters(), True)
    held = len(cache)
    for number in (0, table.num_blocks // 2, table.num_blocks - 1):
        offset = table.index.offsets[number]
        file.data = data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :]
        with pytest.raises(CorruptionError, match="checksum") as caught:
            check(table)
        assert caught.value.offset == offset
    file.data = data
    file.reads.clear()
    check(table)
    assert len(file.reads) == table.num_blocks
    assert len(cache) == held


def test_check_needs_the_restart_points() -> None:
    bad = seal_block(b"\0\x09\x01k" + TAG + b"v" + b"\x02\0\0\0\x01\0\0\0", NO_COMPRESSION)
    index = [(b"z", BlockHandle(0, len(bad) - 5).encode())]
    table, _ = opened(assemble([], extra=bad, index_rows=index))
    assert list(table.entries(ReadCounters(), 0, 0)) == [[(b"k", TAG + b"v")]]
    with pytest.raises(CorruptionError, match="restart") as caught:
        check(table)
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", 0)


def test_an_unknown_codec_is_named() -> None:
    typed = sealed(with_tag([(b"a", b"1")]))[:-5] + b"\x09"
    extra = typed + masked_crc32c(typed).to_bytes(4, "little")
    index = [(b"b", BlockHandle(0, len(typed) - 1).encode())]
    table, _ = opened(assemble([], extra=extra, index_rows=index))
    with pytest.raises(UnsupportedCompressionError, match=r"000005\.ldb: unknown .* type 9"):
        check(table)


@pytest.mark.parametrize("part", ["footer", "index", "metaindex", "filter"])
def test_check_metadata_reads_it_again(part: str) -> None:
    options = SMALL._replace(filter_policy=BLOOM)
    data = build(ROWS, options)
    footer = Footer.decode(data[-FOOTER_SIZE:])
    table, file = opened(data, options)
    check_metadata(table)
    assert len(file.reads) == table.metadata_reads
    at = {
        "footer": len(data) - 1,
        "index": footer.index.offset,
        "metaindex": footer.metaindex.offset,
        "filter": footer.metaindex.offset - 6,
    }[part]
    file.data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    with pytest.raises(CorruptionError) as caught:
        check_metadata(table)
    assert caught.value.path == "db/000005.ldb"
    check(table)  # the blocks are sound
