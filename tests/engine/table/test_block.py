"""lsmkv.engine.table.block: searching against a sorted list, and hostile blocks."""

from __future__ import annotations

import itertools
from math import log2

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from orders import COMPARATORS
from plain import (
    BOUNDS,
    BYTES,
    HALF,
    ORDERS,
    TAG,
    Row,
    Versions,
    build_block,
    entries_of,
    fixed32,
    newest,
    raw_entry,
    rows_of,
    with_tag,
)

from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import KIND_DELETION, KIND_VALUE, MAX_SEQUENCE, pack
from lsmkv.engine.table.block import Block
from lsmkv.engine.util.comparator import BYTEWISE, CallableComparator
from lsmkv.errors import CorruptionError

FRUIT = with_tag(
    [(b"apple", b"1"), (b"apply", b"22"), (b"apricot", b""), (b"b", b"x"), (b"bb", b"y")]
)
LONG = with_tag((b"p" * 150 + b"%d" % number, b"v" * 130) for number in range(4))
VERSIONS = [
    (pack(key, sequence, sequence % 3 > 0), b"%d" % sequence)
    for key in (b"apple", b"b", b"c")
    for sequence in (MAX_SEQUENCE, HALF, 600, 5, 3, 1)
]
ORDER_NAMES = [comparator.name for comparator in COMPARATORS]

tag_like_keys = st.text("\0\1\2kK", max_size=11).map(str.encode)
keys = (
    st.binary(max_size=12)
    | st.text("abAB\xff", max_size=8).map(lambda text: text.encode("latin"))
    | tag_like_keys
)
sequences = st.integers(0, 600) | st.sampled_from(BOUNDS)
version_sets = st.dictionaries(
    st.tuples(keys, sequences), st.sampled_from([KIND_DELETION, *[KIND_VALUE] * 3]), max_size=50
)


def get(
    block: Block, user_key: bytes, sequence: int = MAX_SEQUENCE, order: KeyOrder = BYTES
) -> tuple[int, bytes | None]:
    """What the block has; and the same from a block that was never searched, which is to agree."""
    found = Block(block.data, block.max_shared).get(user_key, sequence, order)
    assert block.get(user_key, sequence, order) == found
    return found


def pairs(block: Block) -> list[Row]:
    return list(zip(*block.entries(), strict=True))


def often_searched(block: Block) -> Block:
    """Where the code is interpreted, it is decoded then."""
    for _ in range(8):
        block.get(b"any", MAX_SEQUENCE, BYTES)
    return block


# Get


@pytest.mark.parametrize("order", ORDERS, ids=ORDER_NAMES)
@given(
    version_sets, st.integers(1, 20), st.lists(keys, max_size=6), st.lists(sequences, max_size=4)
)
@example({(b"k", 9): 1, (b"k", 5): 0, (b"k", 1): 1, (b"kk", 7): 1}, 2, [b"l"], [4, 6, 8])
def test_get_returns_the_newest_version_within_the_bound(
    order: KeyOrder, versions: Versions, interval: int, others: list[bytes], bounds: list[int]
) -> None:
    """Keys that are beginnings of others, and keys that look like another's tag, among them."""
    rows = rows_of(versions, order)
    block = Block(build_block(rows, interval))
    wanted_keys = {key for key, _ in versions} | set(others)
    wanted_keys |= {key.swapcase() for key in wanted_keys}
    wanted_keys |= {key + b"\0" for key in wanted_keys} | {key[:-1] for key in wanted_keys}
    for wanted in wanted_keys | {key + b"\1\0\0\0\0\0\0\0" for key in others}:
        own = {sequence for key, sequence in versions if order.is_same(key, wanted)}
        for bound in {*(sequence - 1 for sequence in own), *own, *bounds, MAX_SEQUENCE}:
            expected = newest(rows, wanted, bound, order)
            assert get(block, wanted, bound, order) == expected


