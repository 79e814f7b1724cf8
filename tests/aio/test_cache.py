"""The cache for asyncio: what :class:`lsmkv.Cache` does, without blocking the loop."""

from __future__ import annotations

import asyncio
import io
import pickle
from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv import aio


def opened(**arguments: Any) -> aio.Cache:
    return aio.Cache(":memory:", shared=False, **arguments)


async def test_one_key() -> None:
    async with opened() as cache:
        assert await cache.set("k", 1, 60, tag="t")
        assert not await cache.add("k", 2)
        assert await cache.contains("k")
        value, expiry, tag = await cache.get("k", expire_time=True, tag=True)
        assert (value, tag) == (1, "t")
        assert expiry > 60
        assert await cache.touch("k")
        assert await cache.incr("k", 2) == 3
        assert await cache.decr("k") == 2
        assert await cache.pop("k", tag=True) == (2, "t")
        assert not await cache.delete("k")


async def test_queues_and_order() -> None:
    async with opened() as cache:
        first = await cache.push("a")
        await cache.push("b", side="front", prefix="q")
        assert await cache.peek() == (first, "a")
        assert await cache.peekitem() == ("q-500000000000000", "b")
        assert await cache.pull("q") == ("q-500000000000000", "b")
        for number in range(600):
            await cache.set(-number, number)
        assert [key async for key in cache] == [first, *(-number for number in range(600))]
        assert [key async for key in cache.iterkeys()][:2] == [-599, -598]


async def test_all_entries() -> None:
    async with opened(cull_limit=0) as cache:
        await cache.set("a", 1, tag="t")
        await cache.set("b", 2, expire=-1)
        assert await cache.count() == 2
        assert await cache.volume() > 0
        assert await cache.check() == []
        assert await cache.stats() == (0, 0)
        assert await cache.reset("cull_limit", 3) == 3
        assert await cache.reset("cull_limit") == 3
        assert await cache.expire() == await cache.evict("t") == 1
        assert await cache.cull() == await cache.clear() == 0


async def test_functions() -> None:
    calls: list[int] = []

    async def twice(number: int) -> int:
        await asyncio.sleep(0)
        calls.append(number)
        return number * 2

    def half(number: int) -> float:
        calls.append(number)
        return number / 2

    async with opened() as cache:
        waits, plain = cache.memoize("twice")(twice), cache.memoize("half", expire=0)(half)
        assert [await waits(2), await waits(2), await plain(2), await plain(2)] == [4, 4, 1, 1]
        assert calls == [2, 2, 2]
        assert await cache.get(waits.__cache_key__(2)) == 4  # type: ignore[attr-defined]
        with pytest.raises(TypeError, match="parentheses"):
            cache.memoize(half)  # type: ignore[arg-type]


async def test_one_task_computes_for_all() -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    calls: list[int] = []

    async def slow(number: int) -> int:
        calls.append(number)
        begun.set()
        await go.wait()
        return number

    async with opened() as cache:
        computed = cache.memoize("slow", lock=True)(slow)
        tasks = [asyncio.create_task(computed(1))]  # type: ignore[arg-type]
        await begun.wait()
        tasks += [asyncio.create_task(computed(1)) for _ in range(5)]  # type: ignore[arg-type]
        go.set()
        assert await asyncio.gather(*tasks) == [1] * 6
        assert calls == [1]


async def test_a_locked_function_takes_arguments_without_a_hash() -> None:
    async def total(numbers: list[int]) -> int:
        return sum(numbers)

    async with opened() as cache:
        computed = cache.memoize("total", lock=True)(total)
        assert [await computed([1, 2]), await computed([1, 2]), await computed([4])] == [3, 3, 4]


async def test_transactions_of_tasks_follow_each_other() -> None:
    async with opened() as cache:
        inside = [0]

        async def add(number: int) -> None:
            async with cache.transact(), cache.transact():
                inside[0] += 1
                assert inside[0] == 1
                total = await cache.get("total", 0)
                await cache.set("total", total + number)
                inside[0] -= 1

        await asyncio.gather(*map(add, range(10)))
        assert await cache.get("total") == 45
        with pytest.raises(KeyError):
            async with cache.transact():
                raise KeyError
        waiting, held = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with cache.transact():
                held.set()
                await waiting.wait()

        task = asyncio.create_task(hold())
        await held.wait()
        other = asyncio.create_task(add(1))
        await asyncio.sleep(0)
        other.cancel()
        waiting.set()
        await task
        with pytest.raises(asyncio.CancelledError):
            await other
        await add(5)
        assert await cache.get("total") == 50


async def test_a_transaction_that_passes_its_limit_says_so() -> None:
    async with opened() as cache:

        async def enter() -> None:
            async with cache.transact(limit=0.001):
                await asyncio.create_task(come_after())

        async def come_after() -> None:
            async with cache.transact():
                pass

        with pytest.raises(lsmkv.ConflictError, match="limit"):
            await enter()


async def test_files() -> None:
    async with opened() as cache:
        assert await cache.set("k", io.BytesIO(bytes(100_000)), read=True)
        with await cache.read("k") as file:
            assert len(file.read()) == 100_000
        with pytest.raises(KeyError):
            await cache.read("none")


async def test_opening_and_closing(tmp_path: Path) -> None:
    cache = aio.Cache(tmp_path, shared=False)
    assert cache.closed
    with pytest.raises(lsmkv.ClosedError):
        await cache.get("k")
    assert await cache is cache
    assert cache.directory == str(tmp_path)
    assert repr(cache) == f"<lsmkv.aio.Cache {str(tmp_path)!r}>"
    with pytest.raises(ValueError, match="only once"):
        await cache.open()
    async with cache:
        await cache.set("k", 1)
    assert cache.closed
    with pytest.raises(lsmkv.ClosedError):
        await cache.get("k")
    await cache.close()
    with pytest.raises(TypeError, match="event loop"):
        pickle.dumps(cache)


async def test_an_opening_that_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = aio.Cache(tmp_path / "file", shared=False)
    with pytest.raises(OSError, match="file"):
        await cache.open()
    assert cache.closed
