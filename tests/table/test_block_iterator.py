"""lsmkv.table.block_iterator: what a reader sees of a block, against a model; hostile blocks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsmkv.errors import CorruptionError
from lsmkv.table.block import Block, BlockBuilder
from lsmkv.table.block_iterator import ALL, NO_LIMIT, NUMBERED, SEEN, BlockIterator
from lsmkv.util.coding import encode_varint

Pairs = list[tuple[bytes, bytes]]

keys = (
    st.binary(max_size=12)
    | st.text("ab\1", max_size=8).map(lambda text: text.encode("latin"))
    | st.sampled_from([b"", b"k", b"kk", b"k\1", b"k\1\5\0"])
)
version_sets = st.dictionaries(
    st.tuples(keys, st.integers(1, 9) | st.integers(2**40, 2**40 + 3)),
    st.sampled_from([0, 1, 1, 1]),
    max_size=40,
)


def tagged(key: bytes, number: int, kind: int = 1) -> bytes:
    return key + (number << 8 | kind).to_bytes(8, "little")


def build(rows: Pairs, interval: int = 16) -> Block:
    builder = BlockBuilder(interval)
    for key, value in rows:
        builder.add(key, value)
    return Block(builder.finish())


def rows_of(versions: dict[tuple[bytes, int], int]) -> Pairs:
    ordered = sorted(versions, key=lambda version: (version[0], -version[1]))
    return [(tagged(*version, versions[version]), b"%d" % version[1]) for version in ordered]


def seen(versions: dict[tuple[bytes, int], int], newest: int) -> Pairs:
    """The model."""
    found: dict[bytes, int] = {}
    for key, number in versions:
        if number <= newest:
            found[key] = max(number, found.get(key, 0))
    return [(key, b"%d" % number) for key, number in sorted(found.items()) if versions[key, number]]


def all_of(walk: BlockIterator, count: int = ALL) -> Pairs:
    pairs: Pairs = []
    while not walk.done:
        some = walk.take(count)
        assert len(some) <= count
        assert len(some) == count or walk.done
        pairs += some
    return pairs


@given(version_sets, st.integers(1, 20), st.integers(0, 10), st.integers(1, 5))
def test_newest_versions(
    versions: dict[tuple[bytes, int], int], interval: int, newest: int, count: int
) -> None:
    block = build(rows_of(versions), interval)
    for limit in (newest, 2**40 + 1, NO_LIMIT):
        assert all_of(BlockIterator(block, limit, b"", b"", False)) == seen(versions, limit)
        assert all_of(BlockIterator(block, limit, b"", b"", False), count) == seen(versions, limit)


@given(version_sets, st.integers(0, 10), st.integers(1, 5))
def test_removals_and_numbers(
    versions: dict[tuple[bytes, int], int], newest: int, count: int
) -> None:
    block = build(rows_of(versions), 3)
    found: dict[bytes, int] = {}
    for key, number in versions:
        if number <= newest:
            found[key] = max(number, found.get(key, 0))
    expected = [
        (key, b"%d" % number if versions[key, number] else None, number)
        for key, number in sorted(found.items())
    ]
    for form in (SEEN, NUMBERED):
        walk = BlockIterator(block, newest, b"", b"", False)
        taken = []
        while not walk.done:
            taken += walk.take(count, form)
        assert taken == [entry if form == NUMBERED else entry[:2] for entry in expected]
    walk = BlockIterator(block, NO_LIMIT, b"", b"", False)
    assert all(number > 0 for _, _, number in walk.take(ALL, NUMBERED))


@given(version_sets, st.integers(1, 20), st.lists(keys, max_size=5), st.booleans())
def test_from_a_key_on(
    versions: dict[tuple[bytes, int], int], interval: int, others: list[bytes], after: bool
) -> None:
    """Keys that are beginnings of others, and keys that look like another's tag, among them."""
    block = build(rows_of(versions), interval)
    pairs = seen(versions, NO_LIMIT)
    for start in {key for key, _ in versions} | set(others):
        for edge in (start, start + b"\0", start[:-1], start + b"\1\5"):
            walk = BlockIterator(block, NO_LIMIT, edge, edge, after)
            expected = [pair for pair in pairs if pair[0] > edge or (pair[0] == edge and not after)]
            assert all_of(walk, 2) == expected


@given(version_sets, st.integers(1, 20), st.lists(keys, max_size=5), st.integers(0, 10))
@example({(b"", 1): 1, (b"", 2): 1}, 1, [b"a"], 9)
def test_the_last_interval_and_the_rest(
    versions: dict[tuple[bytes, int], int], interval: int, others: list[bytes], newest: int
) -> None:
    rows = rows_of(versions)
    block = build(rows, interval)
    pairs = seen(versions, newest)
    for stop in (None, *{key for key, _ in versions}, *others):
        walk = BlockIterator(block, newest, b"", b"", False)
        split = walk.seek_to_restart(stop)
        restarts = [key[:-8] for key, _ in rows[::interval]]
        below = [key for at, key in enumerate(restarts) if at == 0 or stop is None or key < stop]
        assert split == (below[-1] if len(below) > 1 else b"")
        after = all_of(walk, 2)
        assert after == [pair for pair in pairs if not split or pair[0] > split]
        assert all_of(walk.anew(), 2) == pairs


