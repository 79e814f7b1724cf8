"""What reads note, and when it is written."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache import recency
from lsmkv.cache.culling import evict_first
from lsmkv.cache.entries import READ
from lsmkv.cache.keys import EVICTION


def opened(place: Path, clock: StillClock, **arguments: Any) -> lsmkv.Cache:
    return lsmkv.Cache(place, shared=False, clock=clock, **arguments)


def order(cache: lsmkv.Cache) -> list[bytes]:
    return list(cache._db.iterator(prefix=EVICTION, include_value=False))


def writes(cache: lsmkv.Cache) -> int:
    return cache._db.stats().log_writes


def test_a_hit_costs_no_write(tmp_path: Path, clock: StillClock) -> None:
    with opened(tmp_path, clock) as cache:
        for number in range(50):
            cache[number] = number
        before = writes(cache)
        clock.now += 61
        for _ in range(3):
            for number in range(50):
                cache[number]
        assert writes(cache) == before
        clock.now += 61
        cache[0]
        assert writes(cache) == before + 1  # all notes in one batch


def marks(cache: lsmkv.Cache) -> list[bytes]:
    """The mark of each entry, in the order of eviction."""
    return list(cache._db.iterator(prefix=EVICTION, include_key=False))


def noted(cache: lsmkv.Cache) -> int:
    return len(cache._recency._uses)


def test_an_entry_is_not_noted_twice_in_a_minute(tmp_path: Path, clock: StillClock) -> None:
    with opened(tmp_path, clock) as cache:
        cache["first"] = 0
        clock.now += 60 * 4
        cache["k"] = 1
        counts = []
        for seconds in (59, 2, 59, 2):
            clock.now += seconds
            cache["k"]
            counts.append(noted(cache))
            cache._recency.write()
        assert counts == [0, 1, 0, 1]
        assert marks(cache) == [b"", READ]


def test_where_entries_go_soon_they_are_noted_soon(tmp_path: Path, clock: StillClock) -> None:
    with opened(tmp_path, clock) as cache:
        cache["k"] = 1
        for seconds in range(8):
            clock.now += 1
            cache[seconds] = seconds
        for key in range(8):
            cache[key]
        assert noted(cache) == 6  # a fourth of 8 s has passed since 5 was stored


@pytest.mark.skipif(lsmkv.COMPILED, reason="constants are compiled")
def test_many_notes_are_written(
    tmp_path: Path, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recency, "MOST_NOTES", 10)
    monkeypatch.setattr(recency, "MOST_KNOWN", 15)
    with opened(tmp_path, clock) as cache:
        for number in range(20):
            cache[number] = number
        clock.now += 61
        before = writes(cache)
        for number in range(20):
            cache[number]
        assert writes(cache) == before + 2


def test_exactly(tmp_path: Path, clock: StillClock) -> None:
    with opened(tmp_path, clock, recency=0) as cache:
        cache["a"], cache["b"] = 1, 2
        clock.now += 0.001
        before = writes(cache)
        cache["a"]
        assert writes(cache) == before + 1
        assert cache._steps.run(lambda step: evict_first(step, EVICTION, 1, 1, 0.0)).removed == 1
        assert list(cache) == ["a"]


def test_notes_are_written_at_the_end(tmp_path: Path, clock: StillClock) -> None:
    with opened(tmp_path, clock) as cache:
        cache["a"], cache["b"] = 1, 2
        clock.now += 61
        cache["a"]
    with opened(tmp_path, clock) as cache:
        assert marks(cache) == [READ, b""]
        assert cache.check() == []


def test_reads_are_counted(tmp_path: Path, clock: StillClock) -> None:
    with opened(tmp_path, clock, eviction="least-frequently-used") as cache:
        for key in "abc":
            cache[key] = key
        for key in "aab":
            cache[key]
        del cache["b"]  # a note of what is no longer there
        cache._recency.write()
        assert [int.from_bytes(key[1:9], "big") for key in order(cache)] == [0, 2]
        cache["a"] = "again"
        assert [int.from_bytes(key[1:9], "big") for key in order(cache)] == [0, 0]
        assert cache.check() == []


# Clocks that are set back

YEAR = 365 * 86400.0


@pytest.mark.parametrize("reopens", [False, True])
@pytest.mark.parametrize("policy", ["least-recently-used", "least-recently-stored"])
def test_entries_from_a_clock_that_was_ahead_are_evicted_first(
    tmp_path: Path, clock: StillClock, policy: Any, reopens: bool
) -> None:
    cache = opened(tmp_path, clock, size_limit=50_000, eviction=policy)
    clock.now += YEAR
    for number in range(600):
        cache["old", number] = b"v" * 100
    clock.now -= YEAR
    if reopens:
        cache.close()
        cache = opened(tmp_path, clock, size_limit=50_000, eviction=policy)
    with cache:
        for number in range(600):
            clock.now += 1
            cache["new", number] = b"v" * 100
        kept = list(cache)
        assert {kind for kind, _ in kept} == {"new"}
        assert [number for _, number in kept] == list(range(600 - len(kept), 600))
        assert cache.check() == []


def test_reads_after_a_clock_was_set_back_count(tmp_path: Path, clock: StillClock) -> None:
    with opened(tmp_path, clock, size_limit=50_000) as cache:
        clock.now += YEAR
        for number in range(60):
            cache["old", number] = b"v" * 100
        cache["old", 1]
        clock.now -= YEAR
        for number in range(600):
            clock.now += 61
            cache["old", 7]
            cache["new", number] = b"v" * 100
        assert ("old", 7) in cache
        assert ("old", 8) not in cache


def test_another_handle_stores_behind_what_a_clock_ahead_has_stored(
    tmp_path: Path, clock: StillClock
) -> None:
    with lsmkv.Cache(tmp_path, clock=clock, size_limit=50_000, recency=0) as cache:
        other = copy.copy(cache)
        clock.now += YEAR
        for number in range(100):
            cache["old", number] = b"v" * 100
        clock.now -= YEAR
        for number in range(1000):
            other["new", number] = b"v" * 100
        assert {kind for kind, _ in cache} == {"new"}
        other.close()


def test_a_damaged_position_does_not_stop_the_clock(tmp_path: Path, clock: StillClock) -> None:
    with opened(tmp_path, clock) as cache:
        cache["k"] = 1
        position = order(cache)[0][1:9]
        for damage in (b"\xff" * 8, b"\x00", position + b"\0"):
            cache._steps.see_position(damage)
        cache["k"] = 2
        assert int.from_bytes(order(cache)[0][1:9], "big") == int.from_bytes(position, "big") + 1
