"""Objects in memory, and what is fetched ahead from them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from memory_objects import MemoryObjects
from scanned import DATA, MOST

from lsmkv.shards.remote.fetch_ahead import FetchAhead


@pytest.fixture
def objects() -> MemoryObjects:
    objects = MemoryObjects()
    objects.put("o", DATA)
    objects.forget_requests()
    return objects


@pytest.fixture
def ahead() -> Iterator[FetchAhead]:
    ahead = FetchAhead(MOST)
    yield ahead
    ahead.close()
