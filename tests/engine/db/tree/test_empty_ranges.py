"""Empty ranges, against a model: the set of keys that are known to be absent."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from lsmkv.engine.db.tree.empty_ranges import MOST, MOST_PUTS, EmptyRange, EmptyRanges
from lsmkv.engine.format.key_order import KeyOrder, Position
from lsmkv.engine.util.comparator import (
    BytewiseComparator,
    Comparator,
    ReverseBytewiseComparator,
)

BYTEWISE = KeyOrder(BytewiseComparator())
KEYS = 40


def key_of(number: int) -> bytes:
    return b"%03d" % number


def before(number: int | None) -> Position | None:
    return None if number is None else Position(key_of(number), after=False)


def shown(ranges: EmptyRanges) -> list[tuple[str, str, int]]:
    """The ranges, as ``[003`` or ``(003`` and ``003)`` or ``003]``, with their sequences."""

    def text(position: Position | None, ends: str) -> str:
        if position is None:
            return "-"
        return position.user_key.decode() + ends[position.after]

    return [(text(r.lower, "[("), text(r.upper, ")]"), r.sequence) for r in ranges.known()]


def add(
    ranges: EmptyRanges, lower: int | None, upper: int | None, sequence: int, reads: int = 64
) -> None:
    search: list[bytes] = []
    ranges.begin(search)
    ranges.end(search, EmptyRange(before(lower), before(upper), sequence, reads))


def test_ranges_that_touch_become_one() -> None:
    ranges = EmptyRanges(BYTEWISE)
    assert not ranges.active
    add(ranges, 20, 30, 5)
    add(ranges, 5, 10, 7)
    assert shown(ranges) == [("005[", "010)", 7), ("020[", "030)", 5)]
    add(ranges, 10, 20, 6)
    assert shown(ranges) == [("005[", "030)", 7)]
    add(ranges, None, 3, 9)
    add(ranges, 40, None, 9)
    assert shown(ranges) == [("-", "003)", 9), ("005[", "030)", 7), ("040[", "-", 9)]
    add(ranges, None, None, 2)
    assert shown(ranges) == [("-", "-", 9)]
    assert ranges.active


@pytest.mark.parametrize(("lower", "upper"), [(20, 10), (15, 15)])
def test_bounds_that_hold_nothing_are_no_range(lower: int, upper: int) -> None:
    ranges = EmptyRanges(BYTEWISE)
    add(ranges, lower, upper, 5)
    assert not ranges.active
    add(ranges, 5, 12, 5)
    add(ranges, lower, upper, 5)
    assert shown(ranges) == [("005[", "012)", 5)]


def test_a_put_splits_its_range_and_a_deletion_does_not() -> None:
    ranges = EmptyRanges(BYTEWISE)
    add(ranges, 5, 30, 5)
    ranges.note([(key_of(7), None), (key_of(30), b"v"), (key_of(4), b"v")])
    assert shown(ranges) == [("005[", "030)", 5)]
    ranges.note([(key_of(7), b"v")])
    assert shown(ranges) == [("005[", "007)", 5), ("007(", "030)", 5)]
    ranges.note([(key_of(7), b"w")])
    assert len(ranges.known()) == 2


def test_parts_that_save_little_are_forgotten() -> None:
    """What is behind ascending puts keeps its worth."""
    ranges = EmptyRanges(BYTEWISE)
    add(ranges, 0, 30, 5, reads=2 * ranges.shortest + 1)
    ranges.note([(key_of(9), b"v")])
    assert [found.reads for found in ranges.known()] == [2, 4]
    for number in (10, 12, 13):
        ranges.note([(key_of(number), b"v")])
    assert shown(ranges) == [("000[", "009)", 5), ("009(", "010)", 5)]


@pytest.mark.parametrize("way", ["found", "put"])
def test_those_that_save_most_are_kept(way: str) -> None:
    ranges = EmptyRanges(BYTEWISE)
    if way == "found":
        for number in range(1, 3 * MOST, 2):
            add(ranges, 100 + number, 100 + number + 1, 5, reads=number)
    else:
        add(ranges, 0, 1000, 5, reads=10_000)
        numbers = random.Random(1).sample(range(1000), 500)
        for number in numbers:
            ranges.note([(key_of(number), b"v")])
    known = ranges.known()
    assert MOST // 2 < len(known) <= MOST
    if way == "found":
        assert min(found.reads for found in known) == 3 * MOST - 1 - 2 * (MOST - 1)


class Watched:
    """An order of the user, the bytewise one: it calls something before it compares."""

    name = "test.Watched"

    def __init__(self) -> None:
        self.before: Callable[[], None] | None = None

    def compare(self, one: bytes, other: bytes, /) -> int:
        before = self.before
        if before is not None:
            before()
        return (one > other) - (one < other)

    def find_shortest_separator(self, start: bytes, _limit: bytes, /) -> bytes:
        return start

    def find_short_successor(self, key: bytes, /) -> bytes:
        return key


def test_a_range_is_known_once_it_is_split() -> None:
    """A scan that reads the ranges without the lock never sees one over a key that was put."""
    comparator = Watched()
    ranges = EmptyRanges(KeyOrder(comparator))
    search: list[bytes] = []
    ranges.begin(search)
    ranges.note([(key_of(7), b"v")])
    seen: list[int] = []
    comparator.before = lambda: seen.append(len(ranges.known()))
    ranges.end(search, EmptyRange(before(5), before(30), 5, 64))
    assert len(seen) > 2
    assert set(seen) == {0}
    assert len(ranges.known()) == 2


def test_a_comparator_that_fails_leaves_no_search() -> None:
    comparator = Watched()
    ranges = EmptyRanges(KeyOrder(comparator))
    add(ranges, 50, 60, 5)
    search: list[bytes] = []
    ranges.begin(search)

    def fail() -> None:
        raise KeyboardInterrupt

    comparator.before = fail
    with pytest.raises(KeyboardInterrupt):
        ranges.end(search, EmptyRange(before(5), before(30), 5, 64))
    comparator.before = None
    assert len(ranges.known()) == 1
    assert not ranges._searches


def test_a_put_during_a_search_splits_what_it_finds() -> None:
    ranges = EmptyRanges(BYTEWISE)
    search: list[bytes] = []
    ranges.begin(search)
    assert ranges.active
    ranges.note([(key_of(7), b"v"), (key_of(8), None), (key_of(99), b"v")])
    ranges.end(search, EmptyRange(before(5), before(30), 5, 64))
    assert shown(ranges) == [("005[", "007)", 5), ("007(", "030)", 5)]


@pytest.mark.parametrize("why", ["nothing found", "unknown", "too many puts"])
def test_a_search_without_a_result(why: str) -> None:
    ranges = EmptyRanges(BYTEWISE)
    search: list[bytes] = []
    ranges.begin(search)
    if why == "unknown":
        ranges.end(search, None)
    elif why == "too many puts":
        ranges.note([(b"z", b"v")] * (MOST_PUTS + 2))
    found = None if why == "nothing found" else EmptyRange(before(5), before(30), 5, 64)
    ranges.end(search, found)
    assert not ranges.known()
    assert not ranges.active


def test_a_reader_at_an_older_sequence_meets_no_newer_range() -> None:
    ranges = EmptyRanges(BYTEWISE)
    add(ranges, 5, 10, 7)
    add(ranges, 20, 30, 4)
    for back, edge in ((False, None), (True, None), (False, before(6)), (True, before(29))):
        assert ranges.next_from(edge, 3, back) is None
        met = ranges.next_from(edge, 4, back)
        assert met is not None
        assert met.sequence == 4
    met = ranges.next_from(None, 7, False)
    assert met is not None
    assert met.sequence == 7


@pytest.mark.parametrize("comparator", [BytewiseComparator(), ReverseBytewiseComparator()])
@pytest.mark.parametrize("seed", range(20))
def test_random_ranges(comparator: Comparator, seed: int) -> None:
    """No range holds a key that was put since; the next range is the nearest in its direction."""
    rng = random.Random(seed)
    order = KeyOrder(comparator)
    keys = sorted(map(key_of, range(KEYS)), key=order.of)
    edges = [None, *(Position(key, after) for key in keys for after in (False, True)), None]
    ranges = EmptyRanges(order)
    ranges.shortest = 1
    empty: set[bytes] = set()  # what may be in a range

    def span(low: int, high: int) -> set[bytes]:
        return {keys[at] for at in range(KEYS) if low <= 2 * at + 1 and 2 * at + 2 <= high}

    def within(some: EmptyRange) -> set[bytes]:
        lower, upper = some.lower, some.upper
        return {
            key
            for key in keys
            if (lower is None or order.is_at_or_after(key, lower))
            and (upper is None or not order.is_at_or_after(key, upper))
        }

    for _ in range(150):
        kind = rng.randrange(4)
        if kind == 0:
            low, high = sorted(rng.sample(range(len(edges)), 2))
            search: list[bytes] = []
            ranges.begin(search)
            put: set[bytes] = set()
            if rng.random() < 0.5:
                some = rng.sample(keys, 3)
                ranges.note([(key, b"v") for key in some])
                empty.difference_update(some)
                put.update(some)
            ranges.end(search, EmptyRange(edges[low], edges[high], 1, 1 << 20))
            empty |= span(low, high) - put
        elif kind == 1:
            some = rng.sample(keys, rng.choice([1, 3]))
            ranges.note([(key, b"v") for key in some])
            empty.difference_update(some)
        elif kind == 2:
            ranges.note([(key, None) for key in rng.sample(keys, 3)])
        known = ranges.known()
        held = [within(some) for some in known]
        assert set().union(*held) <= empty
        assert sum(map(len, held)) == len(set().union(*held))
        for back in (False, True):
            at = rng.randrange(1, len(edges) - 1)
            met = ranges.next_from(edges[at], 1, back)
            beyond = span(0, at) if back else span(at, len(edges))
            near = [some for some, keys_in in zip(known, held, strict=True) if keys_in & beyond]
            if near:
                wanted = near[-1 if back else 0]
                # One without keys may come first.
                assert met is wanted or (met is not None and not within(met) & beyond)
    assert len(empty) > 0
