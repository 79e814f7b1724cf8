"""Caches of tests, and other processes that have them open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cache_users import CacheUser

from lsmkv.cache.cache import Cache


@pytest.fixture
def shared_cache(tmp_path: Path) -> Iterator[Cache]:
    """A cache that other processes may open too."""
    with Cache(tmp_path / "cache", eviction="none") as cache:
        yield cache


@pytest.fixture
def user(shared_cache: Cache) -> Iterator[Callable[[], CacheUser]]:
    """Starts processes that open the cache; they are killed at the end."""
    made: list[CacheUser] = []

    def begin() -> CacheUser:
        made.append(CacheUser(shared_cache.directory))
        return made[-1]

    yield begin
    for one in made:
        one.kill()
