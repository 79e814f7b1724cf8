"""Queues of a cache."""

from __future__ import annotations

import pytest
from still_clocks import StillClock

import lsmkv

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
