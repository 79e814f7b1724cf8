"""Iterators over committed batches that wait for the next one without blocking the event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from others import Other

import lsmkv
from lsmkv import aio
from lsmkv.shared.system.local import SHARES


async def test_it_waits_for_the_next_batch() -> None:
    async with aio.DB(":memory:") as db:
        found: list[bytes] = []

        async def follow() -> None:
            async for batch in db.batches(0):
                found.extend(key for key, _ in batch.operations)
                if found[-1] == b"last":
                    return

        following = asyncio.create_task(follow())
        for n in range(600):
            await db.put(b"%d" % n, b"v")
        await asyncio.sleep(0.02)
        await db.put(b"last", b"v")
        await following
        assert found == [b"%d" % n for n in range(600)] + [b"last"]


async def test_batches_of_one_trip_come_in_their_order() -> None:
    async with aio.DB(":memory:") as db:
        for n in range(600):
            await db.put(b"%d" % n, b"v")
        batches = db.batches(0)
        assert [(await anext(batches)).sequence for _ in range(600)] == list(range(1, 601))


async def test_a_cancelled_step_loses_nothing() -> None:
    async with aio.DB(":memory:") as db:
        batches = db.batches(0)
        for n in range(200):
            step = asyncio.create_task(anext(batches))
            await asyncio.sleep(0.0001 * (n % 5))
            await db.put(b"%d" % n, b"v")
            step.cancel()
            try:
                assert (await step).sequence == batches.sequence
            except asyncio.CancelledError:
                pass
            missing = batches.sequence
            while missing <= n:
                missing += 1
                assert (await anext(batches)).sequence == missing


async def test_a_store_that_is_closed() -> None:
    db = await aio.DB(":memory:")
    batches = db.batches(0)
    step = asyncio.create_task(anext(batches))
    await asyncio.sleep(0.05)
    await db.close()
    with pytest.raises(lsmkv.ClosedError):
        await step
    with pytest.raises(lsmkv.ClosedError):
        await anext(batches)


async def test_an_iterator_that_is_closed() -> None:
    async with aio.DB(":memory:") as db:
        async with db.batches(0) as batches:
            await db.put(b"k", b"v")
            assert (await anext(batches)).last_sequence == 1
            assert repr(batches) == "<lsmkv.aio.Batches after write 1>"
        assert batches.closed
        with pytest.raises(lsmkv.ClosedError):
            await anext(batches)


async def test_it_begins_with_its_block() -> None:
    async with aio.DB(":memory:") as db:
        await db.put(b"before", b"v")
        async with db.batches() as batches:
            assert batches.sequence == 1
            await db.put(b"k", b"v")
            assert (await anext(batches)).operations == [(b"k", b"v")]


async def test_errors_come_with_the_first_step() -> None:
    async with aio.DB(":memory:") as db:
        await db.put(b"k", b"v")
        await db.flush()
        with pytest.raises(lsmkv.SequenceTooOldError):
            await anext(db.batches(0))


@pytest.mark.skipif(not SHARES, reason="this system shares no store")
async def test_a_member_follows_across_owners(tmp_path: Path) -> None:
    path = tmp_path / "store"
    owner = Other(path, create_if_missing=True)
    second = Other(path)
    try:
        async with aio.SharedDB(path, may_own=False) as db:
            batches = db.batches(0)
            step = asyncio.create_task(anext(batches))
            await asyncio.sleep(0.05)
            owner("db.put(b'a', b'1')")
            assert (await step).operations == [(b"a", b"1")]
            step = asyncio.create_task(anext(batches))
            await asyncio.sleep(0.05)
            owner.kill()
            second("db.put(b'b', b'1')")
            assert (await step).operations == [(b"b", b"1")]
    finally:
        owner.kill()
        second.kill()
