"""Iterators of lsmkv.aio: the steps of the plain one, in chunks, whatever is cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from gates import TINY, GatedEnv, cancel_midway, filled, gated, turns
from hypothesis import given, settings
from hypothesis import strategies as st

import lsmkv
from lsmkv import aio
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.testing.faulty import FaultyEnv

STEPS = st.lists(
    st.sampled_from(
        ["next"] * 6 + ["prev"] * 6 + ["seek_to_start", "seek_to_stop", b"", b"11", b"20", b"41"]
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(
    STEPS,
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([{}, {"start": b"07"}, {"stop": b"31"}, {"prefix": b"1"}]),
    st.sampled_from([{}, {"include_value": False}, {"include_key": False, "include_value": False}]),
)
def test_an_iterator_moves_as_the_plain_iterator(
    steps: list[Any], chunk: int, reverse: bool, bounds: Any, shape: Any
) -> None:
    arguments = {**bounds, **shape, "reverse": reverse}

    async def main() -> None:
        env = MemoryEnv()
        with lsmkv.DB("db", env=env, create_if_missing=True, **TINY) as sync_db:
            for i in range(0, 40, 2):
                sync_db.put(b"%02d" % i, b"x" * 60)
            model = sync_db.iterator(**arguments)
            expected = [model_step(model, step) for step in steps]
        async with aio.open_db("db", env=env, **TINY) as db:
            iterator = db.iterator(chunk=chunk, **arguments)
            assert [await aio_step(iterator, step) for step in steps] == expected

    asyncio.run(main())


def model_step(iterator: lsmkv.Iterator, step: Any) -> Any:
    if isinstance(step, bytes):
        return iterator.seek(step)
    try:
        return getattr(iterator, step)()
    except StopIteration:
        return "the end"


async def aio_step(iterator: aio.Iterator, step: Any) -> Any:
    if isinstance(step, bytes):
        return await iterator.seek(step)
    try:
        return await getattr(iterator, step)()
    except StopAsyncIteration:
        return "the end"


@pytest.mark.parametrize("chunk", [1, 2, 99, 100, 101, 1000])
async def test_chunks_are_bounded_and_lose_nothing(chunk: int) -> None:
    async with aio.open_db(":memory:") as db:
        content = await filled(db)
        iterator = db.iterator(chunk=chunk)
        seen = []
        async for pair in iterator:
            seen.append(pair)
            assert len(iterator._chunk_entries) <= chunk
        assert seen == list(content.items())


async def test_chunks_are_bounded_in_bytes_too() -> None:
    async with aio.open_db(":memory:") as db:
        for i in range(8):
            await db.put(b"%d" % i, bytes(aio.iterator.CHUNK_BYTES // 2))
        iterator = db.iterator()
        count = 0
        async for _ in iterator:
            count += 1
            assert len(iterator._chunk_entries) <= 2
        assert count == 8


async def test_an_iterator_sees_the_store_as_of_its_first_trip() -> None:
    async with aio.open_db(":memory:") as db:
        content = await filled(db)
        async with db.iterator(chunk=3) as entered:
            seen = []
            async for key, value in db.iterator(chunk=3):
                await db.delete(key)
                seen.append((key, value))
            assert seen == list(content.items())
            assert [pair async for pair in entered] == seen
        assert [pair async for pair in db] == []


async def test_tasks_that_share_an_iterator_get_each_entry_once() -> None:
    async with aio.open_db(":memory:") as db:
        content = await filled(db)
        iterator = db.iterator(chunk=7, include_value=False)
        seen: list[bytes] = []

        async def take() -> None:
            async for key in iterator:
                seen.append(key)
                await turns(1)

        await asyncio.gather(*(take() for _ in range(5)))
        assert sorted(seen) == list(content)


def test_entries_before_a_damaged_block_are_returned() -> None:
    env = FaultyEnv()
    with lsmkv.DB("db", env=env, create_if_missing=True, **TINY) as sync_db:
        for i in range(200):
            sync_db.put(b"%04d" % i, b"x" * 50)
        sync_db.compact_range()

    def by_model(seen: list[bytes]) -> None:
        with lsmkv.DB("db", env=env, **TINY) as db:
            for key, _ in db.iterator(fill_cache=False):
                seen.append(key)
                if len(seen) == 50:
                    env.fail_at(30, calls={"read"}, sticky=True)

    async def by_aio(seen: list[bytes]) -> None:
        async with aio.open_db("db", env=env, **TINY) as db:
            async for key, _ in db.iterator(fill_cache=False, chunk=50):
                seen.append(key)
                if len(seen) == 50:
                    env.fail_at(30, calls={"read"}, sticky=True)

    expected: list[bytes] = []
    with pytest.raises(lsmkv.IOError):
        by_model(expected)
    env.heal()
    seen: list[bytes] = []
    with pytest.raises(lsmkv.IOError):
        asyncio.run(by_aio(seen))
    assert 50 < len(expected) < 200
    assert seen == expected


async def test_next_during_another_tasks_trip_waits_for_it() -> None:
    env = GatedEnv()
    async with gated(env, **TINY) as db:
        await filled(db)
        await db.flush()
        async with db.iterator(chunk=10, include_value=False, fill_cache=False) as iterator:
            await iterator.seek(b"0050")
            assert (await iterator.next(), await iterator.prev()) == (b"0050", b"0050")
            env.reads.shut()
            prev = asyncio.create_task(iterator.prev())
            await env.reads.somebody()
            following = asyncio.create_task(iterator.next())
            await turns()
            assert not following.done()
            env.reads.open()
            assert await prev == b"0049"
            assert await following == b"0049"


async def test_a_closed_iterator_raises_closed_error() -> None:
    async with aio.open_db(":memory:") as db:
        await filled(db)
        async with db.iterator(chunk=10) as iterator:
            assert await iterator.next() == (b"0000", b"v0")
            assert not iterator.closed
        await iterator.close()
        assert iterator.closed
        still_open = db.iterator(chunk=10)
        await still_open.next()
    for closed in (iterator, still_open):
        assert closed.closed
        with pytest.raises(lsmkv.ClosedError):
            await closed.next()
        with pytest.raises(lsmkv.ClosedError):
            await closed.prev()
        with pytest.raises(lsmkv.ClosedError):
            await closed.seek(b"x")
    await still_open.close()


async def test_a_cancelled_iteration_may_go_on() -> None:
    env = GatedEnv()
    async with gated(env) as db:
        content = await filled(db)
        await db.flush()
        seen: list[bytes] = []
        iterator = db.iterator(chunk=10, include_value=False, fill_cache=False)

        async def iterate() -> None:
            async for key in iterator:
                seen.append(key)

        await cancel_midway(env.reads, iterate())
        assert seen == []
        await iterate()
        assert seen == list(content)
        await iterator.seek_to_stop()
        await cancel_midway(env.reads, iterator.prev())
        assert await iterator.prev() == max(content)
        assert await iterator.next() == max(content)


async def test_a_cancelled_iteration_in_a_with_block_closes() -> None:
    env = GatedEnv()
    async with gated(env) as db:
        await filled(db)
        await db.flush()
        held: list[aio.Iterator] = []

        async def iterate() -> None:
            async with db.iterator(fill_cache=False) as iterator:
                held.append(iterator)
                async for _ in iterator:
                    pass

        await cancel_midway(env.reads, iterate())
        assert held[0].closed
        assert held[0]._iterator is None
        await db.put(b"k", b"v")


@pytest.mark.parametrize("patient", [True, False])
async def test_closing_an_iterator_waits_for_its_trip(patient: bool) -> None:
    env = GatedEnv()
    async with gated(env) as db:
        await filled(db)
        await db.flush()
        iterator = db.iterator(fill_cache=False)
        env.reads.shut()
        trip = asyncio.create_task(iterator.next())
        waiting = asyncio.create_task(iterator.next())
        await env.reads.somebody()
        closing = asyncio.create_task(iterator.close()) if patient else None
        hasty = asyncio.create_task(iterator.close())
        await turns()
        hasty.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hasty
        assert closing is None or not closing.done()
        env.reads.open()
        if closing is not None:
            await closing
        for task in (trip, waiting):
            with pytest.raises(lsmkv.ClosedError):
                await task
        assert iterator._iterator is None


@pytest.mark.parametrize("chunk", [1, 2, 256])
async def test_an_iterator_has_a_limit(chunk: int) -> None:
    async with aio.open_db(":memory:") as db:
        for n in range(9):
            await db.put(b"%d" % n, b"")
        keys = db.iterator(limit=3, chunk=chunk, include_value=False)
        assert [key async for key in keys] == [b"0", b"1", b"2"]
        assert await keys.prev() == b"2"
        assert [key async for key in keys] == [b"2"]
        await keys.seek(b"5")
        assert [key async for key in keys] == [b"5", b"6", b"7"]
