"""Power cuts, full disks and failing syncs under the engine, without sockets."""

from __future__ import annotations

import asyncio
import errno
import os

import pytest

import lsmkv
from lsmkv import DB, Env
from lsmkv.server.check import check
from lsmkv.server.commands import COMMANDS
from lsmkv.server.encoding import EXPIRY_BOUND, GARBAGE_ENDS, TWO_U64
from lsmkv.server.engine import Engine
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.settings import Settings
from lsmkv.testing import CrashState, FaultyEnv, RecordingEnv, explore

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def engine_of(db: DB) -> Engine:
    engine = Engine(db, Keyspace(db), COMMANDS, Settings())
    engine.schedule = lambda callback: None
    return engine


def tick(engine: Engine, *lines: str) -> bytes:
    """Run commands and commit; the replies."""
    sent: list[bytes] = []
    session = engine.open_session()
    session.send = sent.append
    for line in lines:
        engine.run(session, line.encode().split())
    engine.commit()
    engine.close_session(session)
    return b"".join(sent)


def open_store(env: Env, **options: int) -> DB:
    return DB("/db", create_if_missing=True, env=env, **options)  # type: ignore[arg-type]


def agrees(engine: Engine) -> None:
    """What the keyspace has in memory is what the store has."""
    space = engine.space
    fresh = Keyspace(engine.db)
    sizes = [(one.id, one.size) for one in space.databases]
    assert sizes == [(one.id, one.size) for one in fresh.databases]
    stored = engine.db.get(GARBAGE_ENDS)
    first, behind = (0, 0) if stored is None else TWO_U64.unpack(stored)
    assert len(space.garbage) == behind - first
    assert space.expiry._bound == (engine.db.get(EXPIRY_BOUND) or b"x")
    assert not space.has_changes


def test_every_state_after_a_crash_is_consistent() -> None:
    ticks = [
        ("SET a 0", "HSET h f 0", "ZADD z 1 m0", "RPUSH l 0 1 2", "SET n 0"),
        ("MULTI", "INCR n", "ZADD z 5 m1", "LPOP l", "DEL h", "EXEC"),
        ("RENAME z y", "EXPIRE y 100000", "SADD s a b c", "INCR n"),
        ("FLUSHDB", "SET n 3", "BF.ADD b x", "ZADD z 1 a 2 b"),
        ("ZPOPMIN z", "SET n 4"),
    ]

    def workload(env: RecordingEnv) -> None:
        with open_store(env, write_buffer_size=4096) as db:
            engine = engine_of(db)
            for number, lines in enumerate(ticks):
                tick(engine, *lines)
                engine.tidy_once(1)
                engine.commit()
                if number % 2:
                    db.sync()
                    env.note(number)

    def look(state: CrashState) -> None:
        with open_store(state.env) as db:
            engine = engine_of(db)
            assert check(db) == []
            number = tick(engine, "GET n").split()[-1]
            least = max((int(str(note)) for note in state.notes), default=-1)
            assert least <= (-1 if number == b"$-1" else int(number))
            while engine.tidy_once():
                engine.commit()
            engine.commit()
            assert check(db) == []

    report = explore(workload, look, points=40)
    assert report.states > 100
    assert report.violations == [], str(report)


def test_a_full_disk_refuses_the_tick_and_changes_nothing() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        engine = engine_of(db)
        tick(engine, "SET kept 1", "HSET h a 1", "ZADD z 1 m", "SET old 1 EX 100000")
        before = dict(db)
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        lines = ["SET new 1", "DEL h", "FLUSHDB", "SADD s a", "EXPIRE s 100000", "GET kept"]
        answers = tick(engine, *lines)
        assert answers.count(b"-MISCONF") == len(lines)
        assert answers.count(b"\r\n") == len(lines)
        assert dict(db) == before
        assert engine.failure
        agrees(engine)
        assert check(db) == []
        env.heal()
        assert tick(engine, "GET kept") == b"$1\r\n1\r\n"
        assert tick(engine, "SADD s a", "DBSIZE") == b":1\r\n:5\r\n"
        assert engine.failure == ""
        agrees(engine)
        assert check(db) == []


def test_a_subscriber_gets_no_error_for_a_message_of_a_tick_that_fails() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        engine = engine_of(db)
        sent: list[bytes] = []
        listener = engine.open_session()
        listener.send = sent.append
        for line in (b"HELLO 3", b"SUBSCRIBE c"):
            engine.run(listener, line.split())
        engine.commit()
        sent.clear()
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        engine.run(listener, [b"PING"])
        assert tick(engine, "SET a 1", "PUBLISH c hi").count(b"-MISCONF") == 2
        env.heal()
        assert b"".join(sent).count(b"-MISCONF") == 1  # of its PING alone
        sent.clear()
        assert tick(engine, "SET a 1", "PUBLISH c hi") == b"+OK\r\n:1\r\n"
        assert sent == [b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n"]


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


def test_a_failing_sync_refuses_every_reply_that_waits_for_it() -> None:
    env = FaultyEnv()

    async def run(db: DB) -> bytes:
        engine = engine_of(db)
        engine.settings.appendfsync = "always"
        env.fail_at(1, sticky=True, calls={"sync"})
        sent: list[bytes] = []
        session = engine.open_session()
        session.send = sent.append
        for line in (b"SET a 1", b"SET b 1", b"GET a"):
            engine.run(session, line.split())
        engine.commit()
        assert sent == []
        while engine.syncing:
            await asyncio.sleep(0.001)
        env.heal()
        assert b"MISCONF" in tick(engine, "SET c 1")  # the log is lost until it is reopened
        return b"".join(sent)

    db = open_store(env)
    answers = asyncio.run(run(db))
    with pytest.raises(lsmkv.Error, match="earlier write"):
        db.close()
    assert answers.count(b"-MISCONF") == answers.count(b"\r\n") == 3


def test_replies_wait_for_the_sync() -> None:
    async def run() -> None:
        with open_store(FaultyEnv()) as db:
            engine = engine_of(db)
            engine.settings.appendfsync = "always"
            sent: list[bytes] = []
            session = engine.open_session()
            session.send = sent.append
            engine.run(session, [b"SET", b"a", b"1"])
            engine.commit()
            assert sent == []
            while engine.syncing:
                await asyncio.sleep(0.001)
            assert sent == [b"+OK\r\n"]

    asyncio.run(run())
