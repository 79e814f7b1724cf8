"""Sets."""

from __future__ import annotations

import pytest
from serving import Client

from lsmkv.server.check import check

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"


def test_members(client: Client) -> None:
    client.plays(
        ("SADD s b a b", 2),
        ("SADD s a c", 1),
        ("SMEMBERS s", [b"a", b"b", b"c"]),
        ("SCARD s", 3),
        ("SISMEMBER s a", 1),
        ("SISMEMBER s x", 0),
        ("SISMEMBER none a", 0),
        ("SMISMEMBER s a x c", [1, 0, 1]),
        ("SMISMEMBER none a", [0]),
        ("SREM s a x a", 1),
        ("SREM s b c", 2),
        ("EXISTS s", 0),
        ("SREM s a", 0),
        ("SMEMBERS s", []),
        ("SCARD s", 0),
    )
    client("HELLO 3")
    client("SADD s a")
    assert client("SMEMBERS s") == {b"a"} or client("SMEMBERS s") == [b"a"]


def test_moving(client: Client) -> None:
    client.plays(
        ("SADD a 1 2", 2),
        ("SMOVE a b 1", 1),
        ("SMOVE a b x", 0),
        ("SMOVE none b 1", 0),
        ("SMOVE a a 2", 1),
        ("SADD b 2", 1),
        ("SMOVE a b 2", 1),
        ("EXISTS a", 0),
        ("SMEMBERS b", [b"1", b"2"]),
        ("SCARD b", 2),
        ("SET k v", b"OK"),
        ("SMOVE b k 1", WRONG),
        ("SCARD b", 2),
    )


def test_several_sets(client: Client) -> None:
    client.plays(
        ("SADD a 1 2 3", 3),
        ("SADD b 2 3 4", 3),
        ("SADD c 3", 1),
        ("SINTER a b", [b"2", b"3"]),
        ("SINTER a b c", [b"3"]),
        ("SINTER a none", []),
        ("SUNION a b none", [b"1", b"2", b"3", b"4"]),
        ("SDIFF a b", [b"1"]),
        ("SDIFF a none", [b"1", b"2", b"3"]),
        ("SDIFF none a", []),
        ("SINTERCARD 2 a b", 2),
        ("SINTERCARD 2 a b LIMIT 1", 1),
        ("SINTERCARD 2 a b LIMIT 0", 2),
        ("SINTERCARD 2 a b LIMIT -1", "ERR LIMIT can't be negative"),
        ("SINTERCARD 3 a b", "ERR Number of keys can't be greater than number of args"),
        ("SINTERCARD 0 a", "ERR numkeys should be greater than 0"),
        ("SINTERCARD 1 a FOO 1", "ERR syntax error"),
        ("SINTERSTORE d a b", 2),
        ("SUNIONSTORE d d c a", 3),
        ("SMEMBERS d", [b"1", b"2", b"3"]),
        ("SET d v", b"OK"),
        ("SDIFFSTORE d a b", 1),
        ("SMEMBERS d", [b"1"]),
        ("SINTERSTORE d a none", 0),
        ("EXISTS d", 0),
        ("SET k v", b"OK"),
        ("SINTER a k", WRONG),
        ("SUNION none k", WRONG),
    )


@pytest.mark.parametrize("size", [30, 1500])
def test_random_members(client: Client, size: int) -> None:
    members = {b"%d" % number for number in range(size)}
    client("SADD", b"s", *members)
    assert client("SRANDMEMBER s") in members
    chosen = client("SRANDMEMBER s 20")
    assert len(set(chosen)) == 20
    assert set(chosen) <= members
    assert len(client("SRANDMEMBER s -70")) == 70
    popped = client("SPOP s")
    assert popped in members
    more = client("SPOP s 9")
    assert len({popped, *more}) == 10
    left = set(client("SMEMBERS s"))
    assert left == members - {popped, *more}
    assert client("SCARD s") == size - 10
    assert set(client(f"SPOP s {size}")) == left
    client.plays(
        ("EXISTS s", 0),
        ("SPOP s", None),
        ("SPOP s 2", []),
        ("SRANDMEMBER s", None),
        ("SRANDMEMBER s 2", []),
        ("SADD s a", 1),
        ("SPOP s 0", []),
        ("SRANDMEMBER s 0", []),
        ("SPOP s -1", "ERR value is out of range, must be positive"),
        ("SPOP s 1 2", "ERR syntax error"),
        ("SRANDMEMBER s 1 2", "ERR syntax error"),
    )


