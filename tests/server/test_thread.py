"""A server in a thread of its own."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import redis

import lsmkv
from lsmkv import DB
from lsmkv.testing import serving


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"k", b"v")
        with pytest.raises(lsmkv.LockedError), serving(tmp_path / "db"):
            pass
    with pytest.raises(ValueError, match="did not write"), serving(tmp_path / "db"):
        pass


def test_a_server_that_a_client_shuts_down() -> None:
    with serving() as server, redis.Redis(port=server.port) as client:
        client.shutdown()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))
