"""The client of ``lsmkv import --from redis``."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from lsmkv.server.moving.client import Address, Client, RedisError, encoded, parse_url
from lsmkv.testing import serving


def test_requests_and_replies() -> None:
    with serving() as server:
        client = Client(parse_url(f"redis://127.0.0.1:{server.port}"))
        assert client.ask(b"SET", b"k\r\n", b"v" * 100_000) == b"OK"
        replies = client.ask_all([[b"GET", b"k\r\n"], [b"LPUSH", b"k\r\n", b"x"], [b"PING"]])
        assert replies[0] == b"v" * 100_000
        assert isinstance(replies[1], RedisError)
        assert replies[2] == b"PONG"
        with pytest.raises(RedisError, match=r"127.0.0.1:\d+ answers: WRONGTYPE"):
            client.ask(b"LLEN", b"k\r\n")
        client.close()


def test_a_connection_that_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = Client(parse_url(f"redis://127.0.0.1:{listener.getsockname()[1]}"))
        accepted, _ = listener.accept()
        accepted.close()
        with pytest.raises(OSError, match=r"[cC]onnection|pipe"):
            client.ask(b"PING")
        client.close()


def test_a_request_as_bytes() -> None:
    assert encoded([b"SET", b"", b"\xff"]) == b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$1\r\n\xff\r\n"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://", ("redis", "localhost", 6379, "", "", None)),
        ("redis://me:p%40ss@h:1/2", ("redis", "h", 1, "me", "p@ss", 2)),
        ("rediss://:p@h?db=3", ("rediss", "h", 6379, "", "p", 3)),
        ("unix:///tmp/s?db=1", ("unix", "/tmp/s", 6379, "", "", 1)),
    ],
)
def test_urls(url: str, address: tuple[Any, ...]) -> None:
    assert parse_url(url) == Address(*address)
    assert "p@ss" not in parse_url(url).shown


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://host", "not a Redis URL"),
        ("redis://host:x", "the port of"),
        ("redis://host/x", "the database of"),
    ],
)
def test_urls_that_name_nothing(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_url(url)
