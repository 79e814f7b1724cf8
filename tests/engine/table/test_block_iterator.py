"""lsmkv.engine.table.block_iterator: what a reader sees of a block, against a model; hostile
blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from orders import COMPARATORS
from plain import (
    BOUNDS,
    BYTES,
    ORDERS,
    Row,
    Versions,
    build_block,
    fixed32,
    raw_entry,
    rows_of,
    with_tag,
)
from runs import single_entries

from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import MAX_SEQUENCE, pack, unpack
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.block_iterator import ALL, WITH_DELETIONS, WITH_SEQUENCES, BlockIterator
from lsmkv.engine.table.deletion_run import SHORTEST_RUN, DeletionRun, run_in
from lsmkv.engine.util.comparator import BYTEWISE, CallableComparator
from lsmkv.errors import CorruptionError

REVERSE = ORDERS[1]

Seen = tuple[bytes, bytes | None, int]

IN_EVERY_ORDER = pytest.mark.parametrize(
    "order", ORDERS, ids=[comparator.name for comparator in COMPARATORS]
)

keys = (
    st.binary(max_size=12)
    | st.text("abAB\1", max_size=8).map(lambda text: text.encode("latin"))
    | st.sampled_from([b"", b"k", b"K", b"kk", b"kK", b"k\1", b"k\1\5\0"])
)
version_sets = st.dictionaries(
    st.tuples(keys, st.integers(1, 9) | st.integers(2**40, 2**40 + 3) | st.sampled_from(BOUNDS)),
    st.sampled_from([0, 1, 1, 1]),
    max_size=40,
)
bounds = st.integers(0, 10) | st.sampled_from(BOUNDS)


def build(rows: list[Row], interval: int = 16) -> Block:
    return Block(build_block(rows, interval))


def all_seen(rows: list[Row], bound: int, order: KeyOrder) -> list[Seen]:
    """The model: of each key the first version that is not beyond the bound, and its sequence."""
    found: list[Seen] = []
    for key, value in rows:
        user_key, sequence, kind = unpack(key)
        if sequence <= bound and not (found and order.is_same(found[-1][0], user_key)):
            found.append((user_key, value if kind else None, sequence))
    return found


def seen(rows: list[Row], bound: int, order: KeyOrder = BYTES) -> list[Row]:
    return [(key, value) for key, value, _ in all_seen(rows, bound, order) if value is not None]


def beyond(pairs: list[Row], edge: bytes, after: bool, order: KeyOrder) -> list[Row]:
    """Those at a key or after it; or, with ``after``, those after it."""
    return [pair for pair in pairs if order.compare(pair[0], edge) >= after]


def all_of(iterator: BlockIterator, count: int = ALL) -> list[Row]:
    pairs: list[Row] = []
    while not iterator.done:
        some = iterator.next_entries(count)
        assert len(some) <= count
        assert len(some) == count or iterator.done
        pairs += some
    return pairs


@IN_EVERY_ORDER
@given(version_sets, st.integers(1, 20), bounds, st.integers(1, 5))
def test_newest_versions(
    order: KeyOrder, versions: Versions, interval: int, bound: int, count: int
) -> None:
    rows = rows_of(versions, order)
    block = build(rows, interval)
    for sequence in (bound, 2**40 + 1, MAX_SEQUENCE):
        expected = seen(rows, sequence, order)
        assert all_of(BlockIterator(block, order, sequence)) == expected
        assert all_of(BlockIterator(block, order, sequence), count) == expected


@IN_EVERY_ORDER
@given(version_sets, bounds, st.integers(1, 5))
def test_deletions_and_sequences(
    order: KeyOrder, versions: Versions, bound: int, count: int
) -> None:
    rows = rows_of(versions, order)
    block = build(rows, 3)
    for sequence in (bound, MAX_SEQUENCE):
        expected = all_seen(rows, sequence, order)
        for form in (WITH_DELETIONS, WITH_SEQUENCES):
            iterator = BlockIterator(block, order, sequence)
            taken = []
            while not iterator.done:
                taken += single_entries(iterator.next_entries(count, form))
            assert taken == [entry if form == WITH_SEQUENCES else entry[:2] for entry in expected]


@pytest.mark.parametrize("form", [WITH_DELETIONS, WITH_SEQUENCES])
def test_a_value_ends_a_run(form: int) -> None:
    kinds = [0] * 12 + [1] + [0] * 3 + [1] + [0] * 9 + [1]
    rows = [(pack(b"%03d" % at, at + 1, kind), b"v" * kind) for at, kind in enumerate(kinds)]
    entries = BlockIterator(build(rows), BYTES, MAX_SEQUENCE).next_entries(ALL, form)
    runs = [run for entry in entries if (run := run_in(entry)) is not None]
    assert [len(run.keys) for run in runs] == [12, 9]
    expected = all_seen(rows, MAX_SEQUENCE, BYTES)
    assert single_entries(entries) == [entry[: 2 + (form == WITH_SEQUENCES)] for entry in expected]


@given(
    version_sets, st.integers(1, 20), bounds, st.none() | keys, st.none() | keys, st.integers(1, 9)
)
def test_deletions_that_hide_nothing_are_stepped_over(
    versions: Versions,
    interval: int,
    bound: int,
    before: bytes | None,
    start: bytes | None,
    count: int,
) -> None:
    """Nothing else is: no other entry, and no older version appears in their place."""
    rows = rows_of(versions, BYTES)
    block = build(rows, interval)
    for sequence in (bound, MAX_SEQUENCE):
        expected = all_seen(rows, sequence, BYTES)
        if start is not None:
            expected = [entry for entry in expected if entry[0] >= start]
        iterator = BlockIterator(block, BYTES, sequence, start, start or b"")
        while not iterator.done:
            iterator.skip_deletions(before)
            some = single_entries(iterator.next_entries(count, WITH_SEQUENCES))
            while expected and (not some or expected[0] != some[0]):
                key, value, _ = expected.pop(0)
                assert value is None
                assert before is None or key < before
            assert some == expected[: len(some)]
            del expected[: len(some)]
        assert not expected


@given(version_sets, st.integers(1, 20), bounds, st.sets(keys), st.none() | keys, st.booleans())
def test_entries_whose_keys_a_newer_source_deletes_are_stepped_over(
    versions: Versions,
    interval: int,
    bound: int,
    deleted: set[bytes],
    start: bytes | None,
    by_sequence: bool,
) -> None:
    """Nothing else is; where sequences decide, only older entries."""
    rows = rows_of(versions, BYTES)
    block = build(rows, interval)
    names = sorted(deleted | {key for key, _ in list(versions)[::2]})
    numbers = [5 + len(name) for name in names]
    run = DeletionRun(names, 0, numbers)
    hides = dict(zip(names, numbers, strict=True))
    for sequence in (bound, MAX_SEQUENCE):
        expected = all_seen(rows, sequence, BYTES)
        if start is not None:
            expected = [entry for entry in expected if entry[0] >= start]
        iterator = BlockIterator(block, BYTES, sequence, start, start or b"")
        while not iterator.done:
            iterator.skip_hidden(run, by_sequence)
            some = iterator.next_entries(1, WITH_SEQUENCES)
            while expected and expected[:1] != some:
                key, _, number = expected.pop(0)
                assert key in hides
                assert not by_sequence or number < hides[key]
            del expected[: len(some)]
        assert not expected


def test_a_block_of_entries_that_do_not_count_is_stepped_over_whole() -> None:
    names = [b"%05d" % number for number in range(0, 300, 2)]
    values = build([(pack(name, number + 1, 1), b"v") for number, name in enumerate(names)], 7)
    deletions = build([(pack(name, 1000 + number, 0), b"") for number, name in enumerate(names)])
    entries = BlockIterator(deletions, BYTES, MAX_SEQUENCE).next_entries(ALL, WITH_SEQUENCES)
    assert len(entries) == SHORTEST_RUN + 1
    run = run_in(entries[-1])
    assert run is not None
    assert run.keys == names
    for by_sequence in (False, True):
        iterator = BlockIterator(values, BYTES, MAX_SEQUENCE)
        iterator.skip_hidden(run, by_sequence)
        assert iterator.done
        assert (iterator.user_key, iterator.settled) == (names[-1], True)
    for before, left in ((None, []), (b"00003", names[2:]), (b"z", [])):
        iterator = BlockIterator(deletions, BYTES, MAX_SEQUENCE)
        iterator.skip_deletions(before)
        rest = single_entries(iterator.next_entries(ALL, WITH_DELETIONS))
        assert rest == [(name, None) for name in left]
        assert iterator.user_key == names[-1]
    other = DeletionRun([b"%05d" % number for number in range(0, 300, 3)], 0, None)
    iterator = BlockIterator(values, BYTES, MAX_SEQUENCE)
    iterator.skip_hidden(other, False)
    assert iterator.next_entries(1) == [(b"00002", b"v")]


@IN_EVERY_ORDER
@given(version_sets, st.integers(1, 20), st.lists(keys, max_size=5), st.booleans(), bounds)
def test_from_a_key_on(
    order: KeyOrder,
    versions: Versions,
    interval: int,
    others: list[bytes],
    after: bool,
    bound: int,
) -> None:
    """Keys that are beginnings of others, and keys that look like another's tag, among them."""
    rows = rows_of(versions, order)
    block = build(rows, interval)
    for sequence in (bound, MAX_SEQUENCE):
        pairs = seen(rows, sequence, order)
        for start in {key for key, _ in versions} | set(others):
            for edge in (start, start + b"\0", start[:-1], start + b"\1\5", start.swapcase()):
                iterator = BlockIterator(block, order, sequence, edge, edge, after)
                assert all_of(iterator, 2) == beyond(pairs, edge, after, order)


