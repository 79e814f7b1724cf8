"""What calls cost, by the counters of the store: a hit one Get, a removal what it removes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache.steps import Step

Removal = Callable[[lsmkv.Cache], Any]


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


REMOVALS: dict[str, Removal] = {
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


def reads_of(removal: Removal, entries: int) -> int:
    """Keys that steps read, by Get or while they scan, in a cache with so many entries."""
    count = 0
    clock = StillClock()
    with lsmkv.Cache(":memory:", shared=False, clock=clock, cull_limit=0) as cache:
        for number in range(entries):
            cache[number] = bytes(1000)
        for number in range(5):
            cache.set(f"old {number}", 1, expire=5)
            cache.set(f"tagged {number}", 1, tag="t")
            cache.push(number, "q")
        clock.now += 6
        run = cache._steps.run

        def counted(function: Callable[[Step], Any]) -> Any:
            def counting(step: Step) -> Any:
                get, scan = step.get, step.scan

                def counted_get(key: bytes) -> bytes | None:
                    nonlocal count
                    count += 1
                    return get(key)

                def counted_scan(**arguments: Any) -> Iterator[Any]:
                    nonlocal count
                    for pair in scan(**arguments):
                        count += 1
                        yield pair

                step.get, step.scan = counted_get, counted_scan
                return function(step)

            return run(counting)

        cache._steps.run = counted  # type: ignore[method-assign, assignment]
        removal(cache)
    return count


@pytest.mark.parametrize("removal", REMOVALS)
def test_no_removal_scans_the_cache(removal: str) -> None:
    few, many = reads_of(REMOVALS[removal], 50), reads_of(REMOVALS[removal], 1000)
    assert 0 < many == few < 60
