"""A cache in memory, whose clock stands still until a test sets it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
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
