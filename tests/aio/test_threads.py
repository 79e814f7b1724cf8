"""The threads of a store of lsmkv.aio, and what becomes of their calls."""

from __future__ import annotations

import asyncio
import threading

import pytest
from gates import TINY, GatedEnv, all_threads_busy, filled, gated, reopened, turns

import lsmkv
from lsmkv import aio


async def test_threads_are_few_and_named() -> None:
    async with aio.open_db(":memory:") as db:
        await asyncio.gather(*(db.put(b"%d" % i, b"") for i in range(50)))
        await db.compact_range()
        names = [t.name for t in threading.enumerate() if t.name.startswith("lsmkv-aio")]
        assert 1 <= len(names) <= aio.threads.CALL_THREADS + 1


async def test_long_calls_do_not_delay_other_calls() -> None:
    env = GatedEnv()
    async with gated(env, **TINY) as db:
        await filled(db)
        env.table.shut()
        work = [
            asyncio.create_task(db.compact_range()) for _ in range(aio.threads.CALL_THREADS + 2)
        ]
        await env.table.somebody()
        assert await db.get(b"0007") == b"v7"
        assert not any(task.done() for task in work)
        env.table.open()
        await asyncio.gather(*work)


async def test_a_cancelled_call_that_no_thread_has_begun_never_happens() -> None:
    env = GatedEnv()
    async with gated(env) as db:
        busy = await all_threads_busy(env, db)
        await turns()
        waiting = asyncio.create_task(db.put(b"waiting", b""))
        await turns()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting  # at once: the gate is still shut
        env.log.open()
        await asyncio.gather(*busy)
        assert not await db.contains(b"waiting")


async def test_closing_waits_for_calls_under_way() -> None:
    env = GatedEnv()
    db = await gated(env)
    env.log.shut()
    puts = [
        asyncio.create_task(db.put(b"%d" % i, b"", sync=True))
        for i in range(2 * aio.threads.CALL_THREADS)  # some of them are not begun
    ]
    await env.log.somebody()
    closing = [asyncio.create_task(db.close()) for _ in range(2)]
    await turns()
    assert not any(task.done() for task in [*puts, *closing])
    with pytest.raises(lsmkv.ClosedError):
        await db.put(b"late", b"")
    env.log.open()
    await asyncio.gather(*puts, *closing)
    with reopened(env) as sync_db:
        assert list(sync_db.iterator(include_value=False)) == [
            b"%d" % i for i in range(2 * aio.threads.CALL_THREADS)
        ]


async def test_a_cancelled_compaction_is_left_to_its_thread_and_ended_by_close() -> None:
    env = GatedEnv()
    db = await gated(env, **TINY)
    for _ in range(3):
        content = await filled(db, 500)
        await db.flush()
    env.table.shut()
    task = asyncio.create_task(db.compact_range())
    left = asyncio.create_task(db.compact_range())
    await env.table.somebody()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task  # at once: the gate is still shut
    closing = asyncio.create_task(db.close())
    await turns()
    env.table.open()
    await closing
    with pytest.raises(lsmkv.ClosedError):
        await left
    with reopened(env) as sync_db:
        sync_db.check()
        assert dict(sync_db) == content
