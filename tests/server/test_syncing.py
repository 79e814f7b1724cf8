"""Syncs of a server: replies that wait for one, and one that fails."""

from __future__ import annotations

import asyncio

import pytest
from serving import parsed
from ticks import engine_of, open_store, refused, tick

import lsmkv
from lsmkv.testing import FaultyEnv


@pytest.mark.usefixtures("runner")
async def test_a_failing_sync_refuses_every_write_that_waits_for_it() -> None:
    env = FaultyEnv()
    db = open_store(env)
    engine = engine_of(db)
    engine.settings.appendfsync = "always"
    env.fail_at(1, sticky=True, calls={"sync"})
    sent: list[bytes] = []
    session = engine.open_session()
    session.send = sent.append
    for line in (b"SET a 1", b"SET b 1", b"MULTI", b"GET a", b"SET b 2", b"EXEC", b"GET a"):
        engine.run(session, line.split())
    engine.commit()
    assert sent == []
    while engine.syncing:
        await asyncio.sleep(0.001)
    env.heal()
    assert b"MISCONF" in tick(engine, "SET c 1")  # the log is lost until it is reopened
    with pytest.raises(lsmkv.Error, match="earlier write"):
        db.close()
    replies = parsed(b"".join(sent))
    assert [refused(reply) for reply in replies] == [True, True, *([False] * 3), True, False]
    assert replies[-1] == b"1"


@pytest.mark.usefixtures("runner")
async def test_replies_wait_for_the_sync() -> None:
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
