"""lsmkv.table.block: exact bytes, searching against a sorted list, and hostile blocks."""

from __future__ import annotations

import itertools
import tracemalloc
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.errors import CorruptionError
from lsmkv.table.block import Block, BlockBuilder
from lsmkv.util.coding import encode_varint
from lsmkv.util.comparator import BYTEWISE, REVERSE_BYTEWISE

compare = BYTEWISE.compare

FRUIT = [(b"apple", b"1"), (b"apply", b"22"), (b"apricot", b""), (b"b", b"x"), (b"bb", b"y")]

keys = st.binary(max_size=12) | st.text("ab\xff", max_size=8).map(lambda text: text.encode("latin"))
entry_sets = st.dictionaries(keys, st.binary(max_size=200), max_size=40)


def build(entries: list[tuple[bytes, bytes]], interval: int = 16) -> bytes:
    builder = BlockBuilder(interval)
    for key, value in entries:
        builder.add(key, value)
    assert builder.empty == (not entries)
    size = builder.size_estimate()
    data = builder.finish()
    assert len(data) == size
    return data


def fixed32(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


def raw_entry(shared: int, suffix: bytes, value: bytes = b"") -> bytes:
    lengths = (shared, len(suffix), len(value))
    return b"".join(encode_varint(length) for length in lengths) + suffix + value


# Exact bytes


def test_empty_block() -> None:
    data = build([])
    assert data.hex() == "00000000" + "01000000"
    block = Block(data)
    assert block.entries() == ([], [])
    assert block.entries(b"k", compare) == ([], [])
    assert block.seek(b"", compare) is None
    assert block.restart_points() == [0]


def test_interval_1_keeps_every_key_whole() -> None:
    assert build(FRUIT, 1) == (
        b"\x00\x05\x01apple1\x00\x05\x02apply22\x00\x07\x00apricot\x00\x01\x01bx\x00\x02\x01bby"
    ) + fixed32(0, 9, 19, 29, 34, 5)


def test_interval_2() -> None:
    assert build(FRUIT, 2) == (
        b"\x00\x05\x01apple1\x04\x01\x02y22\x00\x07\x00apricot\x00\x01\x01bx\x00\x02\x01bby"
    ) + fixed32(0, 15, 30, 3)


def test_interval_16() -> None:
    assert build(FRUIT, 16) == (
        b"\x00\x05\x01apple1\x04\x01\x02y22\x02\x05\x00ricot\x00\x01\x01bx\x01\x01\x01by"
    ) + fixed32(0, 1)


def test_a_restart_point_every_16_entries() -> None:
    entries = [(b"k%03d" % number, b"") for number in range(33)]
    block = Block(build(entries))
    # Whole keys take 7 bytes, others 4, or 5 where the tens change: at 10; at 20 and 30.
    first = 7 + 14 * 4 + 1 * 5
    assert block.restart_points() == [0, first, first + 7 + 13 * 4 + 2 * 5]
    assert block.entries() == ([key for key, _ in entries], [b""] * 33)


def test_the_empty_key_and_the_empty_value() -> None:
    data = build([(b"", b""), (b"\0", b"")])
    assert data.hex() == "000000" + "00010000" + "0000000001000000"
    assert Block(data).seek(b"", compare) == (b"", b"")
    assert Block(data).seek(b"\0", compare) == (b"\0", b"")
    assert Block(data).seek(b"\0\0", compare) is None


def test_lengths_of_more_than_one_byte() -> None:
    long = b"k" * 130
    entries = [(long, b"v" * 20000), (long + b"a", b""), (long + b"b" * 127, b"w"), (b"l", b"")]
    data = build(entries)
    assert data == (
        b"\x00\x82\x01\xa0\x9c\x01" + long + b"v" * 20000
        + b"\x82\x01\x01\x00a"
        + b"\x82\x01\x7f\x01" + b"b" * 127 + b"w"
        + b"\x00\x01\x00l"
        + fixed32(0, 1)
    )  # fmt: skip
    block = Block(data)
    assert list(zip(*block.entries(), strict=True)) == entries
    for key, value in entries:
        assert block.seek(key, compare) == (key, value)


@pytest.mark.parametrize("size", [126, 127, 128, 129, 16383, 16384])
def test_lengths_at_the_varints_boundaries(size: int) -> None:
    for entries in (
        [(b"a" * size, b"v"), (b"a" * size + b"b", b"v")],
        [(b"a", b"v" * size)],
        [(b"a", b""), (b"b" * size, b"")],
    ):
        for interval in (1, 16):
            block = Block(build(entries, interval))
            assert list(zip(*block.entries(), strict=True)) == entries
            assert [block.seek(key, compare) for key, _ in entries] == entries


def test_len_is_for_the_caches_charge() -> None:
    data = build(FRUIT)
    assert len(Block(data)) == len(data)


# Rows


def split(entries: list[tuple[bytes, bytes]], tail: int) -> list[tuple[bytes, bytes]]:
    return [(key[: len(key) - tail], key[len(key) - tail :] + value) for key, value in entries]


def build_rows(
    entries: list[tuple[bytes, bytes]], tail: int, interval: int = 16, bound: int = 1 << 28
) -> bytes:
    """Rows go in many at a time where they may, and one by one where not."""
    builder = BlockBuilder(interval, bound)
    rows = split(entries, tail)
    heads, rests = [head for head, _ in rows], [rest for _, rest in rows]
    at = 0
    while at < len(entries):
        upto = builder.add_rows(heads, rests, at, len(heads), tail, 1 << 30)
        if upto == at:
            builder.add(*entries[at])
            upto += 1
        at = upto
        assert builder.last_key == entries[at - 1][0]
    size = builder.size_estimate()
    data = builder.finish()
    assert len(data) == size
    return data


tailed_keys = st.builds(
    lambda head, tail: head + tail,
    keys | st.integers(0, 300).map(lambda number: b"key%06d" % number),
    st.sampled_from([b"\0" * 8, b"\x01" * 8, b"\x01" + b"\0" * 7, b"a" * 8]),
)
tailed = st.dictionaries(tailed_keys, st.binary(max_size=200), max_size=60)


@given(tailed, st.sampled_from([0, 3, 8]), st.sampled_from([1, 2, 16]), st.integers(0, 300))
def test_rows_are_the_same_entries(
    rows: dict[bytes, bytes], tail: int, interval: int, bound: int
) -> None:
    entries = sorted(rows.items(), key=lambda row: (row[0][: len(row[0]) - tail], row[0]))
    one_by_one = BlockBuilder(interval, bound)
    for key, value in entries:
        one_by_one.add(key, value)
    data = build_rows(entries, tail, interval, bound)
    assert data == one_by_one.finish()
    assert Block(data, bound).rows(tail) == split(entries, tail)


def test_rows_go_in_many_at_a_time() -> None:
    heads = [b"key%04d" % number for number in range(100)]
    rests = [b"\x01tag...." + b"v" * 10] * 100
    builder = BlockBuilder(16)
    assert builder.add_rows(heads, rests, 0, 100, 8, 1 << 20) == 0  # the first goes in alone
    builder.add(heads[0] + rests[0][:8], rests[0][8:])
    assert builder.add_rows(heads, rests, 1, 40, 8, 1 << 20) == 40
    upto = builder.add_rows(heads, rests, 40, 100, 8, 1500)
    assert 40 < upto < 100
    size = builder.size_estimate()
    assert size >= 1500
    assert builder.add_rows(heads, rests, upto, 100, 8, 1500) == upto  # it is full
    shorter = BlockBuilder(16)
    for head, rest in zip(heads[: upto - 1], rests, strict=False):
        shorter.add(head + rest[:8], rest[8:])
    assert shorter.size_estimate() < 1500
    builder.finish()
    assert builder.add_rows(heads, rests, upto, 100, 8, 1 << 20) == upto


@pytest.mark.parametrize("interval", [1, 16])
def test_rows_out_of_order_are_left(interval: int) -> None:
    builder = BlockBuilder(interval)
    tag = bytes(8)
    builder.add(b"k5" + tag, b"")
    for head in (b"k4", b"k5", b"k", b"", b"a9"):
        assert builder.add_rows([head], [tag], 0, 1, 8, 1 << 20) == 0
    assert builder.add_rows([b"k6", b"k6"], [tag, tag], 0, 2, 8, 1 << 20) == 1


def test_a_row_out_of_order_after_a_restart_is_left() -> None:
    """What the keys before the restart had in common is no more known of those after it."""
    builder = BlockBuilder(2)
    tag = bytes(8)
    builder.add(b"aaaa1" + tag, b"")
    heads = [b"aaaa2", b"aaab0", b"aaaa9"]
    assert builder.add_rows(heads, [tag] * 3, 0, 3, 8, 1 << 20) == 2


@pytest.mark.parametrize("tail", [1, 8])
def test_a_key_shorter_than_the_tail(tail: int) -> None:
    data = build([(b"k" * (tail - 1), b"value")])
    with pytest.raises(CorruptionError, match="shorter than its tag"):
        Block(data).rows(tail)
    data = build([(b"k" * tail, b"value")])
    assert Block(data).rows(tail) == [(b"", b"k" * tail + b"value")]


@given(st.binary(max_size=60), st.integers(0, 9))
def test_rows_of_any_bytes(junk: bytes, tail: int) -> None:
    """What one way of decoding a block finds damaged, the other does too."""
    data = junk + fixed32(0, 1)
    try:
        expected = Block(data).entries()
    except CorruptionError:
        with pytest.raises(CorruptionError):
            Block(data).rows(tail)
        return
    if min(map(len, expected[0]), default=tail) < tail:
        with pytest.raises(CorruptionError):
            Block(data).rows(tail)
    else:
        assert Block(data).rows(tail) == split(list(zip(*expected, strict=True)), tail)


# The builder's order of calls


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


def test_reset_begins_anew() -> None:
    builder = BlockBuilder(16)
    for _ in range(2):
        for key, value in FRUIT:
            builder.add(key, value)
        assert builder.finish() == build(FRUIT)
        builder.reset()
        assert builder.empty
        assert builder.size_estimate() == 8


# Reading against a sorted list


kinds = st.just(1) | st.sampled_from([1, 1, 1, 0])


def less_eight(key: bytes) -> bytes:
    return key[:-8]


def tagged(key: bytes, number: int, kind: int = 1) -> bytes:
    return key + (number << 8 | kind).to_bytes(8, "little")


def newest_first(a: bytes, b: bytes) -> int:
    """The order of keys with a tag: by the rest, then the larger number first."""
    x = a[:-8], -int.from_bytes(a[-8:], "little")
    y = b[:-8], -int.from_bytes(b[-8:], "little")
    return (x > y) - (x < y)


@given(entry_sets, st.integers(1, 20), st.lists(keys, max_size=5))
def test_find_does_what_seek_does(
    entries: dict[bytes, bytes], interval: int, others: list[bytes]
) -> None:
    """Again and again, until the block is decoded, and after that."""
    rows = sorted(entries.items())
    block = Block(build(rows, interval))
    targets = [*entries, *others, *(key + b"\0" for key in entries)]
    for _ in range(6):
        for target in targets:
            assert block.find(target, target, compare, None) == block.seek(target, compare)


@given(
    st.lists(st.tuples(keys, st.integers(1, 9)), max_size=40, unique=True),
    st.integers(1, 20),
    st.lists(st.tuples(keys, st.integers(1, 9)), max_size=8),
)
def test_find_among_versions(
    versions: list[tuple[bytes, int]], interval: int, others: list[tuple[bytes, int]]
) -> None:
    ordered = sorted(versions, key=lambda version: (version[0], -version[1]))
    rows = [(tagged(key, number), b"%d" % number) for key, number in ordered]
    block = Block(build(rows, interval))
    for _ in range(3):
        for key, number in [*versions, *others]:
            target = tagged(key, number)
            expected = next((row for row in rows if newest_first(row[0], target) >= 0), None)
            assert block.find(target, key, newest_first, less_eight) == expected


tag_like_keys = st.text("\0\1\2k", max_size=11).map(str.encode)


@given(
    st.lists(st.tuples(keys | tag_like_keys, st.integers(1, 600)), max_size=60, unique=True),
    st.integers(1, 20),
    st.lists(keys | tag_like_keys, max_size=8),
)
def test_newest(versions: list[tuple[bytes, int]], interval: int, others: list[bytes]) -> None:
    """Keys that are beginnings of others, and keys that look like another's tag, among them."""
    ordered = sorted(versions, key=lambda version: (version[0], -version[1]))
    rows = [(tagged(key, number), b"%d" % number) for key, number in ordered]
    block = Block(build(rows, interval))
    for key in {key for key, _ in versions} | set(others):
        for wanted in (key, key + b"\0", key[:-1], key + b"\1\0\0\0\0\0\0\0"):
            expected = next((row for row in rows if row[0][:-8] == wanted), None)
            assert newest_in(block, wanted) == tag_and_value(expected)


def newest_in(block: Block, name: bytes) -> tuple[int, bytes | None]:
    """The same from a block that was never searched, which is to agree."""
    found = Block(block.data).newest(name)
    assert block.newest(name) == found
    return found


def test_newest_in_a_block_that_is_searched_often() -> None:
    block = Block(build([(b"a" + bytes(8), b"1"), (b"short", b"2"), (b"z" + bytes(8), b"3")], 1))
    for _ in range(10):
        with pytest.raises(CorruptionError, match="shorter than its tag"):
            block.newest(b"zz")


def tag_and_value(row: tuple[bytes, bytes] | None) -> tuple[int, bytes | None]:
    if row is None:
        return 0, None
    return int.from_bytes(row[0][-8:], "little", signed=True), row[1]


def test_newest_where_an_entry_shares_part_of_the_tag_before_it() -> None:
    """An entry that shares a part of the tag of the one before, which ends where it goes on."""
    tag = bytes.fromhex("0105000000000000")
    rows = [(b"k" + tag, b"1"), (b"k" + tag + tag, b"2"), (b"l" + tag, b"3")]
    block = Block(build(rows, 16))
    assert [newest_in(block, key[:-8]) for key, _ in rows * 2] == [
        tag_and_value(row) for row in rows * 2
    ]
    assert newest_in(block, b"k" + tag[:-1]) == (0, None)


@pytest.mark.parametrize("size", [60, 200])
def test_newest_in_an_entry_that_runs_past_the_block(size: int) -> None:
    tag = bytes(8)
    data = build([(b"k" + tag, b"v" * size)], 16)
    assert Block(data).newest(b"k") == (0, b"v" * size)
    cut = data[: 3 + 9 + size // 2] + data[-8:]
    for name in (b"k", b"l"):
        with pytest.raises(CorruptionError, match="runs past"):
            Block(cut).newest(name)


@pytest.mark.parametrize("size", [0, 127, 128, 300])
def test_newest_of_long_and_short_entries(size: int) -> None:
    """Lengths of one byte and of two; tags that are negative as numbers."""
    rows = [
        (key + tag, b"v" * length)
        for length in (0, 1, size)
        for key in (b"%04d" % length + b"k" * size, b"%04d" % length + b"k" * size + b"l")
        for tag in (b"\1" + b"\xff" * 7, b"\0" * 8)
    ]
    rows = sorted(dict(rows).items(), key=lambda row: (row[0][:-8], row[0][-8:] == bytes(8)))
    block = Block(build(rows, 3))
    for key, _ in rows:
        first = next(row for row in rows if row[0][:-8] == key[:-8])
        assert newest_in(block, key[:-8]) == tag_and_value(first)


@given(entry_sets, st.integers(1, 20), st.lists(keys, max_size=5))
def test_seek_and_entries(entries: dict[bytes, bytes], interval: int, others: list[bytes]) -> None:
    rows = sorted(entries.items())
    block = Block(build(rows, interval))
    assert list(zip(*block.entries(), strict=True)) == rows
    assert len(block.restart_points()) == max(1, -(-len(rows) // interval))
    sorted_keys = sorted(entries)
    for target in [*entries, *others, *(key + b"\0" for key in entries)]:
        at = bisect_left(sorted_keys, target)
        assert block.seek(target, compare) == (rows[at] if at < len(rows) else None)
        found = list(zip(*block.entries(target, compare), strict=True))
        skipped = len(rows) - len(found)
        assert found == rows[skipped:]  # a suffix, and not more than an interval too long
        assert max(0, at - interval) <= skipped <= at


@given(entry_sets, st.integers(1, 5))
def test_seek_in_another_order(entries: dict[bytes, bytes], interval: int) -> None:
    rows = sorted(entries.items(), reverse=True)
    block = Block(build(rows, interval))
    for key, value in rows:
        assert block.seek(key, REVERSE_BYTEWISE.compare) == (key, value)
        below = [row for row in rows if row[0] <= key + b"\0"]
        assert block.seek(key + b"\0", REVERSE_BYTEWISE.compare) == below[0]


def test_seek_compares_a_logarithm_and_an_interval() -> None:
    rows = [(b"%06d" % number, b"") for number in range(16 * 256)]
    block = Block(build(rows))
    calls: list[bytes] = []

    def counting(a: bytes, b: bytes) -> int:
        calls.append(a)
        return compare(a, b)

    for key, _ in rows[::37]:
        calls.clear()
        assert block.seek(key, counting) == (key, b"")
        assert len(calls) <= 8 + 17


# Damage


def use(data: bytes) -> None:
    """Every way to read a block; :class:`CorruptionError` may come of it, and nothing else."""
    try:
        block = Block(data)
    except CorruptionError:
        return
    for target in (None, b"", b"apple", b"apq", b"b", b"zz"):
        try:
            found, values = block.entries(target, None if target is None else compare)
            assert len(found) == len(values)
            assert sum(map(len, values)) <= len(data)
            if target is not None:
                block.seek(target, compare)
        except CorruptionError:
            pass
    for tail, coarse in ((0, None), (8, less_eight)):
        block = Block(data)
        for target in (b"", b"apple", b"apple\1\0\0\0\0\0\0\0", b"b", b"zz") * 2:
            order = target if coarse is None else coarse(target)
            try:
                block.find(target, order, compare, coarse)
            except CorruptionError:
                pass
            if tail == 8:
                try:
                    block.newest(order)
                except CorruptionError:
                    pass
    try:
        assert all(0 <= offset <= len(data) for offset in block.restart_points())
    except CorruptionError:
        pass


LONG = [(b"p" * 150 + b"%d" % number, b"v" * 130) for number in range(4)]


@pytest.mark.parametrize("interval", [1, 2, 16])
@pytest.mark.parametrize("rows", [[], FRUIT, LONG], ids=["empty", "fruit", "long"])
def test_cut_anywhere(rows: list[tuple[bytes, bytes]], interval: int) -> None:
    data = build(rows, interval)
    for length in range(len(data)):
        use(data[:length])
        use(data[length:])
    for length in range(4):
        with pytest.raises(CorruptionError):
            Block(data[:length])


@pytest.mark.parametrize("interval", [1, 2, 16])
@pytest.mark.parametrize("rows", [[], FRUIT], ids=["empty", "fruit"])
def test_any_byte_changed_to_any_other(rows: list[tuple[bytes, bytes]], interval: int) -> None:
    data = build(rows, interval)
    for at in range(len(data)):
        for byte in (*range(0, 256, 15), 1, 2, 3, 4, 5, 127, 128, 254, data[at] ^ 1):
            use(data[:at] + bytes([byte]) + data[at + 1 :])


@given(st.binary(max_size=64), st.integers(0, 4))
def test_noise(data: bytes, restarts: int) -> None:
    use(data)
    use(data + fixed32(restarts))
    use(data + fixed32(*[0] * restarts, restarts))


FOUR_GIB = b"\xff\xff\xff\xff\x0f"
BIGGER = b"\xff\xff\xff\xff\x1f"
ENDLESS = b"\xff" * 12


@pytest.mark.parametrize(
    "entry",
    [
        b"\x01\x01\x00k",  # shares with nothing
        b"\x00" + FOUR_GIB + b"\x00k",
        b"\x00\x01" + FOUR_GIB + b"k",
        FOUR_GIB + b"\x00\x00",
        FOUR_GIB * 3,
        BIGGER + b"\x00\x00",
        b"\x00" + BIGGER + b"\x00",
        ENDLESS,
        b"\x00\x00" + ENDLESS,
        b"\x00\x05\x00k",  # the key runs into the restart points
        b"\x00\x01\x05k",  # the value does
        b"\x00\x01",
        b"\x00",
        b"\x80\x80",
    ],
)
def test_hostile_lengths(entry: bytes) -> None:
    block = Block(entry + fixed32(0, 1))
    with pytest.raises(CorruptionError):
        block.entries()
    with pytest.raises(CorruptionError):
        block.seek(b"k", compare)
    if entry == b"\x01\x01\x00k":
        entry = b"\x02\x01\x00k"  # of the one byte before it
    after = Block(raw_entry(0, b"a") + entry + fixed32(0, 1))
    with pytest.raises(CorruptionError):
        after.entries()
    with pytest.raises(CorruptionError):
        after.seek(b"k", compare)


@pytest.mark.parametrize("count", [2, 3, 255, 2**16, 2**30, 2**31, 2**32 - 1])
def test_more_restart_points_than_bytes(count: int) -> None:
    with pytest.raises(CorruptionError, match="do not fit"):
        Block(fixed32(0, count))


@pytest.mark.parametrize("offset", [4, 5, 8, 2**31, 2**32 - 1])
def test_restart_points_beyond_the_entries(offset: int) -> None:
    data = raw_entry(0, b"a") + fixed32(offset, 1)
    with pytest.raises(CorruptionError, match="beyond"):
        Block(data).seek(b"a", compare)
    with pytest.raises(CorruptionError, match="beyond"):
        Block(data).restart_points()
    data = raw_entry(0, b"a") + fixed32(0, offset, 2)
    with pytest.raises(CorruptionError, match="beyond"):
        Block(data).entries(b"b", compare)


def test_check_finds_restart_points_that_lead_elsewhere() -> None:
    entries = raw_entry(0, b"abc") + raw_entry(2, b"d") + raw_entry(0, b"b")
    second, third = len(raw_entry(0, b"abc")), len(entries) - len(raw_entry(0, b"b"))
    for rows, interval in itertools.product(([], FRUIT, LONG), (1, 2, 16)):
        Block(build(rows, interval)).check()
    for points in ((0,), (0, third)):
        Block(entries + fixed32(*points, len(points))).check()
    for points in ((), (2,), (third,), (0, second), (0, 2), (0, 0), (0, third, third), (third, 0)):
        with pytest.raises(CorruptionError, match="lead elsewhere"):
            Block(entries + fixed32(*points, len(points))).check()
    with pytest.raises(CorruptionError, match="lead elsewhere"):
        Block(raw_entry(1, b"abc") + fixed32(0, 1)).check()


def test_a_restart_point_inside_an_entry() -> None:
    entries = raw_entry(0, b"abc") + raw_entry(2, b"d")
    for search in (Block.seek, Block.entries):
        with pytest.raises(CorruptionError, match="not whole"):
            search(Block(entries + fixed32(0, 6, 2)), b"b", compare)
    with pytest.raises(CorruptionError, match="shares more"):
        Block(entries + fixed32(6, 1)).seek(b"b", compare)


def test_no_restart_point_at_all() -> None:
    block = Block(raw_entry(0, b"a", b"1") + fixed32(0))
    assert block.entries() == ([b"a"], [b"1"])
    assert block.seek(b"a", compare) == (b"a", b"1")
    assert block.restart_points() == []


# Keys that a small block makes large


def test_a_small_block_of_huge_keys_is_refused() -> None:
    data = raw_entry(0, b"k" * 100_000) + raw_entry(100_000, b"") * 100_000 + fixed32(0, 1)
    block = Block(data, 1_000_000)  # its keys would take 10 GB
    with pytest.raises(CorruptionError, match="share more"):
        block.entries()
    with pytest.raises(CorruptionError, match="share more"):
        block.seek(b"l", compare)
    with pytest.raises(CorruptionError, match="share more"):
        block.rows(8)


def test_a_block_written_within_the_size_limit_can_be_read_within_it() -> None:
    rows = [(b"k" * 1000 + b"%04d" % number, b"") for number in range(100)]
    builder = BlockBuilder(1000, 20_000)
    for key, value in rows:
        builder.add(key, value)
    data = builder.finish()
    block = Block(data, 20_000)
    assert list(zip(*block.entries(), strict=True)) == rows
    assert [block.seek(key, compare) for key, _ in rows] == rows
    # Twenty entries share 1,000 bytes and a few, then every one is whole.
    assert len(block.restart_points()) == 80
    with pytest.raises(CorruptionError, match="share more"):
        Block(data, 19_000).entries()
    builder.reset()
    builder.add(*rows[0])
    builder.add(*rows[1])
    assert builder.finish() == build(rows[:2])


@given(st.lists(st.integers(90, 300), min_size=1, max_size=60), st.integers(0, 1000))
def test_writer_and_reader_count_alike(lengths: list[int], bound: int) -> None:
    rows = sorted({b"k" * length: b"" for length in lengths}.items())
    rows += [(b"l" + key, value) for key, value in rows]
    builder = BlockBuilder(1000, bound)
    for key, value in rows:
        builder.add(key, value)
    block = Block(builder.finish(), bound)
    assert list(zip(*block.entries(), strict=True)) == rows
    assert [block.seek(key, compare) for key, _ in rows] == rows
