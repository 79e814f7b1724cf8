"""Filling a store by commands."""

from __future__ import annotations

import pytest

from lsmkv import DB, MemoryEnv
from lsmkv.server.check import check
from lsmkv.server.moving.importing import Importer, Position


def opened(env: MemoryEnv) -> DB:
    return DB("/db", env=env, create_if_missing=True)


def test_where_it_has_come_to_is_written_with_the_data() -> None:
    env = MemoryEnv()
    with opened(env) as db:
        importer = Importer(db)
        assert importer.position is None
        importer.run([b"SET", b"a", b"1"])
        importer.reach(Position(b"source", 0, 1 << 63))
        importer.run([b"SET", b"lost", b"1"])
    with opened(env) as db:
        importer = Importer(db)
        assert importer.position == Position(b"source", 0, 1 << 63)
        importer.select(3)
        importer.run([b"RPUSH", b"b", b"1"])
        importer.finish()
        assert importer.position is None
        assert check(db) == []
        keys = [key[5:] for key, _ in db.iterator(prefix=b"k")]
    assert keys == [b"a", b"b"]


def test_much_is_written_at_once() -> None:
    with opened(MemoryEnv()) as db:
        importer = Importer(db)
        for number in range(9):
            importer.run([b"SET", b"%d" % number, bytes(1 << 20)])
        assert len(list(db.iterator(prefix=b"k"))) == 8


def test_a_command_that_fails_is_named() -> None:
    with opened(MemoryEnv()) as db:
        importer = Importer(db)
        with pytest.raises(ValueError, match="INCRBY k: ERR value is not an integer"):
            importer.run([b"INCRBY", b"k", b"x"])
        with pytest.raises(ValueError, match="lsmkv has the databases 0 to 15"):
            importer.select(16)


def test_a_store_with_other_data_is_refused() -> None:
    with opened(MemoryEnv()) as db:
        db.put(b"k", b"v")
        with pytest.raises(ValueError, match="holds data that lsmkv serve did not write"):
            Importer(db)