@pytest.mark.parametrize("after", [False, True])
def test_from_the_empty_key_on_where_it_is_the_last(after: bool) -> None:
    rows = with_tag([(b"b", b"1"), (b"a", b"2"), (b"", b"3")])
    iterator = BlockIterator(build(rows), REVERSE, MAX_SEQUENCE, b"", b"", after)
    assert all_of(iterator) == ([] if after else [(b"", b"3")])


@IN_EVERY_ORDER
@given(version_sets, st.integers(1, 20), st.lists(keys, max_size=5), bounds)
@example({(b"", 1): 1, (b"", 2): 1}, 1, [b"a"], 9)
def test_the_last_interval_and_the_rest(
    order: KeyOrder, versions: Versions, interval: int, others: list[bytes], bound: int
) -> None:
    rows = rows_of(versions, order)
    block = build(rows, interval)
    pairs = seen(rows, bound, order)
    restarts = [key[:-8] for key, _ in rows[::interval]]
    for stop in (None, *{key for key, _ in versions}, *others):
        iterator = BlockIterator(block, order, bound)
        split = iterator.seek_to_restart(stop)
        below = [
            key
            for at, key in enumerate(restarts)
            if at == 0 or stop is None or order.compare(key, stop) < 0
        ]
        assert split == (below[-1] if len(below) > 1 else b"")
        after = all_of(iterator, 2)
        assert after == [pair for pair in pairs if not split or order.compare(pair[0], split) > 0]
        assert all_of(iterator.from_start(), 2) == pairs


