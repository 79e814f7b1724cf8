"""The fixture for pytest."""

from __future__ import annotations

import pytest
import redis
from lsmkv.pytest_plugin import lsmkv_server  # noqa: F401 - a fixture

from lsmkv.server import Server


@pytest.mark.parametrize("time", [1, 2])
def test_the_fixture(lsmkv_server: Server, time: int) -> None:  # noqa: F811
    with redis.Redis(port=lsmkv_server.port) as client:
        assert client.dbsize() == 0
        client.set("k", time)
