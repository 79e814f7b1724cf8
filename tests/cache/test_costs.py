"""What calls cost, by the counters of the store: a hit one Get, a removal what it removes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache.atomic_steps import Step
from lsmkv.cache.culling import evict_first, remove_between
from lsmkv.cache.keys import EVICTION
from lsmkv.cache.queues import QueueKeys


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    "eviction", ["least-recently-used", "least-recently-stored", "least-frequently-used", "none"]
)
def test_a_hit_costs_a_get_and_no_write(
    tmp_path: Path, clock: StillClock, eviction: Any, shared: bool
) -> None:
    with lsmkv.Cache(tmp_path, shared=shared, clock=clock, eviction=eviction) as cache:
        cache["plain"] = 1
        cache.set("full", 2, expire=100, tag="t")
        clock.now += 61
        cache["plain"]  # looks how long entries stay, as a hit does once a second
        before = cache._db.stats()
        reads: list[Callable[[], Any]] = [
            lambda: cache["plain"],
            lambda: cache.get("full", expire_time=True, tag=True),
            lambda: "full" in cache,
            lambda: cache.get("none"),
            lambda: "none" in cache,
        ]
        for number, read in enumerate(reads, 1):
            read()
            used = cache._db.stats() - before
            assert (used.gets, used.writes, used.iterators) == (number, 0, 0)


@pytest.mark.parametrize("shared", [False, True])
def test_a_large_value_costs_a_get_for_each_mib(tmp_path: Path, shared: bool) -> None:
    with lsmkv.Cache(tmp_path, shared=shared) as cache:
        cache["k"] = bytes(2_500_000)
        before = cache._db.stats()
        assert len(cache["k"]) == 2_500_000
        assert (cache._db.stats() - before).gets == 4


REMOVALS: dict[str, Callable[[lsmkv.Cache], Any]] = {
    "expire": lambda cache: cache.expire(),
    "evict": lambda cache: cache.evict("t"),
    "cull": lambda cache: (cache.reset("size_limit", cache.volume() - 1500), cache.cull()),
    "a write that culls": lambda cache: (
        cache.reset("cull_limit", 3),
        cache.reset("size_limit", cache.volume()),
        cache.set("new", 1),
    ),
    "delete": lambda cache: cache.delete(7),
    "pop": lambda cache: cache.pop(7),
    "pull": lambda cache: cache.pull("q"),
    "peekitem": lambda cache: (cache.peekitem(), cache.peekitem(last=False)),
}
STEPS: dict[str, Callable[[lsmkv.Cache, Step], Any]] = {
    "expire": lambda cache, step: remove_between(step, b"e", b"f", 100),
    "evict": lambda cache, step: remove_between(step, b"t", b"u", 100),
    "cull": lambda cache, step: evict_first(step, EVICTION, 10, 3000, cache._clock()),
    "clear": lambda cache, step: remove_between(step, b"n", b"o", 100),
    "pull": lambda cache, step: QueueKeys("q", cache.codec).at(step, "front"),
    "push": lambda cache, step: QueueKeys("q", cache.codec).next(step, "back"),
}


@contextmanager
def filled(entries: int) -> Iterator[lsmkv.Cache]:
    """A cache with so many entries, and ten that have expired, have a tag, or are in a queue."""
    clock = StillClock()
    with lsmkv.Cache(":memory:", shared=False, clock=clock, cull_limit=0) as cache:
        for number in range(entries):
            cache[number] = bytes(1000)
        for number in range(10):
            cache.set(f"old {number}", 1, expire=5)
            cache.set(f"tagged {number}", 1, tag="t")
            cache.push(number, "q")
        clock.now += 6
        yield cache


@pytest.mark.parametrize("removal", REMOVALS)
def test_no_removal_asks_for_more_where_there_is_more(removal: str) -> None:
    used = []
    for entries in (200, 2000):
        with filled(entries) as cache:
            before = cache._db.stats()
            REMOVALS[removal](cache)
            after = cache._db.stats() - before
            used.append((after.gets, after.iterators, after.operations))
    assert used[0] == used[1]
    assert used[0][0] < 80


@pytest.mark.parametrize("removal", STEPS)
def test_no_removal_scans_the_cache(removal: str) -> None:
    counts = []
    for entries in (200, 2000):
        with filled(entries) as cache:
            scanned: list[object] = []

            def scan(*, seen: list[object] = scanned, **arguments: Any) -> Iterator[Any]:
                for pair in cache._db.iterator(**arguments):
                    seen.append(pair)
                    yield pair

            step = Step(cache._steps, cache._db.get, scan)
            STEPS[removal](cache, step)
            counts.append((len(scanned), len(step.reads)))
    assert counts[0] == counts[1]
    assert 0 < counts[0][0] <= 100
