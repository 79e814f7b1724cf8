"""Keys of any kind."""

from __future__ import annotations

import pytest
from serving import Client, an_engine
from transcripts import Section, transcript

from lsmkv import MemoryEnv


def scanned(client: Client, request: str) -> list[list[bytes]]:
    """The steps of a scan."""
    steps, cursor = [], b"0"
    while True:
        cursor, found = client(request.format(cursor.decode()))
        steps.append(found)
        if cursor == b"0":
            return steps


def flat(steps: list[list[bytes]]) -> list[bytes]:
    return [key for step in steps for key in step]


def test_a_key_whose_time_has_passed_is_removed(client: Client) -> None:
    assert client("SET k v PX 1") == b"OK"
    while client("GET k") is not None:
        pass
    assert client("DBSIZE") == 0


@pytest.mark.parametrize("kind", ["hash", "list", "set", "zset", "string", "bloom"])
def test_a_copy_is_another_key(client: Client, kind: str) -> None:
    make, add, show = {
        "hash": ("HSET k f v g w", "HSET k f x", "HGETALL {}"),
        "list": ("RPUSH k a b", "LSET k 0 x", "LRANGE {} 0 -1"),
        "set": ("SADD k a b", "SREM k a", "SMEMBERS {}"),
        "zset": ("ZADD k 1 a 2 b", "ZADD k 5 a", "ZRANGE {} 0 -1 WITHSCORES"),
        "string": ("SET k v", "SET k w", "GET {}"),
        "bloom": ("BF.MADD k a b", "BF.ADD k zzz", "BF.CARD {}"),
    }[kind]
    client(make)
    before = client(show.format("k"))
    assert client("COPY k copy") == 1
    client(add)
    assert client(show.format("copy")) == before != client(show.format("k"))


def test_walks(client: Client) -> None:
    keys = [b"key:%02d" % number for number in range(25)]
    for key in keys:
        client("SET", key, "v")
    client("SADD other x")
    client("SET gone v PXAT 1")
    assert client("KEYS key:*") == keys
    assert client("KEYS *[13]") == [key for key in keys if key[-1:] in b"13"]
    assert client("KEYS [") == []
    steps = scanned(client, "SCAN {}")
    assert [len(step) for step in steps] == [10, 10, 6]
    assert flat(steps) == [*keys, b"other"]
    assert flat(scanned(client, "SCAN {} MATCH key:1* COUNT 4")) == keys[10:20]
    assert flat(scanned(client, "SCAN {} TYPE set")) == [b"other"]
    assert flat(scanned(client, "SCAN {} TYPE ''")) == []
    client.plays(
        ("SCAN x", "ERR invalid cursor"),
        ("SCAN 0 COUNT 0", "ERR syntax error"),
        ("SCAN 0 COUNT", "ERR syntax error"),
        ("SCAN 0 COUNT x", "ERR value is not an integer or out of range"),
        ("SCAN 0 FOO x", "ERR syntax error"),
    )


def test_a_scan_goes_on_after_a_restart() -> None:
    env = MemoryEnv()
    with an_engine(env) as engine:
        client = Client(engine)
        for number in range(20):
            client(f"SET {number:02d} v")
        cursor, _ = client("SCAN 0 COUNT 15")
    with an_engine(env) as engine:
        assert Client(engine)("SCAN", cursor) == [b"0", [b"%d" % n for n in range(15, 20)]]


def test_random_keys(client: Client) -> None:
    assert client("RANDOMKEY") is None
    for number in range(3):
        client(f"SET {number} v")
    assert {client("RANDOMKEY") for _ in range(100)} == {b"0", b"1", b"2"}
    for number in range(200):
        client(f"SET key{number} v")
    assert all(client("EXISTS", client("RANDOMKEY")) == 1 for _ in range(20))


def test_what_is_known_of_a_key(client: Client) -> None:
    client("SET n 12")
    client("SET short x")
    client("SET long " + "x" * 50)
    client("RPUSH list a")
    client("SADD set a")
    client("ZADD z 1 a")
    shown = {
        key: client(f"OBJECT ENCODING {key}")
        for key in ["n", "short", "long", "list", "set", "z", "none"]
    }
    assert shown == {
        "n": b"int", "short": b"embstr", "long": b"raw", "list": b"quicklist",
        "set": b"hashtable", "z": b"skiplist", "none": None,
    }  # fmt: skip
    client.plays(
        ("OBJECT REFCOUNT n", 1),
        ("OBJECT REFCOUNT none", None),
        ("OBJECT IDLETIME n", 0),
        ("MEMORY USAGE none", None),
        ("MEMORY USAGE none SAMPLES 1 SAMPLES 0", None),
        ("MEMORY USAGE n SAMPLES -1", "ERR syntax error"),
        ("MEMORY USAGE n SAMPLES 1 SAMPLES", "ERR syntax error"),
        ("MEMORY USAGE n SAMPLES x y", "ERR value is not an integer or out of range"),
        ("OBJECT", "ERR wrong number of arguments for 'object' command"),
        ("OBJECT AGE n", "ERR unknown subcommand 'AGE'. Try OBJECT HELP."),
    )
    assert client("OBJECT FREQ n").startswith("ERR An LFU maxmemory policy is not selected")
    assert client("MEMORY USAGE long") > client("MEMORY USAGE n") > 0


@transcript("keys.txt")
def test_the_transcript(section: Section) -> None:
    section.play()
