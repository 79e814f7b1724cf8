"""Sorted sets, beside a dictionary."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import an_engine

import lsmkv
from lsmkv.server.encoding import SORTED_SET, Entry
from lsmkv.server.engine import Engine
from lsmkv.server.ranks import Ranks
from lsmkv.server.records import Records
from lsmkv.server.sorted_set import SortedSet, place_behind, place_of

members = st.sampled_from([b"a", b"b", b"c", b"", b"\xff", b"x" * 64, b"x" * 65, b"\xff" * 90])
scores = st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 1e-300, 2.0, math.inf])


class Model:
    """A sorted set, and what should be in it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.entry = Entry(SORTED_SET, 1)
        self.ranks = Ranks(least=2)
        self.set = SortedSet(engine.space.records, self.entry, self.ranks)
        self.scores: dict[bytes, float] = {}

    def put(self, member: bytes, score: float) -> None:
        self.set.put(member, score, self.scores.get(member))
        self.scores[member] = score

    def remove(self, member: bytes) -> None:
        if member in self.scores:
            self.set.remove(member, self.scores.pop(member))

    def commit(self) -> None:
        """What is pending goes into the store; the entry goes through its bytes."""
        self.engine.space.records.commit()
        if self.entry.size:
            self.entry = Entry.decode(self.entry.encode())
            self.set = SortedSet(self.engine.space.records, self.entry, self.ranks)

    @property
    def order(self) -> list[tuple[bytes, float]]:
        return sorted(self.scores.items(), key=lambda one: (one[1], one[0]))

    def check(self) -> None:
        """Everything that can be asked."""
        order, found = self.order, self.set
        assert found.entry.size == len(order)
        if not order:
            return
        assert [(m, repr(s)) for m, s in found.walk()] == [(m, repr(s)) for m, s in order]
        assert list(found.walk(reverse=True)) == order[::-1]
        for rank, (member, score) in enumerate(order):
            assert repr(found.score(member)) == repr(score)
            assert found.rank(member) == rank
            place = place_of(score, member)
            assert self.entry.low <= place < self.entry.high
            assert list(found.walk(place)) == order[rank:]
            assert list(found.walk(stop=place, reverse=True)) == order[:rank][::-1]
            behind = [one for one in order if one[1] > score]
            assert list(found.walk(place_behind(score))) == behind
        for start in range(len(order) + 1):
            for stop in range(start, len(order) + 2):
                assert found.slice(start, stop) == order[start:stop]
                assert found.slice(start, stop, reverse=True) == order[::-1][start:stop]
        assert found.score(b"none") is None
        assert found.rank(b"none") is None


@given(st.lists(st.tuples(members, scores | st.none(), st.booleans()), max_size=25))
def test_like_a_dictionary(steps: list[tuple[bytes, float | None, bool]]) -> None:
    with an_engine() as engine:
        model = Model(engine)
        for member, score, commit in steps:
            if score is None:
                model.remove(member)
            else:
                model.put(member, score)
            if commit:
                model.commit()
        model.check()


@pytest.mark.parametrize("highest", [False, True])
def test_bounds_follow_what_is_removed_at_an_end(highest: bool) -> None:
    with an_engine() as engine:
        model = Model(engine)
        for number in range(200):
            model.put(b"%03d" % number, float(number))
        low, high = model.entry.low, model.entry.high
        for number in range(150):
            model.remove(b"%03d" % (199 - number if highest else number))
        # 128 of them were removed when the bounds were looked up last.
        if highest:
            assert model.entry.low == low
            assert model.entry.high == place_of(71.0, b"071") + b"\0"
        else:
            assert model.entry.low == place_of(128.0, b"128")
            assert model.entry.high == high
        model.commit()
        model.check()


def test_members_that_move_count_as_removed() -> None:
    with an_engine() as engine:
        model = Model(engine)
        for number in range(200):
            model.put(b"moving", float(number))
            model.put(b"first", -1.0)
        assert model.entry.removed < 64
        model.check()


def places(order: list[tuple[bytes, float]]) -> list[bytes]:
    """Every place of a member, one before it that may be in between, and one behind it."""
    found = {b"", b"\xff" * 9}
    for member, score in order:
        place = place_of(score, member)
        found |= {place, place[:-1], place + b"\0"}
    return sorted(found)


def check_blocks(model: Model) -> None:
    """The counts of the blocks are those of the set."""
    blocks = model.ranks.get(model.entry.version)
    if blocks is not None:
        assert blocks.starts[0] == b""
        assert blocks.starts == sorted(set(blocks.starts))
        order = [place_of(score, member) for member, score in model.order]
        for at, (start, count) in enumerate(zip(blocks.starts, blocks.counts, strict=True)):
            stop = blocks.end(at)
            held = [one for one in order if start <= one and (stop is None or one < stop)]
            assert len(held) == count