@IN_EVERY_ORDER
@given(version_sets, st.integers(0, 40), bounds)
@example({(b"k", 9): 1, (b"k", 5): 1, (b"K", 3): 1, (b"l", 2): 0}, 1, 5)
@example({(b"k", 9): 1, (b"k", 5): 1, (b"K", 3): 1, (b"l", 2): 0}, 1, 9)
def test_versions_of_one_key_in_two_blocks(
    order: KeyOrder, versions: Versions, cut: int, bound: int
) -> None:
    rows = rows_of(versions, order)
    for sequence in (bound, MAX_SEQUENCE):
        first = BlockIterator(build(rows[:cut], 3), order, sequence)
        pairs = all_of(first)
        before, settled = first.user_key, first.settled
        second = BlockIterator(
            build(rows[cut:], 3), order, sequence, before=before, settled=settled
        )
        assert pairs + all_of(second) == seen(rows, sequence, order)


@IN_EVERY_ORDER
@given(version_sets, st.integers(0, 40), bounds, keys, st.booleans())
def test_from_a_key_on_that_goes_on_in_the_next_block(
    order: KeyOrder, versions: Versions, cut: int, bound: int, start: bytes, after: bool
) -> None:
    """A scan begins in a block whose last key is its start, or lies after it."""
    rows = rows_of(versions, order)
    for edge in {start, *(key for key, _ in versions)} - {b""}:
        if not rows[:cut] or order.compare(rows[:cut][-1][0][:-8], edge) < 0:
            continue
        first = BlockIterator(build(rows[:cut], 3), order, bound, edge, edge, after)
        pairs = all_of(first)
        before, settled = first.user_key, first.settled
        second = BlockIterator(build(rows[cut:], 3), order, bound, before=before, settled=settled)
        pairs += all_of(second)
        assert pairs == beyond(seen(rows, bound, order), edge, after, order)


