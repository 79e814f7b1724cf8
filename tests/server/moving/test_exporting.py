"""A store as commands: in another store they make the same."""

from __future__ import annotations

from serving import Client, an_engine

from lsmkv import DB, MemoryEnv
from lsmkv.server.moving.exporting import Exported, commands_of


def again(client: Client, *keys: str) -> None:
    """Make keys again in another store, and compare what is exported from there."""
    made = exported(client, *keys)
    with an_engine() as engine:
        other = Client(engine)
        for words in made:
            reply = other(*words)
            assert not isinstance(reply, str), f"{words}: {reply}"
        assert exported(other, *keys) == made


def exported(client: Client, *keys: str) -> list[list[bytes]]:
    space, database = client.engine.space, client.session.database
    found = []
    for key in keys:
        entry = space.find(database, key.encode())
        assert entry is not None
        found += list(commands_of(space, key.encode(), entry))
    return found


def test_every_kind(client: Client) -> None:
    client("SET text hello PXAT 4102444800000")
    client("HSET hash a 1 b 2")
    client("HPEXPIREAT hash 4102444800000 FIELDS 1 a")
    client("RPUSH list z y x z")
    client("SADD set b a")
    client("ZADD scores 1e300 a -inf b 0.1 c")
    assert exported(client, "text") == [
        [b"SET", b"text", b"hello"],
        [b"PEXPIREAT", b"text", b"4102444800000"],
    ]
    assert exported(client, "hash")[2:] == [
        [b"HPEXPIREAT", b"hash", b"4102444800000", b"FIELDS", b"1", b"a"]
    ]
    again(client, "text", "hash", "list", "set", "scores")


def test_large_collections_come_in_parts(client: Client) -> None:
    client("RPUSH", "list", *map(str, range(2500)))
    client("HSET", "hash", "large", "x" * 300_000, "small", "y")
    commands = exported(client, "list", "hash")
    assert [len(words) for words in commands] == [2, 1000, 1000, 506, 2, 4, 4]
    again(client, "list", "hash")


def test_streams_with_groups(client: Client) -> None:
    for number in range(1, 30):
        client(f"XADD s {number}-0 f {number}")
    client("XGROUP CREATE s g 0")
    client("XGROUP CREATE s other 3-0 ENTRIESREAD 3")
    client("XGROUP CREATECONSUMER s other idle")
    client("XREADGROUP GROUP g a COUNT 20 STREAMS s >")
    client("XCLAIM s g b 0 7-0 TIME 1000 RETRYCOUNT 5")
    client("XACK s g 3-0")
    client("XDEL s 8-0 29-0")
    client("XTRIM s MINID 5-0")
    again(client, "s")
    assert client("XPENDING s g")[:3] == [19, b"1-0", b"20-0"]


def test_streams_without_entries(client: Client) -> None:
    client("XGROUP CREATE never g $ MKSTREAM")
    for key in ("trimmed", "deleted"):
        client(f"XADD {key} 5-5 f v")
        client(f"XGROUP CREATE {key} g 0")
        client(f"XREADGROUP GROUP g c STREAMS {key} >")
    client("XTRIM trimmed MAXLEN 0")
    client("XDEL deleted 5-5")
    again(client, "never", "trimmed", "deleted")


def test_all_databases_of_a_store() -> None:
    env = MemoryEnv()
    with an_engine(env) as engine:
        client = Client(engine)
        for request in ("SET a 1", "BF.ADD filter x", "SET gone 1 PXAT 1", "SELECT 3", "SET b 2"):
            client(request)
    with DB("/db", env=env, read_only=True) as db:
        exported = Exported(db)
        assert len(exported) == 3
        assert list(exported.commands()) == [
            *([b"SELECT", b"0"], [b"SET", b"a", b"1"]),
            *([b"SELECT", b"3"], [b"SET", b"b", b"2"]),
        ]
        assert exported.keys == 2
        assert exported.left_out == {"MBbloom--": 1}