@pytest.mark.parametrize("seed", range(4))
def test_blocks_hold_the_counts_whatever_changes(seed: int) -> None:
    choices = random.Random(seed)
    with an_engine() as engine:
        model = Model(engine)
        names = [b"%d" % number for number in range(400)]
        for step in range(1500):
            growing = (step // 300) % 2 == 0
            member = choices.choice(names)
            if choices.random() < (0.8 if growing else 0.2):
                model.put(member, float(choices.randrange(20)))
            else:
                model.remove(member)
            if step % 20 == 0 and model.scores:
                order = model.order
                rank = choices.randrange(len(order))
                assert model.set.rank(order[rank][0]) == rank
                stop = choices.randrange(rank, len(order) + 1)
                assert model.set.slice(rank, stop) == order[rank:stop]
                low, high = sorted(choices.choices(places(order), k=2))
                within = [one for one in order if low <= place_of(one[1], one[0]) < high]
                assert model.set.count(low, high) == len(within)
                check_blocks(model)
        blocks = model.ranks.get(model.entry.version)
        assert blocks is not None
        assert len(blocks.starts) > 5
        for member in list(model.scores):
            model.remove(member)
        assert len(blocks.starts) == 1


class Steps(Records):
    """Counts what is passed over."""

    def __init__(self, records: Records) -> None:
        super().__init__(records.db)
        self.steps = 0

    def scan(
        self, start: bytes, stop: bytes | None, reverse: bool = False, timed: bool = True
    ) -> Iterator[tuple[bytes, bytes]]:
        for one in super().scan(start, stop, reverse, timed):
            self.steps += 1
            yield one


@pytest.fixture
def counted() -> Iterator[tuple[SortedSet, Steps]]:
    """A set of 20,000 members m00000 ... of scores 0, 1, ..."""
    if lsmkv.COMPILED:
        pytest.skip("nothing inherits from a compiled class")
    with an_engine() as engine:
        records = Steps(engine.space.records)
        found = SortedSet(records, Entry(SORTED_SET, 1), Ranks())
        for number in range(20_000):
            found.put(b"m%05d" % number, float(number), None)
        records.commit()
        yield found, records


def test_a_second_rank_passes_over_a_block_at_most(counted: tuple[SortedSet, Steps]) -> None:
    found, records = counted
    records.steps = 0
    assert found.rank(b"m10000") == 10_000
    assert records.steps < 20_002  # from both ends
    for number in range(0, 20_000, 777):
        records.steps = 0
        assert found.rank(b"m%05d" % number) == number
        assert found.slice(number, number + 3)[0] == (b"m%05d" % number, float(number))
        assert found.slice(number, number + 3, reverse=True)[0][1] == 19_999 - number
        assert records.steps <= 3 * 520


def test_the_first_rank_takes_the_nearer_end(counted: tuple[SortedSet, Steps]) -> None:
    found, records = counted
    for number in (300, 19_700):
        records.steps = 0
        assert found.rank(b"m%05d" % number) == number
        assert records.steps <= 603


def test_a_place_is_found_from_the_nearer_end(counted: tuple[SortedSet, Steps]) -> None:
    found, records = counted
    for start in (1000, 18_990):
        records.steps = 0
        assert found.slice(start, start + 10)[0][1] == start
        assert records.steps <= 1021
    records.steps = 0
    assert found.slice(1010, 1015)[0][1] == 1010
    assert records.steps <= 260


def test_counts_learn_once_they_have_cost_as_much(counted: tuple[SortedSet, Steps]) -> None:
    found, records = counted
    low, high = place_of(9000.0), place_of(12_000.0)
    records.steps = 0
    times = 0
    while found.count(low, high) == 3000 and records.steps < 20_000:
        times += 1
    assert times > 3
    records.steps = 0
    assert found.count(low, high) == 3000
    assert records.steps < 1600
    assert found.count(place_of(9100.0), None) == 10_900
    assert found.count(b"", place_of(9100.0)) == 9100
    assert records.steps < 4500


def test_all_are_counted_without_a_walk(counted: tuple[SortedSet, Steps]) -> None:
    found, records = counted
    records.steps = 0
    assert found.count() == found.count(place_of(-math.inf), place_behind(math.inf)) == 20_000
    assert found.count(b"\xff", b"") == 0
    assert records.steps < 200


def test_members_alike_in_many_bytes_are_not_cut() -> None:
    """Blocks begin with at most 72 bytes; these members first differ after them."""
    with an_engine() as engine:
        model = Model(engine)
        for number in range(50):
            model.put(b"x" * 100 + b"%02d" % number, 1.0)
        model.check()
        blocks = model.ranks.get(1)
        assert blocks is None or blocks.starts == [b""]
        for number in range(50):
            model.put(b"%02d" % number, 2.0)
        model.check()
        check_blocks(model)
        blocks = model.ranks.get(1)
        assert blocks is not None
        assert len(blocks.starts) > 5
        assert max(map(len, blocks.starts)) <= 72
