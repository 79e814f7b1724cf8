"""From a Redis into a store, and from there into another Redis: everything is the same."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import lsm
from redis_pair import Pair
from redis_requests import random_steps
from redis_servers import Lsmkv, Redis
from resp_wire import Client

import lsmkv
from lsmkv.server.check import check

_LEFT_OUT = {b"MULTI", b"EXEC", b"DISCARD", b"WATCH", b"FLUSHALL", b"FLUSHDB", b"HELLO", b"RESET",
             b"AUTH", b"BLPOP", b"BRPOP", b"BLMOVE", b"BRPOPLPUSH", b"BLMPOP", b"BZPOPMIN",
             b"BZPOPMAX", b"BZMPOP", b"EVAL"}  # fmt: skip


@pytest.fixture
def other(tmp_path: Path, redis: Redis) -> Iterator[Redis]:
    """A second Redis, which is empty."""
    directory = tmp_path / "other"
    directory.mkdir()
    server = Redis(directory)
    yield server
    server.stop()


@pytest.fixture
def filled(redis: Redis) -> Iterator[Client]:
    """A client of the first Redis, which has keys of every kind."""
    client = Client(redis.address)
    client.ask("FLUSHALL")
    for database in (0, 2):
        client.ask("SELECT", database)
        client.ask("SET", "text", "hello", "PX", 10**8)
        client.ask("SET", b"\xff\0\r\n", b"\0" * 5000)
        client.ask("SET", "", "")
        client.ask("SETBIT", "bits", 12345, 1)
        client.ask("PFADD", "visitors", *range(3000))
        client.ask("HSET", "hash", *(word for n in range(3000) for word in (f"f{n}", n)))
        client.ask("RPUSH", "list", *range(5000))
        client.ask("EXPIRE", "list", 10**6)
        client.ask("SADD", "set", *(f"m{n}" for n in range(2500)))
        client.ask("ZADD", "scores", 0.1, "a", "-inf", "b", "inf", "c", 1e17, "d", -2.5e-300, "e")
        client.ask("ZADD", "many", *(word for n in range(2000) for word in (n / 7, f"m{n}")))
    client.ask("SELECT", 0)
    client.ask("MSET", *(word for n in range(2000) for word in (f"key:{n}", n)))
    yield client
    client.close()


def fill_streams(client: Client) -> None:
    script = "for n = 1, 2499 do redis.call('XADD', KEYS[1], n..'-1', 'f', n, 'other', '') end"
    client.ask("EVAL", script, 1, "stream")
    client.ask("XGROUP", "CREATE", "stream", "readers", 0)
    client.ask("XGROUP", "CREATE", "stream", "others", "7-1", "ENTRIESREAD", 7)
    client.ask("XGROUP", "CREATECONSUMER", "stream", "others", "idle")
    client.ask("XREADGROUP", "GROUP", "readers", "a", "COUNT", 1500, "STREAMS", "stream", ">")
    client.ask("XREADGROUP", "GROUP", "readers", "b", "COUNT", 5, "STREAMS", "stream", ">")
    client.ask("XCLAIM", "stream", "readers", "b", 0, "30-1", "31-1", "RETRYCOUNT", 9)
    client.ask("XACK", "stream", "readers", *(f"{number}-1" for number in range(40, 60)))
    client.ask("XTRIM", "stream", "MAXLEN", 2490)  # some of what is pending is trimmed
    client.ask("XDEL", "stream", "100-1", "101-1", "1502-1", "2499-1")
    for key in ("emptied", "trimmed"):
        client.ask("XADD", key, "5-5", "f", "v")
        client.ask("XGROUP", "CREATE", key, "g", 0)
        client.ask("XREADGROUP", "GROUP", "g", "c", "STREAMS", key, ">")
    client.ask("XDEL", "emptied", "5-5")
    client.ask("XTRIM", "trimmed", "MAXLEN", 0)
    client.ask("XGROUP", "CREATE", "never", "g", "$", "MKSTREAM")


def imported(redis: Redis, store: Path) -> str:
    result = lsm("import", store, f"unix://{Path(redis.address).resolve()}", "--from", "redis",
                 "--create", "--json")  # fmt: skip
    assert result.status == 0, result.err
    with lsmkv.DB(store) as db:
        assert check(db) == []
        assert db.get(b"!i") is None
    return result.out


def compare(one: Redis, other: Redis | Lsmkv) -> None:
    pair = Pair(one, other)  # type: ignore[arg-type]
    try:
        pair.check_contents()
    finally:
        pair.disconnect()


def round_trip(redis: Redis, other: Redis, directory: Path) -> None:
    """Import, serve, export, and pipe."""
    store, commands = directory / "store", directory / "commands"
    imported(redis, store)
    served = Lsmkv(store)
    try:
        compare(redis, served)
    finally:
        served.stop()
    result = lsm("export", store, "--format", "resp", "--output", commands)
    assert result.status == 0, result.err
    cli = shutil.which("redis-cli")
    assert cli is not None
    with commands.open("rb") as file:
        piped = subprocess.run([cli, "-s", other.address, "--pipe"], stdin=file,
                               capture_output=True, text=True, check=False)  # fmt: skip
    assert "errors: 0" in piped.stdout, piped.stdout + piped.stderr
    compare(redis, other)


def test_keys_of_every_kind(filled: Client, redis: Redis, other: Redis, tmp_path: Path) -> None:
    fill_streams(filled)
    round_trip(redis, other, tmp_path)


def test_what_random_requests_have_made(redis: Redis, other: Redis, tmp_path: Path) -> None:
    client = Client(redis.address)
    client.ask("FLUSHALL")
    for seed in range(4):
        for _, request in random_steps(random.Random(seed), 300, streams=seed % 2 == 1):
            if request[0].upper() not in _LEFT_OUT and b"BLOCK" not in request:
                client.ask(*request)
    client.close()
    round_trip(redis, other, tmp_path)