@pytest.mark.parametrize("order", ORDERS, ids=ORDER_NAMES)
@pytest.mark.parametrize("interval", [1, 3, 16])
def test_get_among_many_versions_of_one_key(order: KeyOrder, interval: int) -> None:
    """They fill several restart intervals."""
    versions = {
        (key, sequence): sequence % 4 > 0
        for key in (b"before", b"key", b"later")
        for sequence in (*range(2, 80, 2), *BOUNDS[1:])
    }
    rows = rows_of(versions, order)
    block = Block(build_block(rows, interval))
    assert len(block.restart_points()) == -(-len(rows) // interval)
    for bound in (*range(90), *BOUNDS, HALF + 2, MAX_SEQUENCE - 1):
        for wanted in (b"before", b"key", b"later", b"absent"):
            assert get(block, wanted, bound, order) == newest(rows, wanted, bound, order)


@pytest.mark.parametrize("sequence", BOUNDS)
@pytest.mark.parametrize("kind", [KIND_DELETION, KIND_VALUE])
@pytest.mark.parametrize("order", ORDERS, ids=ORDER_NAMES)
def test_the_tag_is_a_signed_number(sequence: int, kind: int, order: KeyOrder) -> None:
    block = Block(build_block([(pack(b"k", sequence, kind), b"")]))
    tag, value = get(block, b"k", sequence, order)
    assert value == b""
    assert tag & (1 << 64) - 1 == sequence << 8 | kind
    assert (tag < 0) == (sequence >= HALF)
    if sequence > 0:
        assert get(block, b"k", sequence - 1, order) == (0, None)


@pytest.mark.parametrize("order", ORDERS, ids=ORDER_NAMES)
def test_a_deletion_has_its_kind_and_the_empty_value(order: KeyOrder) -> None:
    block = Block(build_block([(pack(b"k", 2, KIND_DELETION), b""), (pack(b"k", 1, 1), b"old")]))
    assert get(block, b"k", 2, order) == (2 << 8, b"")
    assert get(block, b"k", 1, order) == (1 << 8 | 1, b"old")
    assert get(block, b"k", 0, order) == (0, None)


def test_keys_that_are_equal_in_the_order_are_one_key() -> None:
    order = ORDERS[2]
    block = Block(build_block([(pack(b"Key", 7, 1), b"new"), (pack(b"kEY", 3, 1), b"old")], 1))
    for wanted in (b"key", b"KEY", b"Key", b"kEY"):
        assert get(block, wanted, MAX_SEQUENCE, order) == (7 << 8 | 1, b"new")
        assert get(block, wanted, 6, order) == (3 << 8 | 1, b"old")
        assert get(block, wanted, 2, order) == (0, None)


def test_an_entry_that_shares_a_part_of_the_tag_before_it() -> None:
    """Its key goes on where the other one ends, so the shared length alone does not tell."""
    tag = bytes.fromhex("0105000000000000")
    rows = [(b"k" + tag, b"1"), (b"k" + tag + tag, b"2"), (b"l" + tag, b"3")]
    block = Block(build_block(rows, 16))
    for key, _ in rows * 2:
        for bound in (MAX_SEQUENCE, 5, 4):
            expected = newest(rows, key[:-8], bound, BYTES)
            assert get(block, key[:-8], bound) == expected
    assert get(block, b"k" + tag[:-1]) == (0, None)


def test_versions_that_share_parts_of_their_tags() -> None:
    for high in (0x0100, 0x020000, 0x03 << 40, 0x80 << 48):
        rows = [
            (pack(b"k" * size, high + low, 1), b"%d" % low)
            for size in (1, 2, 9)
            for low in (0xFF, 0x80, 2, 1, 0)
        ]
        block = Block(build_block(rows, 16))
        for size in range(11):
            for low in (0xFF, 0xFE, 0x80, 0x7F, 2, 1, 0, -1):
                wanted = b"k" * size
                expected = newest(rows, wanted, high + low, BYTES)
                assert get(block, wanted, high + low) == expected


@pytest.mark.parametrize("size", [0, 127, 128, 300])
def test_get_of_long_and_short_entries(size: int) -> None:
    """Lengths of one byte and of two; tags that are negative as numbers."""
    rows = [
        (key + tag, b"v" * length)
        for length in (0, 1, size)
        for key in (b"%04d" % length + b"k" * size, b"%04d" % length + b"k" * size + b"l")
        for tag in (b"\1" + b"\xff" * 7, b"\0" * 8)
    ]
    rows = sorted(dict(rows).items(), key=lambda row: (row[0][:-8], row[0][-8:] == bytes(8)))
    block = Block(build_block(rows, 3))
    for key, _ in rows:
        for bound in (0, MAX_SEQUENCE - 1, MAX_SEQUENCE):
            assert get(block, key[:-8], bound) == newest(rows, key[:-8], bound, BYTES)


@pytest.mark.parametrize("size", [60, 200])
def test_get_of_an_entry_that_runs_past_the_block(size: int) -> None:
    data = build_block([(b"k" + TAG, b"v" * size)], 16)
    assert get(Block(data), b"k") == (1 << 8 | 1, b"v" * size)
    cut = data[: 3 + 9 + size // 2] + data[-8:]
    for wanted in (b"k", b"l"):
        for order in ORDERS:
            with pytest.raises(CorruptionError, match="runs past"):
                Block(cut).get(wanted, MAX_SEQUENCE, order)


def test_get_in_a_block_that_is_searched_often() -> None:
    rows = [(b"a" + bytes(8), b"1"), (b"short", b"2"), (b"z" + bytes(8), b"3")]
    for order in ORDERS:
        block = Block(build_block(rows, 1))
        for _ in range(10):
            with pytest.raises(CorruptionError, match="shorter than its tag"):
                block.get(b"zz", MAX_SEQUENCE, order)


def test_a_block_without_entries_has_no_version() -> None:
    for data in (build_block([]), fixed32(0)):
        for order in ORDERS:
            for _ in range(8):
                block = Block(data)
                assert get(block, b"", MAX_SEQUENCE, order) == (0, None)
                assert get(block, b"k", 0, order) == (0, None)


def test_get_in_an_order_of_the_users_compares_a_logarithm() -> None:
    calls: list[bytes] = []

    def counting(a: bytes, b: bytes) -> int:
        calls.append(a)
        return BYTEWISE.compare(a, b)

    order = KeyOrder(CallableComparator(counting, "test.Counting"))
    rows = with_tag((b"%06d" % number, b"%d" % number) for number in range(16 * 256))
    block = Block(build_block(rows))
    for key, value in rows[::37]:
        calls.clear()
        assert block.get(key[:-8], MAX_SEQUENCE, order) == (1 << 8 | 1, value)
        assert len(calls) <= log2(len(rows)) + 2


# All entries


@given(version_sets, st.integers(1, 20))
def test_all_entries_in_order(versions: Versions, interval: int) -> None:
    for order in ORDERS:
        rows = rows_of(versions, order)
        block = Block(build_block(rows, interval))
        for searched in (block, often_searched(Block(block.data))):
            assert pairs(searched) == rows
            assert searched.tagged_entries() == entries_of(rows)
        assert len(block.restart_points()) == max(1, -(-len(rows) // interval))
        assert block.first_key() == (rows[0][0] if rows else b"")


@given(st.binary(max_size=60))
@example(raw_entry(0, b"k" * 8) + raw_entry(3, b"kkkkk"))
def test_entries_of_any_bytes(junk: bytes) -> None:
    """What one way of decoding a block finds damaged, the other does too."""
    data = junk + fixed32(0, 1)
    try:
        expected = Block(data).entries()
    except CorruptionError:
        with pytest.raises(CorruptionError):
            Block(data).tagged_entries()
        return
    if min(map(len, expected[0]), default=8) < 8:
        with pytest.raises(CorruptionError):
            Block(data).tagged_entries()
    else:
        found = Block(data).tagged_entries()
        assert found == entries_of(list(zip(*expected, strict=True)))


@pytest.mark.parametrize("size", range(9))
def test_a_key_shorter_than_its_tag(size: int) -> None:
    block = Block(build_block([(b"k" * size, b"value")]))
    if size == 8:
        assert block.tagged_entries() == [(b"", b"k" * 8 + b"value")]
        assert get(block, b"") == (int.from_bytes(b"k" * 8, "little"), b"value")
        return
    assert block.entries() == ([b"k" * size], [b"value"])
    with pytest.raises(CorruptionError, match="shorter than its tag"):
        block.tagged_entries()
    for order, wanted in itertools.product(ORDERS, (b"", b"k", b"z")):
        with pytest.raises(CorruptionError, match="shorter than its tag"):
            Block(block.data).get(wanted, MAX_SEQUENCE, order)


def test_a_key_that_shares_so_much_that_no_tag_is_left() -> None:
    block = Block(raw_entry(0, b"key" + TAG) + raw_entry(4, b"tag") + fixed32(0, 1))
    with pytest.raises(CorruptionError, match="shorter than its tag"):
        block.tagged_entries()
    for order in ORDERS:
        with pytest.raises(CorruptionError, match="shorter than its tag"):
            Block(block.data).get(b"z", MAX_SEQUENCE, order)


def test_len_is_for_the_caches_charge() -> None:
    data = build_block(FRUIT)
    assert len(Block(data)) == len(often_searched(Block(data))) == len(data)


# Restart points


@pytest.mark.parametrize("order", ORDERS, ids=ORDER_NAMES)
@given(version_sets, st.integers(1, 5), st.lists(keys, max_size=6))
def test_the_last_restart_point_before_a_key(
    order: KeyOrder, versions: Versions, interval: int, others: list[bytes]
) -> None:
    rows = rows_of(versions, order)
    block = Block(build_block(rows, interval))
    points = block.restart_points()
    assert block.last_restart == points[-1]
    for wanted in {key for key, _ in versions} | set(others):
        below = [
            point
            for point, (key, _) in zip(points, rows[::interval], strict=False)
            if order.compare(key[:-8], wanted) < 0
        ]
        assert block.restart_before(wanted, order) == (below[-1] if below else 0)


# Damage


def use(data: bytes) -> None:
    """Every way to read a block; :class:`CorruptionError` may come of it, and nothing else."""
    try:
        block = Block(data)
    except CorruptionError:
        return
    try:
        found, values = block.entries()
        assert len(found) == len(values)
        assert sum(map(len, values)) <= len(data)
    except CorruptionError:
        pass
    try:
        assert sum(len(tagged) - 8 for _, tagged in block.tagged_entries()) <= len(data)
    except CorruptionError:
        pass
    for order in ORDERS[:2]:
        block = Block(data)
        for wanted in (b"", b"apple", b"apple\1\0\0\0\0\0\0\0", b"b", b"zz") * 2:
            for bound in (MAX_SEQUENCE, 4):
                try:
                    tag, value = block.get(wanted, bound, order)
                    assert value is None or len(value) <= len(data)
                    assert value is None or (tag >> 8) & MAX_SEQUENCE <= bound
                except CorruptionError:
                    pass
            try:
                assert 0 <= block.restart_before(wanted, order) <= len(data)
            except CorruptionError:
                pass
    for check in (block.first_key, block.check, lambda: block.last_restart):
        try:
            check()
        except CorruptionError:
            pass
    try:
        assert all(0 <= offset <= len(data) for offset in block.restart_points())
    except CorruptionError:
        pass


@pytest.mark.parametrize("interval", [1, 2, 16])
@pytest.mark.parametrize(
    "rows", [[], FRUIT, LONG, VERSIONS], ids=["empty", "fruit", "long", "versions"]
)
def test_cut_anywhere(rows: list[Row], interval: int) -> None:
    data = build_block(rows, interval)
    for length in range(len(data)):
        use(data[:length])
        use(data[length:])
    for length in range(4):
        with pytest.raises(CorruptionError):
            Block(data[:length])


@pytest.mark.parametrize("interval", [1, 2, 16])
@pytest.mark.parametrize("rows", [[], FRUIT, VERSIONS], ids=["empty", "fruit", "versions"])
def test_any_byte_changed_to_any_other(rows: list[Row], interval: int) -> None:
    data = build_block(rows, interval)
    few = (0, 1, 3, 9, 16, 127, 128, 255)
    for at in range(len(data)):
        for byte in (*few, data[at] ^ 1, data[at] + 1 & 255, data[at] - 1 & 255):
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
        b"\x00\x09\x00k",  # the key runs into the restart points
        b"\x00\x01\x05k",  # the value does
        b"\x00\x01",
        b"\x00",
        b"\x80\x80",
    ],
)
def test_hostile_lengths(entry: bytes) -> None:
    alone = entry + fixed32(0, 1)
    if entry == b"\x01\x01\x00k":
        entry = b"\x0a\x01\x00k"  # of the nine bytes before it
    after = raw_entry(0, b"a" + TAG) + entry + fixed32(0, 1)
    for data in (alone, after):
        with pytest.raises(CorruptionError):
            Block(data).entries()
        with pytest.raises(CorruptionError):
            Block(data).tagged_entries()
        for order in ORDERS:
            with pytest.raises(CorruptionError):
                Block(data).get(b"k", MAX_SEQUENCE, order)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [(b"\x02\x07\x00k", "runs past"), (raw_entry(10, b"k" * 8), "shares more")],
)
def test_damage_behind_a_version_that_is_too_new(entry: bytes, reason: str) -> None:
    data = raw_entry(0, pack(b"a", 9, 1), b"v") + entry + fixed32(0, 1)
    assert Block(data).get(b"a", 9, BYTES) == (9 << 8 | 1, b"v")
    for order in ORDERS:
        with pytest.raises(CorruptionError, match=reason):
            Block(data).get(b"a", 8, order)


@pytest.mark.parametrize("count", [2, 3, 255, 2**16, 2**30, 2**31, 2**32 - 1])
def test_more_restart_points_than_bytes(count: int) -> None:
    with pytest.raises(CorruptionError, match="do not fit"):
        Block(fixed32(0, count))


@pytest.mark.parametrize("offset", [12, 13, 16, 2**31, 2**32 - 1])
def test_restart_points_beyond_the_entries(offset: int) -> None:
    entry = raw_entry(0, b"a" + TAG)
    assert len(entry) == 12
    for data in (entry + fixed32(offset, 1), entry + fixed32(0, offset, 2)):
        with pytest.raises(CorruptionError, match="beyond"):
            Block(data).restart_points()
        with pytest.raises(CorruptionError, match="beyond"):
            Block(data).check()
    with pytest.raises(CorruptionError, match="beyond"):
        _ = Block(data).last_restart
    for order in ORDERS:
        with pytest.raises(CorruptionError, match="beyond"):
            Block(data).restart_before(b"b", order)
    with pytest.raises(CorruptionError, match="beyond"):
        Block(data).get(b"b", MAX_SEQUENCE, BYTES)


def test_check_finds_invalid_restart_points() -> None:
    entries = raw_entry(0, b"abc") + raw_entry(2, b"d") + raw_entry(0, b"b")
    second, third = len(raw_entry(0, b"abc")), len(entries) - len(raw_entry(0, b"b"))
    for rows, interval in itertools.product(([], FRUIT, LONG, VERSIONS), (1, 2, 16)):
        Block(build_block(rows, interval)).check()
    for points in ((0,), (0, third)):
        Block(entries + fixed32(*points, len(points))).check()
    for points in ((), (2,), (third,), (0, second), (0, 2), (0, 0), (0, third, third), (third, 0)):
        with pytest.raises(CorruptionError, match="invalid restart points"):
            Block(entries + fixed32(*points, len(points))).check()
    with pytest.raises(CorruptionError, match="invalid restart points"):
        Block(raw_entry(1, b"abc") + fixed32(0, 1)).check()


def test_a_restart_point_whose_key_is_incomplete() -> None:
    first = raw_entry(0, b"abc" + TAG)
    data = first + raw_entry(2, b"d" + TAG) + fixed32(0, len(first), 2)
    for order in ORDERS:
        with pytest.raises(CorruptionError, match="incomplete"):
            Block(data).restart_before(b"b", order)
    with pytest.raises(CorruptionError, match="incomplete"):
        Block(data).get(b"b", MAX_SEQUENCE, BYTES)


def test_a_restart_point_whose_key_is_shorter_than_its_tag() -> None:
    first = raw_entry(0, b"abc" + TAG)
    data = first + raw_entry(0, TAG[1:]) + fixed32(0, len(first), 2)
    for order in ORDERS:
        with pytest.raises(CorruptionError, match="shorter than its tag"):
            Block(data).restart_before(b"b", order)
        with pytest.raises(CorruptionError, match="shorter than its tag"):
            Block(data).get(b"b", MAX_SEQUENCE, order)


def test_no_restart_point_at_all() -> None:
    block = Block(raw_entry(0, b"a" + TAG, b"1") + fixed32(0))
    assert block.entries() == ([b"a" + TAG], [b"1"])
    assert block.tagged_entries() == [(b"a", TAG + b"1")]
    assert block.restart_points() == []
    assert block.last_restart == 0
    assert block.restart_before(b"z", BYTES) == 0
    with pytest.raises(CorruptionError, match="invalid restart points"):
        block.check()
    for order in ORDERS:
        tag, value = Block(block.data).get(b"a", MAX_SEQUENCE, order)
        assert (tag, value) in ((0, None), (1 << 8 | 1, b"1"))


# Keys that a small block makes large


def test_a_small_block_of_huge_keys_is_refused() -> None:
    data = raw_entry(0, b"k" * 100_000) + raw_entry(100_000, b"") * 100_000 + fixed32(0, 1)
    block = Block(data, 1_000_000)  # its keys would take 10 GB
    with pytest.raises(CorruptionError, match="share more"):
        block.entries()
    with pytest.raises(CorruptionError, match="share more"):
        block.tagged_entries()
    for order in ORDERS[1:]:
        with pytest.raises(CorruptionError, match="share more"):
            block.get(b"l", MAX_SEQUENCE, order)


def test_a_get_does_not_put_huge_keys_together() -> None:
    data = raw_entry(0, b"k" * 100_000) + raw_entry(100_000, b"") * 100_000 + fixed32(0, 1)
    assert Block(data, 1_000_000).get(b"l", MAX_SEQUENCE, BYTES) == (0, None)
