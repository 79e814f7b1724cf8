"""``max-disk``: compaction, eviction, and commands that are refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest
from serving import Client

from lsmkv import MemoryEnv
from lsmkv.server import Server
from lsmkv.server.disk_limit import DiskLimit

OOM = "OOM command not allowed when used memory > 'maxmemory'."


class Limited:
    """A server with a limit that is looked at when a test says so."""

    def __init__(self, server: Server) -> None:
        self.engine = server.engine
        self.client = Client(server.engine)
        self.limit = DiskLimit(server.engine)

    async def look(self) -> None:
        await asyncio.sleep(0)  # the tick is written
        self.limit._rests_until = 0.0
        await self.limit.look()
        await asyncio.sleep(0)

    async def fill(self, start: int, count: int) -> None:
        for number in range(start, start + count):
            self.client("SET", f"k{number:05}", random.randbytes(1000))
            if number % 100 == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(0)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def served(**options: Any) -> Server:
    return Server("/db", port=0, env=MemoryEnv(), **options)


def test_without_eviction_growth_is_refused(runner: asyncio.Runner) -> None:
    async def main() -> None:
        async with served(max_disk="1mb") as server:
            limited = Limited(server)
            client = limited.client
            await limited.fill(0, 900)
            await limited.look()
            assert client("SET a 1") == b"OK"
            await limited.fill(900, 300)
            await limited.look()
            for request in (
                "SET a 1",
                "LPUSH l a",
                "EVAL return(redis.call('set',KEYS[1],'1')) 1 a",
            ):
                assert client(*request.split()).startswith(OOM)
            client("MULTI")
            assert client("INCR a") == OOM
            assert client("EXEC").startswith("EXECABORT")
            assert client("GET k00001") is not None
            assert b"disk_full:1" in client("INFO lsmkv")
            await limited.look()
            assert limited.engine.full
            assert client("DEL " + " ".join(f"k{number:05}" for number in range(400))) == 400
            await limited.look()
            assert client("SET a 1") == b"OK"
            client("CONFIG SET maxmemory 1")
            await limited.look()
            assert client("SET a 1") == OOM
            client("CONFIG SET max-disk 0")
            await limited.look()
            assert client("SET a 1") == b"OK"

    runner.run(main())


def test_what_was_overwritten_is_compacted_and_nothing_evicted(runner: asyncio.Runner) -> None:
    async def main() -> None:
        async with served(max_disk=2**20, maxmemory_policy="allkeys-lru") as server:
            limited = Limited(server)
            for _ in range(5):
                await limited.fill(0, 500)
            assert limited.limit.size > 2**20
            await limited.look()
            assert limited.limit.size < 0.6 * 2**20
            assert limited.engine.space.evicted == 0
            assert not limited.engine.full

    runner.run(main())


def test_a_cache_stays_within_its_limit(runner: asyncio.Runner) -> None:
    async def main() -> None:
        async with served(max_disk=2**20, maxmemory_policy="allkeys-lru") as server:
            limited = Limited(server)
            for start in range(0, 4000, 200):
                await limited.fill(start, 200)
                limited.client("GET k00000")
                await limited.look()
                assert limited.limit.size < 1.45 * 2**20
                assert not limited.engine.full
            assert limited.client("GET k00000") is not None
            assert 500 < limited.client("DBSIZE") < 1300
            assert f"evicted_keys:{limited.engine.space.evicted}" in str(
                limited.client("INFO stats")
            )

    runner.run(main())


def test_if_nothing_can_be_evicted_growth_is_refused(runner: asyncio.Runner) -> None:
    async def main() -> None:
        async with served(max_disk=2**20, maxmemory_policy="volatile-lru") as server:
            limited = Limited(server)
            await limited.fill(0, 1200)
            await limited.look()
            assert limited.client("SET a 1") == OOM

    runner.run(main())


def test_far_beyond_the_limit_growth_is_refused_until_it_is_compacted(
    runner: asyncio.Runner,
) -> None:
    async def main() -> None:
        async with served(max_disk=2**20, maxmemory_policy="allkeys-lru") as server:
            limited = Limited(server)
            await limited.fill(0, 1200)
            await limited.look()
            await limited.fill(1200, 700)
            await asyncio.sleep(0)
            looking = asyncio.create_task(limited.look())
            while not limited.engine.full:
                assert not looking.done()
                await asyncio.sleep(0)
            assert limited.client("SET a 1") == OOM
            await looking
            assert limited.client("SET a 1") == b"OK"

    runner.run(main())


def test_the_server_looks_by_itself(runner: asyncio.Runner) -> None:
    async def main() -> None:
        async with served(max_disk=2**20) as server:
            limited = Limited(server)
            await limited.fill(0, 1200)
            while limited.client("SET a 1") != OOM:
                await asyncio.sleep(0.1)

    runner.run(main())


@pytest.mark.parametrize(
    "options", [{"max_disk": "much"}, {"max_disk": -1}, {"maxmemory_policy": "lru"}]
)
def test_invalid_limits(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"size|at least|one of"):
        served(**options)
