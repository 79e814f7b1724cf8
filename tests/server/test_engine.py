"""The engine of a server: ticks that fail."""

from __future__ import annotations

import asyncio

import pytest
from ticks import FULL, Clients, agrees, engine_of, open_store, refused, tick

from lsmkv.server.check import check
from lsmkv.testing import FaultyEnv


def test_a_failed_write_leaves_reads_of_its_tick_alone() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        engine = engine_of(db)
        clients = Clients(engine, 3)
        clients.tick((0, "SET k old"), (0, "RPUSH l a b"), (0, "SET other 1"), (0, "SADD s m"))
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        writer, reader, mixed = clients.tick(
            (1, "GET k"),
            (0, "SET k new"),
            (1, "GET k"),
            (0, "DEL l"),
            (1, "LRANGE l 0 -1"),
            (1, "KEYS *"),
            (2, "SET other 2"),
            (1, "DBSIZE"),
            (1, "PING"),
            (2, "GET other"),
            (2, "SET k no NX"),
            (2, "SELECT 3"),
            (2, "SET there 1"),
            (2, "GET there"),
            (2, "SELECT 0"),
            (1, "MULTI"),
            (1, "GET k"),
            (1, "ECHO x"),
            (1, "LLEN l"),
            (1, "EXEC"),
            (0, "FLUSHALL"),
            (1, "MGET k other none"),
            (1, "SMEMBERS s"),
        )
        assert [refused(reply) for reply in writer] == [True] * 3
        assert reader == [
            b"old",
            b"old",
            [b"a", b"b"],
            [b"k", b"l", b"other", b"s"],
            4,
            b"PONG",
            *(b"OK", b"QUEUED", b"QUEUED", b"QUEUED", [b"old", b"x", 2]),
            [b"old", b"1", None],
            [b"m"],
        ]
        assert [refused(reply) for reply in mixed] == [True, False, True, False, True, False, False]
        assert mixed[1] == b"1"
        assert mixed[5] is None
        assert clients.sessions[2].database.index == 0
        agrees(engine)


@pytest.mark.usefixtures("runner")
async def test_the_server_finds_out_by_itself_that_there_is_room_again() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        engine = engine_of(db)
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        tick(engine, "SET k v")
        assert engine.failure
        assert not engine._probe()
        env.heal()
        tidying = asyncio.create_task(engine.tidy())
        while engine.failure:
            await asyncio.sleep(0.01)
        tidying.cancel()
        agrees(engine)


def test_a_connection_that_fails_takes_no_other_with_it() -> None:
    with open_store(FaultyEnv()) as db:
        engine = engine_of(db)
        clients = Clients(engine, 2)
        clients.sessions[1].send = _raise
        clients.sessions[1].disconnect = _raise
        assert clients.tick((1, "PING"), (0, "SET k v"), (1, "PING"))[0] == [b"OK"]
        assert list(engine.sessions.values()) == [clients.sessions[0]]
        assert clients.tick((1, "PING"), (0, "GET k"))[0] == [b"v"]


def _raise(*_: object) -> None:
    raise RuntimeError("the handler is closed")


@pytest.mark.parametrize("save", ["SAVE", "BGSAVE"])
def test_a_save_that_fails_refuses_what_the_tick_has_written_before(save: str) -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        engine = engine_of(db)
        before = dict(db)
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        answers = tick(engine, "SET a 1", save, "PING").splitlines()
        assert answers[0].startswith(b"-MISCONF")
        assert answers[1].startswith(b"-ERR")
        assert answers[2:] == [b"+PONG"]
        assert dict(db) == before
        assert engine.failure
        env.heal()
        assert tick(engine, "SET a 1", save).count(b"-") == 0
        assert engine.failure == ""
        assert check(db) == []
