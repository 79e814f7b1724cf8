"""What reads note, and when it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache import recency
from lsmkv.cache.culling import evict_first
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


def test_an_entry_is_not_moved_twice_in_a_minute(tmp_path: Path, clock: StillClock) -> None:
    with opened(tmp_path, clock) as cache:
        cache["k"] = 1
        stored = order(cache)
        clock.now += 59
        cache["k"]
        cache._recency.write()
        assert order(cache) == stored
        clock.now += 2
        cache["k"]
        cache._recency.write()
        moved = order(cache)
        assert moved > stored
        clock.now += 59
        cache["k"]
        cache._recency.write()
        assert order(cache) == moved
        clock.now += 2
        cache["k"]
        cache._recency.write()
        assert order(cache) > moved


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
        assert cache._steps.run(lambda step: evict_first(step, 1, 1)) == 1
        assert list(cache) == ["a"]


def test_notes_are_written_at_the_end(tmp_path: Path, clock: StillClock) -> None:
    with opened(tmp_path, clock) as cache:
        cache["a"], cache["b"] = 1, 2
        stored = order(cache)
        clock.now += 61
        cache["a"]
    with opened(tmp_path, clock) as cache:
        assert order(cache) > stored
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
