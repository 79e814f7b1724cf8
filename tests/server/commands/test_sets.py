"""Sets."""

from __future__ import annotations

import pytest
from serving import Client
from transcripts import Section, transcript

from lsmkv.server.check import check

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"


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


@transcript("sets.txt")
def test_the_transcript(section: Section) -> None:
    section.play()
