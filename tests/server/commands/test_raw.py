"""--raw: the keys of an ordinary store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from serving import Client, an_engine

from lsmkv import DB, MemoryEnv


@pytest.fixture
def env() -> MemoryEnv:
    """An ordinary store with a few keys."""
    env = MemoryEnv()
    with DB("/db", env=env, create_if_missing=True) as db:
        for number in range(12):
            db.put(b"key%02d" % number, b"%d" % number)
    return env


@pytest.fixture
def client(env: MemoryEnv) -> Iterator[Client]:
    with an_engine(env, raw=True) as engine:
        yield Client(engine)


def test_strings(client: Client, env: MemoryEnv) -> None:
    client.plays(
        ("GET key03", b"3"),
        ("MGET key00 none", [b"0", None]),
        ("STRLEN key11", 2),
        ("STRLEN none", 0),
        ("EXISTS key00 key00 none", 2),
        ("TYPE key00", b"string"),
        ("TYPE none", b"none"),
        ("TTL key00", -1),
        ("PTTL none", -2),
        ("SET new v", b"OK"),
        ("SET new w NX", None),
        ("SET new w XX", b"OK"),
        ("SET none w XX", None),
        ("SET new x EX", "ERR keys of a raw store cannot expire: SET takes only NX or XX"),
        ("SET new x EX 10", "ERR syntax error"),
        ("MSET a 1 b 2", b"OK"),
        ("MSET a", "ERR wrong number of arguments for 'mset' command"),
        ("MSET a 1 b", "ERR wrong number of arguments for 'mset' command"),
        ("DEL key00 none key01 key01", 2),
        ("UNLINK key02", 1),
        ("DBSIZE", 12),
        ("SELECT 0", b"OK"),
        ("SELECT 1", "ERR DB index is out of range"),
        ("HSET h f v", "ERR unknown command 'HSET', with args beginning with: 'h' 'f' 'v' "),
    )
    client.engine.db.close()
    with DB("/db", env=env) as db:  # there is nothing else in the store
        assert list(db) == [
            (b"a", b"1"),
            (b"b", b"2"),
            *((b"key%02d" % number, b"%d" % number) for number in range(3, 12)),
            (b"new", b"w"),
        ]


def test_walks(client: Client) -> None:
    keys = [b"key%02d" % number for number in range(12)]
    assert client("KEYS *") == keys
    assert client("KEYS key0?") == keys[:10]
    cursor, found = client("SCAN 0 COUNT 7")
    assert found == keys[:7]
    assert client("SCAN", cursor) == [b"0", keys[7:]]
    client.plays(
        ("SCAN 0 MATCH key1* COUNT 1000", [b"0", keys[10:]]),
        ("SCAN 0 TYPE hash COUNT 1000", [b"0", []]),
        ("LSMKV.RANGE key03 key05", [b"key03", b"3", b"key04", b"4"]),
        ("LSMKV.RANGE key10 '' KEYS", keys[10:]),
        ("LSMKV.RANGE '' '' LIMIT 2 REV KEYS", [b"key11", b"key10"]),
        ("LSMKV.RANGE '' key02 REV", [b"key01", b"1", b"key00", b"0"]),
        ("LSMKV.RANGE '' '' LIMIT 0", []),
        ("LSMKV.RANGE a b LIMIT -1", "ERR LIMIT can't be negative"),
        ("LSMKV.RANGE a b LIMIT", "ERR value is not an integer or out of range"),
        ("LSMKV.RANGE a b FOO", "ERR syntax error"),
    )


def test_transactions(client: Client) -> None:
    other = Client(client.engine)
    client.plays(
        ("WATCH key00", b"OK"),
        ("MULTI", b"OK"),
        ("SET key01 x", b"QUEUED"),
        ("SET key01 x EX", b"QUEUED"),
        ("EXEC", [b"OK", "ERR keys of a raw store cannot expire: SET takes only NX or XX"]),
        ("WATCH key00", b"OK"),
    )
    other("DEL key00")
    client.plays(("MULTI", b"OK"), ("EXEC", None), ("INFO keyspace", b"# Keyspace\r\n"))
