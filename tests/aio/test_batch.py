"""Batches of lsmkv.aio: written whole or not at all, as of the call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from gates import TINY, GatedEnv, all_threads_busy, gated, turns

from lsmkv import aio


async def test_batches_and_transactions_are_discarded_by_an_exception() -> None:
    async def put_and_fail(group: Any) -> None:
        async with group:
            group.put(b"k", b"v")
            raise RuntimeError

    async with aio.open_db(":memory:") as db:
        for group in (db.write_batch(), db.transaction()):
            with pytest.raises(RuntimeError):
                await put_and_fail(group)
            assert await db.get(b"k") is None
        with pytest.raises(RuntimeError):
            await put_and_fail(db.write_batch(transaction=False))
        assert await db.get(b"k") == b"v"


async def test_write_takes_the_batch_as_of_the_call() -> None:
    env = GatedEnv()
    async with gated(env) as db:
        busy = await all_threads_busy(env, db)
        batch = db.write_batch()
        batch.put(b"a", b"1")
        writing = asyncio.create_task(batch.write())
        await turns()
        batch.clear()
        batch.put(b"b", b"2")
        env.log.open()
        await asyncio.gather(writing, *busy)
        assert await db.multi_get([b"a", b"b"]) == [b"1", None]


async def test_a_cancelled_batch_writes_nothing() -> None:
    async with aio.open_db(":memory:") as db:
        for make in (db.write_batch, db.transaction):
            inside = asyncio.Event()

            async def fill(make: Any = make, inside: asyncio.Event = inside) -> None:
                async with make() as group:
                    group.put(b"k", b"v")
                    inside.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(fill())
            await inside.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await db.get(b"k") is None


async def test_many_tasks_cancelled_at_random_leave_whole_batches() -> None:
    async with aio.open_db(":memory:", **TINY) as db:

        async def write(i: int) -> None:
            async with db.write_batch() as batch:
                for part in b"abc":
                    batch.put(b"%03d%c" % (i, part), b"x" * 20)
            async for _ in db.iterator(chunk=5):
                pass

        tasks = [asyncio.create_task(write(i)) for i in range(100)]
        for i, task in enumerate(tasks):
            await turns(i % 5)
            if i % 3:
                task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(e is None or isinstance(e, asyncio.CancelledError) for e in ended)
        keys = [key async for key in db.iterator(include_value=False)]
        groups = {key[:3] for key in keys}
        assert len(keys) == 3 * len(groups)
        assert {b"%03d" % i for i in range(0, 100, 3)} <= groups
        await db.check()
