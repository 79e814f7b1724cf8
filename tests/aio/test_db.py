"""The store of lsmkv.aio: the same answers as the store itself, opened and closed in a loop."""

from __future__ import annotations

import asyncio
import pathlib

import pytest
from gates import PATIENCE, TINY, GatedEnv, cancel_midway, gated, reopened, turns

import lsmkv
from lsmkv import aio
from lsmkv.testing.faulty import FaultyEnv


async def test_every_method_does_what_the_plain_one_does(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db"
    async with aio.open_db(path, create_if_missing=True, **TINY) as db:
        assert (db.path, db.name, db.closed) == (str(path), str(path), False)
        assert db.options.block_size == 64
        await db.put(b"a", bytearray(b"1"))
        await db.put(b"b", memoryview(b"2"), sync=True)
        await db.delete(b"a", sync=True)
        plain = lsmkv.WriteBatch()
        plain.put(b"c", b"3")
        await db.write(plain, sync=True)
        batch = db.write_batch()
        batch.append(plain)
        batch.delete(b"b")
        batch.put(b"d", b"4")
        assert len(batch) == 3
        assert batch.approximate_size() > 12
        await batch.write()
        batch.clear()
        assert len(batch) == 0
        assert await db.get(b"a") is None
        assert await db.get(b"a", 5) == 5
        assert await db.get(b"c", 5, verify_checksums=True, fill_cache=False) == b"3"
        assert await db.multi_get([b"d", b"x", b"c"]) == [b"4", None, b"3"]
        assert await db.contains(b"c")
        assert not await db.contains(b"b")
        assert await db.may_contain(b"c")
        assert (await db.explain(b"c")).found
        await db.sync()
        await db.flush()
        await db.compact_range()
        await db.compact_range(b"a", b"b")
        assert await db.verify() == []
        await db.check()
        await db.refresh()
        await db.checkpoint(tmp_path / "copy")
        assert await db.get_property("leveldb.num-files-at-level0") == "0"
        assert await db.get_property("nonsense") is None
        assert await db.approximate_size(b"a", b"z") > 0
        assert len(await db.approximate_sizes((b"a", b"b"), (b"b", b"z"))) == 2
        assert (await db.stats()).writes == 5
        assert [pair async for pair in db] == [(b"c", b"3"), (b"d", b"4")]
        assert [k async for k in db.iterator(reverse=True, include_value=False)] == [b"d", b"c"]
    assert db.closed
    assert repr(db) == f"<lsmkv.aio.DB {str(path)!r} (closed)>"
    for directory in (path, tmp_path / "copy"):
        with lsmkv.DB(directory) as sync_db:
            assert list(sync_db) == [(b"c", b"3"), (b"d", b"4")]


async def test_errors_of_opening_are_those_of_the_plain_store(tmp_path: pathlib.Path) -> None:
    with pytest.raises(lsmkv.NotFoundError):
        await aio.open_db(tmp_path / "none")
    with pytest.raises(TypeError, match="block_size"):
        await aio.open_db(":memory:", block_size="4k")  # type: ignore[arg-type]
    db = aio.DB(":memory:")
    assert db.closed
    with pytest.raises(lsmkv.ClosedError, match="not open"):
        await db.get(b"k")
    await db.close()
    async with db:
        with pytest.raises(ValueError, match="only once"):
            await db.open()
        for call in (db.get("k"), db.put(b"k", None), db.write(b"k")):  # type: ignore
            with pytest.raises(TypeError):
                await call
    await db.close()
    for closed in (db.get(b"k"), db.put(b"k", b"v"), db.compact_range(), db.stats()):
        with pytest.raises(lsmkv.ClosedError):
            await closed


def test_one_store_serves_several_loops_in_turn() -> None:
    db = aio.DB(":memory:")

    async def use(value: bytes) -> bytes | None:
        if db.closed:
            await db.open()
        before = await db.get(b"k")
        await db.put(b"k", value)
        return before

    assert asyncio.run(use(b"1")) is None
    assert asyncio.run(use(b"2")) == b"1"
    asyncio.run(db.close())


async def test_a_slow_disk_does_not_block_the_loop() -> None:
    env = GatedEnv()
    async with gated(env) as db:
        env.log.shut()
        slow = asyncio.create_task(db.put(b"k", b"v", sync=True))
        await env.log.somebody()
        await turns()
        assert not slow.done()
        assert await db.get(b"none") is None  # and other calls are served
        env.log.open()
        await slow
        assert await db.get(b"k") == b"v"


async def test_a_cancelled_put_has_happened_when_it_ends() -> None:
    env = GatedEnv()
    async with gated(env) as db:
        await cancel_midway(env.log, db.put(b"k", b"v", sync=True))
        assert await db.get(b"k") == b"v"
        await db.put(b"k", b"w", sync=True)
    with reopened(env) as sync_db:
        assert sync_db.get(b"k") == b"w"


async def test_a_timeout_does_not_reorder_writes() -> None:
    env = GatedEnv()
    async with gated(env) as db:
        env.log.shut()
        put = asyncio.create_task(db.put(b"k", b"1", sync=True))
        await env.log.somebody()
        late = asyncio.create_task(asyncio.wait_for(put, 0.01))
        await asyncio.sleep(0.05)
        env.log.open()
        with pytest.raises(TimeoutError):
            await late
        await db.put(b"k", b"2")
        assert await db.get(b"k") == b"2"


async def test_an_error_in_a_cancelled_write_is_not_lost_on_the_store() -> None:
    env = FaultyEnv()
    db = await aio.open_db("db", env=env, create_if_missing=True)
    await db.put(b"j", b"v")  # so that closing has something to sync
    env.fail_at(1, calls={"sync"}, sticky=True)
    task = asyncio.create_task(db.put(b"k", b"v", sync=True))
    await turns(1)
    task.cancel()
    with pytest.raises((asyncio.CancelledError, lsmkv.IOError)):
        await task
    with pytest.raises(lsmkv.IOError):
        await db.close()  # the write ends first, if it was begun


async def test_a_cancelled_open_closes_again() -> None:
    env = GatedEnv()
    env.table.shut()
    db = gated(env)
    await cancel_midway(env.table, db.open())
    assert db.closed
    with reopened(env):  # the lock was given up
        pass


async def test_a_cancelled_close_closes_whole() -> None:
    env = GatedEnv()
    db = await gated(env)
    await db.put(b"k", b"v")

    async def refused() -> None:
        with pytest.raises(lsmkv.ClosedError):
            await db.get(b"k")
        assert db.closed

    await cancel_midway(env.log, db.close(), refused())
    assert db.closed
    await db.close()
    with reopened(env) as sync_db:
        assert sync_db.get(b"k") == b"v"


@pytest.mark.parametrize("moment", range(4))
async def test_a_close_cancelled_early_still_closes(moment: int) -> None:
    for _ in range(20):
        db = await aio.open_db(":memory:")
        closing = asyncio.create_task(db.close())
        await turns(moment)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        if moment > 0:
            assert db.closed
        await db.close()
        assert db.closed


def test_tasks_cancelled_by_asyncio_run_leave_a_closed_store() -> None:
    """What ``asyncio.run`` does to the tasks that are left when it ends."""
    env = GatedEnv()

    async def worker() -> None:
        async with gated(env) as db:
            for i in range(10**9):
                await db.put(b"%09d" % i, b"", sync=True)

    async def main() -> None:
        task = asyncio.create_task(worker())
        env.log.shut()
        await env.log.somebody()
        env.log.open()
        assert not task.done()

    asyncio.run(main())
    with reopened(env) as sync_db:
        keys = list(sync_db.iterator(include_value=False))
    assert keys == [b"%09d" % i for i in range(len(keys))]
    assert keys


async def test_opening_waits_for_the_lock_and_the_loop_goes_on(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db"
    first = await aio.open_db(path, create_if_missing=True)
    opening = asyncio.ensure_future(aio.open_db(path, lock_timeout=PATIENCE).open())
    for _ in range(20):  # the loop goes on
        await asyncio.sleep(0.01)
    assert not opening.done()
    await first.close()
    async with await opening as second:
        with pytest.raises(lsmkv.LockedError):
            await aio.open_db(path)
        cancelled = asyncio.ensure_future(aio.open_db(path, lock_timeout=PATIENCE).open())
        await asyncio.sleep(0.1)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await second.put(b"k", b"v")
