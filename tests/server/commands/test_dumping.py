"""DUMP and RESTORE."""

from __future__ import annotations

import random

import pytest
from serving import Client
from transcripts import Section, transcript

from lsmkv.server.check import check
from lsmkv.server.crc64 import crc64

MAKERS = [
    "SET k hello",
    "RPUSH k a b 1",
    "HSET k a 1 b 2",
    "SADD k a b c",
    "ZADD k 1.5 a inf b -inf c",
    "XADD k 1-1 a b",
]
OLDER = {
    "a ziplist": "0a 11 11000000 0a000000 0200 00 01 61 03 01 62 ff",
    "a quicklist of ziplists": "0e 01 11 11000000 0a000000 0200 00 01 61 03 01 62 ff",
    "a hash in a ziplist": "0d 11 11000000 0a000000 0200 00 01 61 03 01 62 ff",
    "a sorted set in a ziplist": "0c 10 10000000 0a000000 0200 00 01 61 03 f3 ff",
    "a sorted set with scores as text": "03 02 01 61 03 312e35 01 62 fe",
    "a set in a listpack": "14 0d 0d000000 0200 81 61 02 81 62 02 ff",
}
"""What other releases of Redis write, without version and checksum."""


def payload(data: bytes, version: int = 10) -> bytes:
    data += version.to_bytes(2, "little")
    return data + crc64(data).to_bytes(8, "little")


def fill(client: Client) -> None:
    for number in range(1, 251):
        client(f"XADD k {number}-1 a {number} b c")
    client("XADD k 251-1 other fields here too")
    client("XGROUP CREATE k g 5")
    client("XREADGROUP GROUP g c COUNT 3 STREAMS k >")
    client("XGROUP CREATECONSUMER k g idle")
    client("XDEL k 7-1")


@pytest.mark.parametrize("maker", [*MAKERS, ""])
def test_a_restored_key_is_the_same(client: Client, maker: str) -> None:
    if maker:
        client(maker)
    else:
        fill(client)
    assert client("RESTORE", "copy", "0", client("DUMP k")) == b"OK"
    assert client("DUMP copy") == client("DUMP k")
    client("DEL k")
    client.engine.commit()
    assert check(client.engine.db) == []


@pytest.mark.parametrize("name", OLDER)
def test_forms_of_other_releases(client: Client, name: str) -> None:
    data = payload(bytes.fromhex(OLDER[name]), version=6)
    assert client("RESTORE", "k", "0", data) == b"OK"
    found = {
        b"list": "LRANGE k 0 -1",
        b"hash": "HGETALL k",
        b"set": "SMEMBERS k",
        b"zset": "ZRANGE k 0 -1 WITHSCORES",
    }[client("TYPE k")]
    expected = {"sorted": [b"a", b"1.5", b"b", b"inf"] if "text" in name else [b"a", b"2"]}
    assert client(found) == expected.get(name.split()[1], [b"a", b"b"])


def test_bad_data_changes_nothing(client: Client) -> None:
    """Whatever bytes are restored: either a key is made, or the store is as before."""
    fill(client)
    for maker in MAKERS[:-1]:
        client(maker.replace(" k ", f" {maker[:4]} "))
    dumps = [client("DUMP", key) for key in client("KEYS *")]
    client("FLUSHALL")
    choices = random.Random(0)
    replies = set()
    for _ in range(600):
        data = bytearray(choices.choice(dumps)[:-10])
        for _ in range(choices.randrange(3)):
            data[choices.randrange(len(data))] = choices.randrange(256)
        if choices.random() < 0.3:
            del data[choices.randrange(len(data)) :]
        replies.add(client("RESTORE", "k", "0", payload(bytes(data)), "REPLACE"))
        if choices.random() < 0.01:
            client.engine.commit()
            assert check(client.engine.db) == []
    assert replies == {b"OK", "ERR Bad data format"}


def test_a_payload_must_be_whole(client: Client) -> None:
    client("SET k v")
    data = client("DUMP k")
    for wrong in (data[:-1], data[2:], b"", b"x" * 9, payload(data[:-10], version=11)):
        assert client("RESTORE", "copy", "0", wrong) == (
            "ERR DUMP payload version or checksum are wrong"
        )
    for kind in range(22, 256):
        assert client("RESTORE", "copy", "0", payload(bytes((kind,)) + data[1:-10])) == (
            "ERR Bad data format"
        )


def test_a_bloom_filter_is_not_dumped(client: Client) -> None:
    client("BF.ADD b x")
    assert client("DUMP b").startswith("ERR a Bloom filter cannot be dumped")


@transcript("dumping.txt")
def test_the_transcript(section: Section) -> None:
    section.play()
