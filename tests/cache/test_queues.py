"""Queues of a cache."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache.queues import Side

FIRST = 500_000_000_000_000


def test_first_in_first_out(cache: lsmkv.Cache) -> None:
    keys = [cache.push(value) for value in "abc"]
    assert keys == [FIRST, FIRST + 1, FIRST + 2]
    assert cache.peek() == cache.pull() == (FIRST, "a")
    assert cache.pull(side="back") == (FIRST + 2, "c")
    assert cache.push("d", side="front") == FIRST
    assert [cache.pull() for _ in range(3)] == [(FIRST, "d"), (FIRST + 1, "b"), (None, None)]


def test_queues_with_names_are_apart(cache: lsmkv.Cache) -> None:
    assert cache.push(1, "jobs") == f"jobs-{FIRST}"
    cache.push(2, "job")
    cache.push(3)
    assert cache.pull("jobs", expire_time=True, tag=True) == ((f"jobs-{FIRST}", 1), None, None)
    assert cache.pull("jobs", default=0, tag=True) == (0, None)
    assert cache.peek("job", side="back")[1] == 2
    assert cache.peek()[1] == 3


def test_other_keys_are_not_in_a_queue(cache: lsmkv.Cache) -> None:
    cache[0], cache[-5], cache[FIRST + 0.5], cache[10**15], cache["a"] = 1, 2, 3, 4, 5
    assert cache.pull() == (None, None)
    assert cache.push(6) == FIRST
    assert cache.push(7) == FIRST + 1


def test_expired_entries_are_passed_over_and_removed(cache: lsmkv.Cache, clock: StillClock) -> None:
    cache.reset("cull_limit", 0)
    for _ in range(3):
        cache.push(0, expire=1)
    cache.push(1, tag="t")
    clock.now += 1
    assert cache.peek(tag=True) == ((FIRST + 3, 1), "t")
    assert len(cache) == 1


def test_large_values(cache: lsmkv.Cache) -> None:
    value = bytes(200_000)
    key = cache.push(value)
    assert cache.peek() == cache.pull() == (key, value)
    assert cache.volume() == 0


def test_a_queue_has_two_sides(cache: lsmkv.Cache) -> None:
    with pytest.raises(ValueError, match="middle"):
        cache.push(1, side="middle")  # type: ignore[arg-type]


@pytest.mark.parametrize("prefix", [None, "jobs"])
def test_any_pushes_pulls_and_sets(cache: lsmkv.Cache, prefix: str | None) -> None:
    model: dict[int, int] = {}
    pick = random.Random(4)

    def key_of(number: int) -> int | str:
        return number if prefix is None else f"{prefix}-{number:015d}"

    for phase in range(12):
        for step in range(200):
            value = phase * 1000 + step
            side: Side = pick.choice(["front", "back"]) if phase % 3 == 2 else "back"
            if pick.random() < (0.7 if phase % 2 == 0 else 0.2):
                number = FIRST
                if model:
                    number = min(model) - 1 if side == "front" else max(model) + 1
                assert cache.push(value, prefix, side=side) == key_of(number)
                model[number] = value
            elif pick.random() < 0.1:
                number = FIRST + pick.randrange(-40, 400)
                cache[key_of(number)] = model[number] = value
            elif pick.random() < 0.1 and model:
                number = pick.choice(sorted(model))
                del cache[key_of(number)], model[number]
            else:
                other: Side = "front" if phase % 3 == 0 else side
                found = cache.pull(prefix, side=other)
                if model:
                    number = min(model) if other == "front" else max(model)
                    assert found == (key_of(number), model.pop(number))
                else:
                    assert found == (None, None)
    assert cache.check() == []
    while model:
        number = min(model)
        assert cache.pull(prefix) == (key_of(number), model.pop(number))


@pytest.mark.parametrize("side", ["front", "back"])
def test_pulls_move_a_bound(cache: lsmkv.Cache, side: Side) -> None:
    for value in range(300):
        cache.push(value, side="back" if side == "front" else "front")
    for _ in range(200):
        cache.pull(side=side)
    bounds = cache._db.get(b"q\x10")
    assert bounds is not None
    front, back = bounds[:8], bounds[8:]
    left = cache.peek(side=side)[0]
    moved = int.from_bytes(front if side == "front" else back, "big") - (1 << 63)
    assert abs(left - moved) <= 32
    assert (back if side == "front" else front) in (bytes(8), b"\xff" * 8)


@pytest.mark.parametrize("side", ["front", "back"])
@pytest.mark.parametrize("adds", ["pushes", "sets", "counts", "pushes to an empty queue"])
@pytest.mark.parametrize("has_bounds", [False, True])
def test_what_another_handle_adds_while_a_bound_moves(
    tmp_path: Path, side: Side, adds: str, has_bounds: bool
) -> None:
    acts: list[Callable[[], object]] = []

    def clock() -> float:
        if acts:
            acts.pop()()
        return 1e9

    with (
        lsmkv.Cache(tmp_path / "cache") as other,
        lsmkv.Cache(tmp_path / "cache", clock=clock) as cache,
    ):
        out = -1 if side == "front" else 1
        moves = FIRST + 32 * 3125  # a multiple of 32, as FIRST is
        expected = {moves}
        cache[moves] = 0
        if has_bounds:
            cache[moves + 64 * out] = 0
            assert cache.pull(side=side)[0] == moves + 64 * out
        if adds == "pushes to an empty queue":

            def act() -> None:
                other.pull()
                expected.remove(moves)
                expected.add(other.push(0))

        else:
            added = moves + out * (1 if adds == "pushes" else 5)
            expected.add(added)

            def act() -> None:
                if adds == "pushes":
                    assert other.push(0, side=side) == added
                elif adds == "sets":
                    other[added] = 0
                else:
                    other.incr(added)

        acts.append(act)
        pulled = set()
        while (found := cache.pull(side=side)) != (None, None):
            pulled.add(found[0])
        assert pulled == expected
        assert not acts
        assert cache.check() == []


def test_a_check_finds_an_entry_outside_of_its_queue(cache: lsmkv.Cache) -> None:
    cache.push(1)
    cache.push(2, "jobs-x")
    for name in ("jobs-x-000000000000005", "jobs-x-5"):
        cache[name] = 0
    bound = b"%015d" % FIRST
    cache._db.put(b"q\x20jobs-x-", bound + bound)
    assert cache.peek("jobs-x") == (f"jobs-x-{FIRST}", 2)
    (problem,) = cache.check(fix=True)
    assert problem == "the entry b' jobs-x-000000000000005' is outside of its queue"
    assert cache.peek("jobs-x") == ("jobs-x-000000000000005", 0)


@pytest.mark.parametrize("damage", [b"", b"x", bytes(15), bytes(17)])
def test_damaged_bounds_are_none(cache: lsmkv.Cache, damage: bytes) -> None:
    cache.push(1)
    cache._db.put(b"q\x10", damage)
    assert cache.push(2) == FIRST + 1
    assert [cache.pull()[1] for _ in range(3)] == [1, 2, None]
