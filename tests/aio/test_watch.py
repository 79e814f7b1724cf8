"""One thread in which all tasks of a store wait for the next write."""

from __future__ import annotations

import asyncio

import pytest

import lsmkv
from lsmkv import aio


async def test_any_number_of_tasks_wait_and_calls_go_on() -> None:
    async with aio.DB(":memory:") as db:
        waiting = [asyncio.create_task(anext(db.batches(0))) for _ in range(20)]
        waiting_too = [asyncio.create_task(db.wait_for_change(0)) for _ in range(20)]
        await asyncio.sleep(0.05)
        async with asyncio.timeout(5):
            assert await db.get(b"k") is None
            await db.put(b"k", b"v")
            for one in await asyncio.gather(*waiting):
                assert one.operations == [(b"k", b"v")]
            assert await asyncio.gather(*waiting_too) == [1] * 20


async def test_a_cancelled_wait_disturbs_no_other() -> None:
    async with aio.DB(":memory:") as db:
        first = asyncio.create_task(db.wait_for_change(0))
        second = asyncio.create_task(db.wait_for_change(0))
        await asyncio.sleep(0.05)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await db.put(b"k", b"v")
        assert await second == 1
        assert await db.wait_for_change(1, timeout=0.01) == 1
        assert await db.wait_for_change(1, timeout=0) == 1


async def test_a_close_ends_all_waits() -> None:
    db = await aio.DB(":memory:")
    waiting = [asyncio.create_task(db.wait_for_change(0)) for _ in range(3)]
    await asyncio.sleep(0.05)
    await db.close()
    for one in waiting:
        with pytest.raises(lsmkv.ClosedError):
            await one
