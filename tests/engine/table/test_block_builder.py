"""lsmkv.engine.table.block_builder: exact bytes, entries many at a time, and the order of calls."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import BYTES, TAG, Row, build_block, entries_of, fixed32, newest, with_tag

from lsmkv.engine.format.keys import MAX_SEQUENCE
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.errors import CorruptionError

FRUIT = [(b"apple", b"1"), (b"apply", b"22"), (b"apricot", b""), (b"b", b"x"), (b"bb", b"y")]

keys = st.binary(max_size=12) | st.text("ab\xff", max_size=8).map(lambda text: text.encode("latin"))


def pairs(block: Block) -> list[Row]:
    return list(zip(*block.entries(), strict=True))


def every_get(block: Block, rows: list[Row]) -> bool:
    """Whether each row is found by its own key, one version a key."""
    return all(
        block.get(key[:-8], MAX_SEQUENCE, BYTES) == newest([(key, value)], key[:-8], 1, BYTES)
        for key, value in rows
    )


# Exact bytes


def test_empty_block() -> None:
    data = build_block([])
    assert data.hex() == "00000000" + "01000000"
    assert Block(data).entries() == ([], [])


def test_interval_1_keeps_every_key_whole() -> None:
    assert build_block(FRUIT, 1) == (
        b"\x00\x05\x01apple1\x00\x05\x02apply22\x00\x07\x00apricot\x00\x01\x01bx\x00\x02\x01bby"
    ) + fixed32(0, 9, 19, 29, 34, 5)


def test_interval_2() -> None:
    assert build_block(FRUIT, 2) == (
        b"\x00\x05\x01apple1\x04\x01\x02y22\x00\x07\x00apricot\x00\x01\x01bx\x00\x02\x01bby"
    ) + fixed32(0, 15, 30, 3)


def test_interval_16() -> None:
    assert build_block(FRUIT, 16) == (
        b"\x00\x05\x01apple1\x04\x01\x02y22\x02\x05\x00ricot\x00\x01\x01bx\x01\x01\x01by"
    ) + fixed32(0, 1)


def test_a_tag_is_a_part_of_the_key() -> None:
    """Versions of one key share all but what differs of their tags."""
    rows = [(b"k" + bytes.fromhex(tag), b"v") for tag in ("0103000000000000", "0102000000000000")]
    assert build_block(rows, 16) == (
        b"\x00\x09\x01k\x01\x03\0\0\0\0\0\0v\x02\x07\x01\x02\0\0\0\0\0\0v"
    ) + fixed32(0, 1)


def test_a_restart_point_every_16_entries() -> None:
    entries = [(b"k%03d" % number, b"") for number in range(33)]
    block = Block(build_block(entries))
    # Whole keys take 7 bytes, others 4, or 5 where the tens change: at 10; at 20 and 30.
    first = 7 + 14 * 4 + 1 * 5
    assert block.restart_points() == [0, first, first + 7 + 13 * 4 + 2 * 5]
    assert block.entries() == ([key for key, _ in entries], [b""] * 33)


def test_the_empty_key_and_the_empty_value() -> None:
    data = build_block([(b"", b""), (b"\0", b"")])
    assert data.hex() == "000000" + "00010000" + "0000000001000000"
    assert Block(data).entries() == ([b"", b"\0"], [b"", b""])


def test_lengths_of_more_than_one_byte() -> None:
    long = b"k" * 130
    entries = [(long, b"v" * 20000), (long + b"a", b""), (long + b"b" * 127, b"w"), (b"l", b"")]
    data = build_block(entries)
    assert data == (
        b"\x00\x82\x01\xa0\x9c\x01" + long + b"v" * 20000
        + b"\x82\x01\x01\x00a"
        + b"\x82\x01\x7f\x01" + b"b" * 127 + b"w"
        + b"\x00\x01\x00l"
        + fixed32(0, 1)
    )  # fmt: skip
    assert pairs(Block(data)) == entries
    tagged = with_tag(entries)
    assert every_get(Block(build_block(tagged)), tagged)


@pytest.mark.parametrize("size", [126, 127, 128, 129, 16383, 16384])
def test_lengths_at_the_varints_boundaries(size: int) -> None:
    key = size - len(TAG)
    for entries in (
        [(b"a" * key, b"v"), (b"a" * key + b"b", b"v")],
        [(b"a" * size, b"v"), (b"a" * size + b"b", b"v")],
        [(b"a", b"v" * size)],
        [(b"a", b""), (b"b" * key, b"")],
    ):
        rows = with_tag(entries)
        for interval in (1, 16):
            block = Block(build_block(rows, interval))
            assert pairs(block) == rows
            assert every_get(block, rows)


# Many entries at a time


def build_entries(rows: list[Row], interval: int = 16, bound: int = 1 << 28) -> bytes:
    """Entries go in many at a time where they may, and one by one where not."""
    builder = BlockBuilder(interval, bound)
    entries = entries_of(rows)
    user_keys, tagged = [key for key, _ in entries], [rest for _, rest in entries]
    at = 0
    while at < len(rows):
        upto = builder.add_entries(user_keys, tagged, at, len(rows), 1 << 30)
        if upto == at:
            builder.add(*rows[at])
            upto += 1
        at = upto
        assert builder.last_key == rows[at - 1][0]
    size = builder.size_estimate()
    data = builder.finish()
    assert len(data) == size
    return data


tagged_keys = st.builds(
    lambda user_key, tag: user_key + tag,
    keys | st.integers(0, 300).map(lambda number: b"key%06d" % number),
    st.sampled_from([b"\0" * 8, b"\x01" * 8, b"\x01" + b"\0" * 7, b"a" * 8]),
)


@given(
    st.dictionaries(tagged_keys, st.binary(max_size=200), max_size=60),
    st.sampled_from([1, 2, 16]),
    st.integers(0, 300),
)
def test_many_at_a_time_make_the_same_block(
    chosen: dict[bytes, bytes], interval: int, bound: int
) -> None:
    rows = sorted(chosen.items(), key=lambda row: (row[0][:-8], row[0]))
    one_by_one = BlockBuilder(interval, bound)
    for key, value in rows:
        one_by_one.add(key, value)
    data = build_entries(rows, interval, bound)
    assert data == one_by_one.finish()
    assert Block(data, bound).tagged_entries() == entries_of(rows)


def test_entries_go_in_many_at_a_time() -> None:
    user_keys = [b"key%04d" % number for number in range(100)]
    tagged = [b"\x01tag...." + b"v" * 10] * 100
    builder = BlockBuilder(16)
    assert builder.add_entries(user_keys, tagged, 0, 100, 1 << 20) == 0  # the first goes in alone
    builder.add(user_keys[0] + tagged[0][:8], tagged[0][8:])
    assert builder.add_entries(user_keys, tagged, 1, 40, 1 << 20) == 40
    upto = builder.add_entries(user_keys, tagged, 40, 100, 1500)
    assert 40 < upto < 100
    size = builder.size_estimate()
    assert size >= 1500
    assert builder.add_entries(user_keys, tagged, upto, 100, 1500) == upto  # it is full
    shorter = BlockBuilder(16)
    for user_key, rest in zip(user_keys[: upto - 1], tagged, strict=False):
        shorter.add(user_key + rest[:8], rest[8:])
    assert shorter.size_estimate() < 1500
    builder.finish()
    assert builder.add_entries(user_keys, tagged, upto, 100, 1 << 20) == upto


@pytest.mark.parametrize("interval", [1, 16])
def test_entries_out_of_order_are_left(interval: int) -> None:
    builder = BlockBuilder(interval)
    tag = bytes(8)
    builder.add(b"k5" + tag, b"")
    for user_key in (b"k4", b"k5", b"k", b"", b"a9"):
        assert builder.add_entries([user_key], [tag], 0, 1, 1 << 20) == 0
    assert builder.add_entries([b"k6", b"k6"], [tag, tag], 0, 2, 1 << 20) == 1


def test_an_entry_out_of_order_after_a_restart_is_left() -> None:
    """What the keys before the restart had in common is no more known of those after it."""
    builder = BlockBuilder(2)
    tag = bytes(8)
    builder.add(b"aaaa1" + tag, b"")
    user_keys = [b"aaaa2", b"aaab0", b"aaaa9"]
    assert builder.add_entries(user_keys, [tag] * 3, 0, 3, 1 << 20) == 2


# The order of calls


def test_builder_misuse() -> None:
    with pytest.raises(ValueError, match="restart_interval"):
        BlockBuilder(0)
    builder = BlockBuilder(1)
    builder.finish()
    with pytest.raises(ValueError, match="finish twice"):
        builder.finish()
    with pytest.raises(ValueError, match="add after finish"):
        builder.add(b"k", b"v")


def test_a_large_block_leaves_no_room_taken() -> None:
    builder = BlockBuilder(16)
    value = bytes(8 << 20)
    tracemalloc.start()
    try:
        for _ in range(2):
            builder.add(b"key", value)
            assert len(builder.finish()) > len(value)
            builder.reset()
            assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


def test_reset_begins_a_new_block() -> None:
    builder = BlockBuilder(16)
    for _ in range(2):
        for key, value in FRUIT:
            builder.add(key, value)
        assert builder.finish() == build_block(FRUIT)
        builder.reset()
        assert builder.empty
        assert builder.size_estimate() == 8


# Keys that a small block makes large


def test_what_is_written_under_a_bound_can_be_read_under_it() -> None:
    rows = with_tag((b"k" * 1000 + b"%04d" % number, b"") for number in range(100))
    builder = BlockBuilder(1000, 20_000)
    for key, value in rows:
        builder.add(key, value)
    data = builder.finish()
    block = Block(data, 20_000)
    assert pairs(block) == rows
    assert block.tagged_entries() == entries_of(rows)
    assert every_get(block, rows)
    # Twenty entries share 1,000 bytes and a few, then every one is whole.
    assert len(block.restart_points()) == 80
    with pytest.raises(CorruptionError, match="share more"):
        Block(data, 19_000).entries()
    builder.reset()
    builder.add(*rows[0])
    builder.add(*rows[1])
    assert builder.finish() == build_block(rows[:2])


@given(st.lists(st.integers(90, 300), min_size=1, max_size=60), st.integers(0, 1000))
def test_writer_and_reader_count_alike(lengths: list[int], bound: int) -> None:
    plain = sorted({b"k" * length: b"" for length in lengths}.items())
    rows = with_tag([*plain, *((b"l" + key, value) for key, value in plain)])
    builder = BlockBuilder(1000, bound)
    for key, value in rows:
        builder.add(key, value)
    block = Block(builder.finish(), bound)
    assert pairs(block) == rows
    assert block.tagged_entries() == entries_of(rows)
    assert every_get(block, rows)
