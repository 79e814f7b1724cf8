"""Caches of tests: in memory, with a clock that stands still; and one that processes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cache_users import CacheUser
from still_clocks import StillClock

import lsmkv


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def cache(clock: StillClock) -> Iterator[lsmkv.Cache]:
    """A cache of one process; checked at the end."""
    with lsmkv.Cache(":memory:", shared=False, clock=clock) as cache:
        yield cache
        assert cache.check() == []


@pytest.fixture
def shared_cache(tmp_path: Path) -> Iterator[lsmkv.Cache]:
    """A cache that other processes may open too."""
    with lsmkv.Cache(tmp_path / "cache", eviction="none") as cache:
        yield cache


@pytest.fixture
def user(shared_cache: lsmkv.Cache) -> Iterator[Callable[[], CacheUser]]:
    """Starts processes that open the cache; they are killed at the end."""
    made: list[CacheUser] = []

    def begin() -> CacheUser:
        made.append(CacheUser(shared_cache.directory))
        return made[-1]

    yield begin
    for one in made:
        one.kill()
