"""The queue of what is to be swept, across restarts and commands that are taken back."""

from __future__ import annotations

import asyncio

import pytest
from serving import Client, an_engine

from lsmkv import DB, MemoryEnv
from lsmkv.server.encoding import GARBAGE, U64
from lsmkv.server.garbage_queue import GarbageQueue
from lsmkv.server.records import Records


def test_prefixes_come_out_in_order_and_positions_survive_a_restart() -> None:
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        records = Records(db)
        queue = GarbageQueue(records)
        assert queue.first() is None
        queue.add(b"one")
        queue.add(b"two")
        assert queue.first() == (b"one", b"")
        queue.move(b"one", b"one5")
        records.commit()
    with DB("/db", env=env) as db:
        records = Records(db)
        queue = GarbageQueue(records)
        assert len(queue) == 2
        assert queue.first() == (b"one", b"one5")
        queue.drop_first()
        assert queue.first() == (b"two", b"")
        queue.drop_first()
        assert (len(queue), queue.first()) == (0, None)


def test_what_is_undone_is_not_queued() -> None:
    with DB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        records = Records(db)
        queue = GarbageQueue(records)
        queue.add(b"one")
        records.keep()
        queue.drop_first()
        queue.add(b"two")
        records.undo()
        queue.reload()
        assert (len(queue), queue.first()) == (1, (b"one", b""))


@pytest.mark.usefixtures("runner")
async def test_a_broken_queue_is_reported_and_does_not_end_the_background_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with an_engine() as engine:
        client = Client(engine)
        client("SADD s a b")
        client("DEL s")
        engine.db.delete(GARBAGE + U64.pack(0))
        task = asyncio.create_task(engine.tidy())
        while not caplog.records:
            await asyncio.sleep(0.005)
        assert not task.done()
        task.cancel()
    assert "sweeping failed" in caplog.text