@IN_EVERY_ORDER
def test_the_largest_sequences(order: KeyOrder) -> None:
    for sequence in (1, 2**32, 2**55 - 1, 2**55, 2**56 - 1):
        block = build([(pack(b"k", sequence, 1), b"v")])
        assert all_of(BlockIterator(block, order, sequence)) == [(b"k", b"v")]
        assert all_of(BlockIterator(block, order, sequence - 1)) == []
        iterator = BlockIterator(block, order, sequence)
        assert iterator.next_entries(ALL, WITH_SEQUENCES) == [(b"k", b"v", sequence)]


def test_a_start_in_an_order_of_the_users_compares_a_logarithm_and_an_interval() -> None:
    calls: list[bytes] = []

    def counting(a: bytes, b: bytes) -> int:
        calls.append(a)
        return BYTEWISE.compare(a, b)

    order = KeyOrder(CallableComparator(counting, "test.Counting"))
    rows = with_tag((b"%06d" % number, b"") for number in range(16 * 256))
    block = build(rows)
    for key, _ in rows[::37]:
        calls.clear()
        iterator = BlockIterator(block, order, MAX_SEQUENCE, key[:-8])
        assert len(calls) <= log2(256) + 17
        assert iterator.next_entries(1) == [(key[:-8], b"")]


# Damage


def raw_block(*entries: tuple[int, bytes], restarts: Sequence[int] = (0,)) -> Block:
    """A block of entries that share as much as is said, and restart points of these offsets."""
    body = b"".join(raw_entry(shared, suffix) for shared, suffix in entries)
    return Block(body + fixed32(*restarts, len(restarts)))


@IN_EVERY_ORDER
@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([(1, pack(b"k", 1, 1))], "incomplete"),
        ([(0, b"k")], "shorter than its tag"),
        ([(0, pack(b"a", 1, 1)), (10, pack(b"k", 1, 1))], "shares more than the previous key"),
        ([(0, pack(b"a", 1, 2))], "kind 2"),
        ([(0, pack(b"a", 1, 255))], "kind 255"),
    ],
)
def test_damage(order: KeyOrder, entries: list[tuple[int, bytes]], reason: str) -> None:
    with pytest.raises(CorruptionError, match=reason):
        all_of(BlockIterator(raw_block(*entries), order, MAX_SEQUENCE))


@pytest.mark.parametrize("order", [ORDERS[0], ORDERS[2], ORDERS[3]])
def test_damage_on_the_way_to_a_key(order: KeyOrder) -> None:
    reason = "incomplete" if order.is_bytewise else "shares more than the previous key"
    with pytest.raises(CorruptionError, match=reason):
        BlockIterator(raw_block((1, pack(b"k", 1, 1))), order, MAX_SEQUENCE, b"k")
    # The first key ends where the wanted one goes on, so every key is put together.
    entries = [(0, pack(b"k", 1, 1)), (20, pack(b"l", 1, 1))]
    with pytest.raises(CorruptionError, match="shares more than the previous key"):
        BlockIterator(raw_block(*entries), order, MAX_SEQUENCE, b"kk")
    with pytest.raises(CorruptionError, match="shorter than its tag"):
        BlockIterator(raw_block((0, b"short")), order, MAX_SEQUENCE, b"kk")


@IN_EVERY_ORDER
def test_no_restart_point(order: KeyOrder) -> None:
    for block in (raw_block(restarts=()), raw_block((0, pack(b"a", 1, 1)), restarts=())):
        for stop in (None, b"z"):
            assert BlockIterator(block, order, MAX_SEQUENCE).seek_to_restart(stop) == b""