def test_scan(client: Client) -> None:
    members = [b"m%02d" % number for number in range(15)]
    client("SADD", b"s", *members)
    cursor, found = client("SSCAN s 0")
    assert found == members[:10]
    assert client("SSCAN", "s", cursor) == [b"0", members[10:]]
    assert client("SSCAN", "none", cursor) == [b"0", []]
    client("SADD other a b")
    assert client("SSCAN", "other", cursor) == [b"0", [b"a", b"b"]]  # another scope: from its start


@pytest.mark.parametrize(
    "request_",
    ["SADD k a", "SREM k a", "SISMEMBER k a", "SMISMEMBER k a", "SCARD k", "SMEMBERS k",
     "SSCAN k 0", "SPOP k",
     "SRANDMEMBER k", "SMOVE k s a", "SINTER k", "SDIFFSTORE d k",
     "SINTERCARD 1 k"],
)  # fmt: skip
def test_another_type(client: Client, request_: str) -> None:
    client("SET k v")
    assert client(request_) == WRONG
    assert client("GET k") == b"v"


def test_random_members_where_nearly_all_places_are_behind_the_same_few(client: Client) -> None:
    members = {b"1", *(b"member:%06d:of the set" % number for number in range(1500))}
    client("SADD", b"s", *members)
    assert len(set(client("SRANDMEMBER s 149")) & members) == 149
    assert len(client("SRANDMEMBER s -149")) == 149
    assert len(set(client("SPOP s 149")) & members) == 149
    assert client("SCARD s") == 1501 - 149


def test_random_members_of_which_the_last_sorts_before_nearly_every_place(client: Client) -> None:
    client("SADD", b"s", b"m", *(b"m" + bytes(9) + b"%d" % number for number in range(1500)))
    assert len(client("SRANDMEMBER s -20")) == 20
    assert client("SPOP s").startswith(b"m")


def test_a_set_that_is_popped_to_its_end_passes_over_few_removed_members(client: Client) -> None:
    """The members that are left are moved to a new version, where nothing was removed."""
    engine = client.engine
    members = {b"%06d" % number for number in range(6000)}
    client("SADD", b"s", *members)
    popped = client("SPOP s 4000")
    versions = set()
    while len(popped) < 5990:
        popped.append(client("SPOP s"))
        entry = engine.space.find(client.session.database, b"s")
        assert entry is not None
        assert entry.removed < max(1024, entry.size)
        versions.add(entry.version)
    assert 1 < len(versions) < 6
    assert check(engine.db) == []
    popped += client("SPOP s 100")
    assert (len(popped), set(popped), client("EXISTS s")) == (6000, members, 0)
    while engine.tidy_once():
        pass
    engine.commit()
    assert not list(engine.db.iterator(prefix=b"e"))


def test_a_hash_keeps_its_values_when_it_moves(client: Client) -> None:
    client("HSET", b"h", *(b"%04d" % (number // 2) for number in range(4000)))
    for number in range(1500):
        client("HDEL", b"h", b"%04d" % number)
    entry = client.engine.space.find(client.session.database, b"h")
    assert entry is not None
    assert entry.removed == 1500 - 1024
    assert client("HGETALL h") == [b"%04d" % (number // 2) for number in range(3000, 4000)]
    client.plays(("COPY h copied", 1), ("HLEN copied", 500))