@given(version_sets, st.integers(0, 40), st.integers(0, 10))
def test_versions_of_one_key_in_two_blocks(
    versions: dict[tuple[bytes, int], int], cut: int, newest: int
) -> None:
    rows = rows_of(versions)
    first = BlockIterator(build(rows[:cut], 3), newest, b"", b"", False)
    pairs = all_of(first)
    second = BlockIterator(build(rows[cut:], 3), newest, b"", first.head, first.settled)
    assert pairs + all_of(second) == seen(versions, newest)


def test_the_largest_numbers() -> None:
    for number in (1, 2**32, 2**55, 2**56 - 1):
        block = build([(tagged(b"k", number), b"v")])
        assert all_of(BlockIterator(block, number, b"", b"", False)) == [(b"k", b"v")]
        assert all_of(BlockIterator(block, number - 1, b"", b"", False)) == []


def raw_block(*entries: tuple[int, bytes], restarts: Sequence[int] = (0,)) -> Block:
    """A block of entries that share as much as is said, and restart points of these offsets."""
    body = b"".join(
        encode_varint(shared) + encode_varint(len(suffix)) + b"\0" + suffix
        for shared, suffix in entries
    )
    points = b"".join(at.to_bytes(4, "little") for at in (*restarts, len(restarts)))
    return Block(body + points)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([(1, tagged(b"k", 1))], "not whole"),
        ([(0, b"k")], "shorter than its tag"),
        ([(0, tagged(b"a", 1)), (10, tagged(b"k", 1))], "shares more than the key before"),
        ([(0, tagged(b"a", 1, 2))], "kind 2"),
    ],
)
def test_damage(entries: list[tuple[int, bytes]], reason: str) -> None:
    with pytest.raises(CorruptionError, match=reason):
        all_of(BlockIterator(raw_block(*entries), NO_LIMIT, b"", b"", False))


def test_damage_on_the_way_to_a_key() -> None:
    with pytest.raises(CorruptionError, match="not whole"):
        BlockIterator(raw_block((1, tagged(b"k", 1))), NO_LIMIT, b"k", b"k", False)
    # The first key ends where the wanted one goes on, so every key is put together.
    entries = [(0, tagged(b"k", 1)), (20, tagged(b"l", 1))]
    with pytest.raises(CorruptionError, match="shares more than the key before"):
        BlockIterator(raw_block(*entries), NO_LIMIT, b"kk", b"kk", False)
    with pytest.raises(CorruptionError, match="shorter than its tag"):
        BlockIterator(raw_block((0, b"short")), NO_LIMIT, b"kk", b"kk", False)


def test_no_restart_point() -> None:
    for block in (raw_block(restarts=()), raw_block((0, tagged(b"a", 1)), restarts=())):
        for stop in (None, b"z"):
            assert BlockIterator(block, NO_LIMIT, b"", b"", False).seek_to_restart(stop) == b""


def test_damage_at_a_restart_point() -> None:
    first = (0, tagged(b"a", 1))
    at = 3 + len(first[1])
    for entry, reason in (((1, tagged(b"k", 1)), "not whole"), ((0, b"k"), "shorter than its tag")):
        block = raw_block(first, entry, restarts=(0, at))
        for stop in (None, b"z"):
            with pytest.raises(CorruptionError, match=reason):
                BlockIterator(block, NO_LIMIT, b"", b"", False).seek_to_restart(stop)


def test_keys_that_share_more_than_a_block_may_hold() -> None:
    entries = [(0, tagged(b"k" * 100, 9))]
    entries += [(100, tagged(bytes((byte,)), 1)) for byte in range(10)]
    body = raw_block(*entries).data
    assert len(all_of(BlockIterator(Block(body, 10_000), NO_LIMIT, b"", b"", False))) == 11
    with pytest.raises(CorruptionError, match="share more than a block may hold"):
        all_of(BlockIterator(Block(body, 200), NO_LIMIT, b"", b"", False), 1)


@given(st.binary(max_size=120), st.lists(st.integers(0, 120), max_size=3))
def test_any_bytes(data: bytes, restarts: list[int]) -> None:
    """:class:`CorruptionError` may come of it, and nothing else; what is read agrees with what a
    reader of all entries finds."""
    points = b"".join(point.to_bytes(4, "little") for point in [0, *restarts])
    block = Block(data + points + (1 + len(restarts)).to_bytes(4, "little"))
    for start in (b"", b"a", data[3:5], data[3:12]):
        try:
            for stop in (None, start):
                walk = BlockIterator(block, NO_LIMIT, b"", b"", False)
                walk.seek_to_restart(stop)
                all_of(walk, 3)
        except CorruptionError:
            pass
        try:
            pairs = all_of(BlockIterator(block, NO_LIMIT, start, start, False), 3)
            found, values = block.entries()
        except CorruptionError:
            continue
        whole = list(zip([key[:-8] for key in found], values, strict=True))
        assert all(pair in whole for pair in pairs)
