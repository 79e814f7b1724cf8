"""The backend for aiocache."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from cache_users import CacheUser
from plain_values import PLAIN
from processes import python

pytest.importorskip("aiocache")

from aiocache import cached
from aiocache.lock import OptimisticLock, OptimisticLockError, RedLock

from lsmkv.cache.aiocache import LsmkvCache


def test_its_methods_do_what_those_of_aiocache_do(tmp_path: Path) -> None:
    async def main() -> None:
        async with LsmkvCache(tmp_path / "c", {"shared": False}, namespace="ns:") as cache:
            assert await cache.set("a", 1)
            assert await cache.get("a") == 1
            assert await cache.get("x", default=7) == 7
            assert cache.cache["ns:a"] == 1
            with pytest.raises(ValueError, match="already exists"):
                await cache.add("a", 2)
            await cache.add("b", [2], ttl=100)
            assert await cache.multi_get(["a", "b", "x"]) == [1, [2], None]
            await cache.multi_set([("c", 3), ("d", 4)])
            assert await cache.exists("c")
            assert await cache.delete("c") == 1
            assert await cache.delete("c") == 0
            assert await cache.increment("n", 2) == 2
            await cache.set("text", "x")
            with pytest.raises(TypeError):
                await cache.increment("text")
            assert await cache.expire("b", 50)
            assert not await cache.expire("x", 50)
            assert await cache.raw("get", "ns:d") == 4
            await cache.set("plain", PLAIN)
            assert await cache.get("plain") == PLAIN
            cache.cache["other"] = 1
            await cache.clear(namespace="ns:")
            assert list(cache.cache) == ["other"]
            await cache.clear()
            cache.namespace = ""
            await cache.clear()
            assert len(cache.cache) == 0

    asyncio.run(main())


def test_locks_and_the_decorator(tmp_path: Path) -> None:
    async def main() -> None:
        cache = LsmkvCache(tmp_path / "c")
        async with RedLock(cache, "k", lease=10):
            await cache.set("k", 1)
        async with OptimisticLock(cache, "k") as lock:
            await cache.set("k", 2)
            with pytest.raises(OptimisticLockError):
                await lock.cas(3)
        async with OptimisticLock(cache, "k") as lock:
            await lock.cas(3)
        assert await cache.get("k") == 3
        calls: list[int] = []

        async def work(number: int) -> int:
            calls.append(number)
            return number

        decorated = cached(ttl=60)(work)
        decorated.cache = cache
        assert [await decorated(1), await decorated(1)] == [1, 1]
        assert calls == [1]
        await cache.close()

    asyncio.run(main())


def test_a_token_fails_once_another_process_has_written(tmp_path: Path) -> None:
    """Two processes add by a token, and two by increments: no addition is lost."""
    with contextlib.ExitStack() as ending:
        others = [CacheUser(tmp_path / "cache") for _ in range(4)]
        for number, one in enumerate(others):
            ending.callback(one.kill)
            one(f"""
import asyncio
import contextlib
from lsmkv.cache.aiocache import LsmkvCache
async def add(backend):
    await backend.increment("n", 0)
    added = 0
    for _ in range(100):
        if {number} < 2:
            await backend.increment("n")
            added += 1
        else:
            token = await backend._gets("n")
            added += await backend._set("n", token + 1, _cas_token=token)
    await backend.close()
    return added
""")
        for one in others:
            one.ask("result = asyncio.run(add(LsmkvCache(cache.directory)))")
        added = [one.answer() for one in others]
        assert added[:2] == [100, 100]
        assert others[0]("result = cache['n']") == sum(added)


def test_without_aiocache_the_error_says_what_to_install() -> None:
    script = """
import sys
sys.modules["aiocache"] = None
try:
    import lsmkv.cache.aiocache
except ImportError as error:
    print(error)
"""
    assert python(script).stdout == "lsmkv.cache.aiocache needs it: pip install aiocache\n"