@IN_EVERY_ORDER
def test_damage_at_a_restart_point(order: KeyOrder) -> None:
    first = (0, pack(b"a", 1, 1))
    at = 3 + len(first[1])
    for entry, reason in (
        ((1, pack(b"k", 1, 1)), "incomplete"),
        ((0, b"k"), "shorter than its tag"),
    ):
        block = raw_block(first, entry, restarts=(0, at))
        for stop in (None, b"z"):
            with pytest.raises(CorruptionError, match=reason):
                BlockIterator(block, order, MAX_SEQUENCE).seek_to_restart(stop)


@IN_EVERY_ORDER
def test_keys_that_share_more_than_a_block_may_hold(order: KeyOrder) -> None:
    entries = [(0, pack(b"k" * 100, 9, 1))]
    entries += [(100, pack(bytes((byte,)), 1, 1)) for byte in range(10)]
    body = raw_block(*entries).data
    assert len(all_of(BlockIterator(Block(body, 10_000), order, MAX_SEQUENCE))) == 11
    with pytest.raises(CorruptionError, match="share more bytes than a block may hold"):
        all_of(BlockIterator(Block(body, 200), order, MAX_SEQUENCE), 1)


@IN_EVERY_ORDER
@given(st.binary(max_size=120), st.lists(st.integers(0, 120), max_size=3))
@example(raw_entry(0, pack(b"k", 7, 1)) + raw_entry(3, pack(b"k", 6, 1)[3:]), [])
def test_any_bytes(order: KeyOrder, data: bytes, restarts: list[int]) -> None:
    """:class:`CorruptionError` may come of it, and nothing else; what is read agrees with what a
    reader of all entries finds."""
    block = Block(data + fixed32(0, *restarts, 1 + len(restarts)))
    for start in (b"", b"a", data[3:5], data[3:12]):
        try:
            for stop in (None, start):
                iterator = BlockIterator(block, order, MAX_SEQUENCE)
                iterator.seek_to_restart(stop)
                all_of(iterator, 3)
        except CorruptionError:
            pass
        try:
            pairs = all_of(BlockIterator(block, order, MAX_SEQUENCE, start, start), 3)
            found, values = block.entries()
        except CorruptionError:
            continue
        whole = list(zip([key[:-8] for key in found], values, strict=True))
        assert all(pair in whole for pair in pairs)


SOUND = [
    (pack(key, sequence, sequence % 4 > 0), b"%d" % sequence)
    for key in (b"apple", b"apples", b"b")
    for sequence in (MAX_SEQUENCE, 1 << 55, 600, 5, 4, 1)
]


RUN = DeletionRun([b"", b"apple", b"applet", b"b"], 0, [700, 700, 700, 700])


def use(data: bytes, order: KeyOrder) -> None:
    """Every way to go through a block; nothing but :class:`CorruptionError` may come of it."""
    try:
        block = Block(data)
    except CorruptionError:
        return
    for bound in (MAX_SEQUENCE, 4):
        for start in (b"", b"apple", b"apples", b"zz"):
            try:
                iterator = BlockIterator(block, order, bound, start, start, bound == 4)
                while not iterator.done:
                    if order.is_bytewise:
                        iterator.skip_deletions(start if bound == 4 else None)
                        iterator.skip_hidden(RUN, bound == 4)
                    iterator.next_entries(2, WITH_SEQUENCES)
            except CorruptionError:
                pass
        for stop in (None, b"apples"):
            try:
                iterator = BlockIterator(block, order, bound)
                iterator.seek_to_restart(stop)
                all_of(iterator, 3)
            except CorruptionError:
                pass


@IN_EVERY_ORDER
@pytest.mark.parametrize("interval", [2, 16])
def test_a_block_cut_anywhere(order: KeyOrder, interval: int) -> None:
    data = build_block(SOUND, interval)
    for length in range(len(data)):
        use(data[:length], order)
        use(data[length:], order)


@pytest.mark.parametrize("order", [ORDERS[0], ORDERS[2]])
@pytest.mark.parametrize("interval", [2, 16])
def test_any_byte_changed(order: KeyOrder, interval: int) -> None:
    data = build_block(SOUND, interval)
    for at in range(len(data)):
        for byte in (0, 1, 8, 9, 127, 128, 255, data[at] ^ 1):
            use(data[:at] + bytes([byte]) + data[at + 1 :], order)
