"""Sorted sets, beside a dictionary."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import an_engine

from lsmkv.server.encoding import SORTED_SET, Entry
from lsmkv.server.engine import Engine
from lsmkv.server.sorted_set import SortedSet, place_behind, place_of

members = st.sampled_from([b"a", b"b", b"c", b"", b"\xff", b"x" * 64, b"x" * 65, b"\xff" * 90])
scores = st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 1e-300, 2.0, math.inf])


class Model:
    """A sorted set, and what should be in it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.entry = Entry(SORTED_SET, 1)
        self.set = SortedSet(engine.space.overlay, self.entry)
        self.scores: dict[bytes, float] = {}

    def put(self, member: bytes, score: float) -> None:
        self.set.put(member, score, self.scores.get(member))
        self.scores[member] = score

    def remove(self, member: bytes) -> None:
        if member in self.scores:
            self.set.remove(member, self.scores.pop(member))

    def commit(self) -> None:
        """What is pending goes into the store; the entry goes through its bytes."""
        self.engine.space.overlay.commit()
        if self.entry.size:
            self.entry = Entry.decode(self.entry.encode())
            self.set = SortedSet(self.engine.space.overlay, self.entry)

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
