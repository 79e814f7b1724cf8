"""Keys, their number, what is swept and what a command takes back."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from serving import Client, an_engine

from lsmkv import DB, MemoryEnv
from lsmkv.server.check import check
from lsmkv.server.encoding import ELEMENT, SET, U32, Entry, element_prefix
from lsmkv.server.keyspace import Keyspace


@pytest.fixture
def db() -> Iterator[DB]:
    with DB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        yield db


def make_set(space: Keyspace, key: bytes, count: int) -> None:
    entry = space.make(SET)
    for number in range(count):
        space.records.put(element_prefix(entry) + b"%06d" % number, b"")
    entry.size = count
    space.save(space.databases[0], key, entry, new=True)


def test_a_store_with_other_data_is_refused(db: DB) -> None:
    db.put(b"a", b"b")
    with pytest.raises(ValueError, match="did not write"):
        Keyspace(db)


def test_what_a_command_did_is_undone_as_a_whole(db: DB) -> None:
    space = Keyspace(db)
    first, second = space.databases[:2]
    space.set_string(first, b"a", b"1", space.now() + 100_000)
    make_set(space, b"s", 3)
    space.keep()
    space.commit()
    before = dict(db)
    ids = (first.id, second.id)
    space.set_string(first, b"s", b"x")
    space.swap(first, second)
    space.flush(second)
    space.undo()
    assert (first.id, second.id, first.size, second.size) == (*ids, 2, 0)
    assert len(space.garbage) == 0
    space.commit()
    assert dict(db) == before
    assert check(db) == []


def test_a_sweep_goes_on_after_a_restart_where_it_stood(db: DB) -> None:
    space = Keyspace(db)
    make_set(space, b"s", 1000)
    space.commit()
    entry = space.find(space.databases[0], b"s")
    assert entry is not None
    space.remove(space.databases[0], b"s", entry)
    assert space.sweep(400)
    space.commit()
    assert check(db) == []
    space = Keyspace(db)
    assert space.garbage.first() == (element_prefix(entry), element_prefix(entry) + b"000400")
    assert space.sweep(400)
    assert not space.sweep(400)
    space.commit()
    assert list(db.iterator(prefix=ELEMENT)) == []
    assert check(db) == []


def test_flushed_keys_are_swept_with_their_elements_and_times(db: DB) -> None:
    space = Keyspace(db)
    database = space.databases[0]
    make_set(space, b"s", 10)
    space.set_string(database, b"a", b"1", space.now() + 100_000)
    space.flush(database)
    space.set_string(database, b"a", b"2")
    while space.sweep(3):
        space.commit()
        assert check(db) == []
    space.commit()
    assert check(db) == []
    assert [key for key, _ in space.keys(database)] == [b"a"]
    assert database.size == 1
    assert list(db.iterator(prefix=ELEMENT)) == list(db.iterator(prefix=b"x")) == []


def test_expired_keys_are_gone_at_once_and_removed_later(db: DB) -> None:
    space = Keyspace(db)
    database = space.databases[0]
    space.set_string(database, b"a", b"1", space.now() - 1)
    assert list(space.keys(database)) == []
    assert database.size == 1
    assert space.expire_due(10) == 1
    assert database.size == 0
    space.commit()
    assert check(db) == []


def expiring(space: Keyspace) -> dict[int, tuple[int, int]]:
    """How many keys expire in each database, and the sum of their times: what is there."""
    found = {}
    for database in space.databases:
        entries = [Entry.decode(record) for _, record in space.records.under(database.prefix)]
        times = [entry.expires for entry in entries if entry.expires]
        found[database.index] = (len(times), sum(times))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_keys_that_expire_are_counted(seed: int) -> None:
    chosen = random.Random(seed)
    env = MemoryEnv()
    with an_engine(env) as engine:
        client = Client(engine)
        for _ in range(600):
            name, other = chosen.choice("abcd"), chosen.choice("abcd")
            client(chosen.choice([
                f"SET {name} v EX 1000", f"SET {name} v", f"SET {name} v KEEPTTL", f"DEL {name}",
                f"EXPIRE {name} 2000", f"PERSIST {name}", f"SADD {name} a b", f"SPOP {name} 2",
                f"RENAME {name} {other}", f"COPY {name} {other} REPLACE", f"MOVE {name} 1",
                f"SELECT {chosen.randrange(2)}", f"SET {name} v PX 1", f"GETEX {name} PERSIST",
                f"MSETNX {name} 1 {other} 2", f"BITFIELD {name} SET u8 0 1 BAD",
                *(["SWAPDB 0 1", "FLUSHDB"] if chosen.random() < 0.1 else []),
            ]))  # fmt: skip
            if chosen.random() < 0.05:
                engine.tidy_once()
        engine.commit()
        counts = {one.index: (one.expiring, one.times) for one in engine.space.databases}
        assert counts == expiring(engine.space)
        assert any(count for count, _ in counts.values())
        for database in engine.space.databases:  # as an older release writes it
            engine.db.put(database.name, database.encode()[:12])
    with an_engine(env) as engine:
        assert counts == {one.index: (one.expiring, one.times) for one in engine.space.databases}
        assert len(engine.db.get(engine.space.databases[0].name) or b"") == 36


@pytest.mark.parametrize("raw", [False, True])
def test_a_replica_sees_a_state_as_a_whole(raw: bool) -> None:
    env = MemoryEnv()
    with DB("/db", env=env, create_if_missing=True) as db:
        writer = Keyspace(db)
        writer.set_string(writer.databases[0], b"k", b"old")
        writer.commit()
        with an_engine(env, raw=raw, read_only=True) as replica:
            one = Client(replica)
            key = b"k" + U32.pack(writer.databases[0].id) + b"k" if raw else b"k"
            stored = b"\x01" * raw
            assert one("GET", key) == stored + b"old"
            size = one("DBSIZE")
            writer.set_string(writer.databases[0], b"k", b"new")
            writer.set_string(writer.databases[0], b"l", b"new")
            writer.commit()
            replica.db.refresh()  # as the server does in another thread, while commands run
            assert one("GET", key) == stored + b"old"
            assert one("MGET", key) == [stored + b"old"]
            assert len(one("KEYS *k")) == 1
            assert one("DBSIZE") == size
            replica.space.reload()
            assert one("GET", key) == stored + b"new"
            assert one("DBSIZE") == size + 1
