"""Ranges without records, against a plain set of numbers."""

from __future__ import annotations

import random

from serving import Client, an_engine

from lsmkv import DB, MemoryEnv
from lsmkv.server.commands import COMMANDS
from lsmkv.server.engine import Engine
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.removed_ranges import RemovedRanges
from lsmkv.server.settings import Settings


def at(number: int) -> bytes:
    return b"%04d" % number


def test_random_ranges_never_hide_a_record() -> None:
    choices = random.Random(4)
    ranges, there = RemovedRanges(), set(range(0, 1000, 7))
    for _ in range(5000):
        place = choices.randrange(1000)
        found = min((one for one in there if one >= place), default=None)
        if found is None:
            continue
        assert at(place) <= ranges.skip(1, at(place)) <= at(found)
        assert ranges.skip(2, at(place)) == at(place)
        ranges.learn(1, at(place), at(found))
        assert ranges.skip(1, at(place)) == at(found)
        if choices.random() < 0.3:
            there.discard(found)
        if choices.random() < 0.3:
            new = choices.randrange(1000)
            there.add(new)
            ranges.fill(1, at(new))
    ranges.forget()
    assert ranges.skip(1, at(5)) == at(5)


def test_members_that_gather_behind_gaps_are_passed_over_once() -> None:
    """Numbers as text: nearly all places lead to the same few members."""
    with an_engine() as engine:
        client = Client(engine)
        members = {b"member:%d" % number for number in range(9000)}
        client("SADD", b"s", *members)
        popped = {client("SPOP s") for _ in range(3000)}
        assert len(popped) == 3000
        entry = engine.space.find(client.session.database, b"s")
        assert entry is not None
        place = b"e" + entry.version.to_bytes(8, "big") + b"member:5\xff"
        skipped = engine.space.removed_ranges.skip(entry.version, place)
        behind = min(member for member in members - popped if member > b"member:5\xff")
        gathered = [one for one in popped if b"member:5\xff" < one < behind]
        assert skipped[9:] <= behind
        # Those that were popped last are learned of by the next place that leads to them.
        assert len([one for one in gathered if one >= skipped[9:]]) < 20 < len(gathered)
        assert client("SADD", b"s", b"member:5\xff\xff") == 1
        assert engine.space.removed_ranges.skip(entry.version, place) == place


def test_a_pop_that_is_undone_is_forgotten() -> None:
    with an_engine() as engine:
        ranges = engine.space.removed_ranges
        ranges.learn(1, b"a", b"b")
        engine.space.records.put(b"name", b"value")
        engine.space.undo()
        assert ranges.skip(1, b"a") == b"a"


def test_a_reader_forgets_what_it_knew_of_an_older_state() -> None:
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        writer = Client(Engine(db, Keyspace(db), COMMANDS, Settings()))
        writer("SADD", b"s", *(b"member:%d" % number for number in range(2000)))
        with DB("/db", env=env, read_only=True) as copy:
            space = Keyspace(copy, writable=False)
            reader = Client(Engine(copy, space, COMMANDS, Settings()))
            for _ in range(300):
                assert reader("SRANDMEMBER s").startswith(b"member:")
            gone = [b"member:%d" % number for number in range(2000) if str(number)[0] > "1"]
            writer("SREM", b"s", *gone)
            writer("SADD", b"s", *(b"member:1\xf0%d" % number for number in range(1500)))
            copy.refresh()
            space.reload()
            for _ in range(300):
                assert reader("SRANDMEMBER s").startswith(b"member:")
