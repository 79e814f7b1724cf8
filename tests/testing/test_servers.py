"""lsmkv.testing.servers: a server for the duration of a test."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import redis

from lsmkv.testing import serving


def test_a_server_for_as_long_as_the_block_runs(tmp_path: Path) -> None:
    for runs in range(2):
        with serving(tmp_path / "db", appendfsync="always") as server:
            port = server.port
            with redis.Redis(port=port) as client:
                assert client.incr("runs") == runs + 1
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
