"""A cache in memory, whose clock stands still until a test sets it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lsmkv


class Clock:
    """Seconds since 1970, as the test says."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> Iterator[lsmkv.Cache]:
    """A cache of one process; checked at the end."""
    with lsmkv.Cache(":memory:", shared=False, clock=clock) as cache:
        yield cache
        assert cache.check() == []
