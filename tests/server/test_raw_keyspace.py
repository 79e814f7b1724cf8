"""The keys of an ordinary store, as ``--raw`` serves them."""

from __future__ import annotations

import pytest
from serving import Client, an_engine

from lsmkv import DB, MemoryEnv
from lsmkv.server.encoding import STRING
from lsmkv.server.raw_keyspace import RawKeyspace


def test_a_store_of_the_server_itself_is_served_for_reading_only() -> None:
    env = MemoryEnv()
    with an_engine(env) as engine:
        Client(engine)("SET k v")
    with pytest.raises(ValueError, match="was written by lsmkv serve"), an_engine(env, raw=True):
        pass
    with an_engine(env, raw=True, read_only=True) as engine:
        client = Client(engine)
        client.plays(("GET !format", b"lsmkv-serve 1"))
        assert client("SET k v").startswith("READONLY")


def test_a_key_of_the_store_is_a_string_and_nothing_else_is_kept() -> None:
    with DB(":memory:") as db:
        db.put(b"k", b"v")
        space = RawKeyspace(db)
        (database,) = space.databases
        entry = space.find(database, b"k")
        assert entry is not None
        assert (entry.kind, entry.rest, entry.expires) == (STRING, b"v", 0)
        assert space.find(database, b"none") is None
        assert (space.stores_cursors, space.garbage_ranges) == (False, 0)
        assert (space.expire_due(9), space.sweep(9)) == (0, False)
        space.records.put(b"k", b"changed")
        space.undo()
        assert space.records.get(b"k") == b"v"
        assert dict(db) == {b"k": b"v"}
