"""A Redis as commands, read from a server of lsmkv."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from lsmkv.server.moving.client import Client, parse_url
from lsmkv.server.moving.source import Source
from lsmkv.testing import serving


@pytest.fixture
def server() -> Iterator[redis.Redis]:
    with serving() as server, redis.Redis(port=server.port) as client:
        yield client


@pytest.fixture
def source(server: redis.Redis) -> Iterator[Source]:
    port = server.connection_pool.connection_kwargs["port"]
    client = Client(parse_url(f"redis://127.0.0.1:{port}"))
    found = Source(client)
    found.select(0)
    yield found
    client.close()


def test_sizes_and_pages(server: redis.Redis, source: Source) -> None:
    server.mset({f"k{number}": number for number in range(30)})
    assert source.sizes() == {0: 30}
    assert len(source.run_id()) == 40
    cursor, keys = source.page(0, 20)
    assert cursor
    _, rest = source.page(cursor, 20)
    assert sorted([*keys, *rest]) == sorted(b"k%d" % number for number in range(30))


def test_large_collections_are_read_in_parts(server: redis.Redis, source: Source) -> None:
    server.rpush("list", *range(2500))
    server.hset("hash", mapping={f"f{number}": number for number in range(1200)})
    server.sadd("set", *range(1200))
    server.zadd("scores", {f"m{number}": number / 3 for number in range(1200)})
    commands = list(source.commands([b"list", b"hash", b"set", b"scores"]))
    found = {key: [one[2:] for one in commands if one[1] == key] for key in
             (b"list", b"hash", b"set", b"scores")}  # fmt: skip
    words = {key: [word for part in parts for word in part] for key, parts in found.items()}
    assert words[b"list"] == [b"%d" % number for number in range(2500)]
    assert len(words[b"hash"]) == len(words[b"scores"]) == 2400
    assert set(words[b"set"]) == {b"%d" % number for number in range(1200)}
    assert {float(one) for one in words[b"scores"][::2]} == {n / 3 for n in range(1200)}


def test_expiry_and_keys_that_are_gone(server: redis.Redis, source: Source) -> None:
    server.set("k", "v", pxat=4_102_444_800_000)
    commands = list(source.commands([b"gone", b"k"]))
    assert commands[0] == [b"SET", b"k", b"v"]
    assert commands[1][:2] == [b"PEXPIREAT", b"k"]
    assert abs(int(commands[1][2]) - 4_102_444_800_000) < 5000
    assert len(commands) == 2


def test_kinds_that_cannot_be_read_are_counted(server: redis.Redis, source: Source) -> None:
    server.execute_command("BF.ADD", "filter", "x")
    assert list(source.commands([b"filter"])) == []
    assert source.left_out == {"MBbloom--": 1}
