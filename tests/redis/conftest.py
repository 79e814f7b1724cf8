"""A Redis and a server of lsmkv, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis_pair import Pair
from redis_servers import Lsmkv, Redis, redis_is_there


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """A Redis of its own; without one the test is skipped, but with LSMKV_EXPECT_REDIS=1."""
    if not redis_is_there():
        pytest.skip("no redis-server 7.0 is installed")
    server = Redis(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def options() -> list[str]:
    """Options of ``lsmkv serve``."""
    return []


@pytest.fixture(scope="module")
def lsmkv(tmp_path_factory: pytest.TempPathFactory, options: list[str]) -> Iterator[Lsmkv]:
    """A server of a new store; it has had nothing to complain of."""
    directory: Path = tmp_path_factory.mktemp("lsmkv") / "store"
    server = Lsmkv(directory, *options)
    yield server
    server.stop()
    assert server.log.read_text() == ""


@pytest.fixture(scope="module")
def _connected(redis: Redis, lsmkv: Lsmkv) -> Iterator[Pair]:
    pair = Pair(redis, lsmkv)
    yield pair
    pair.disconnect()


@pytest.fixture
def pair(_connected: Pair) -> Pair:
    """Both, with no data and new connections."""
    _connected.clear()
    return _connected
