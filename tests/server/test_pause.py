"""CLIENT PAUSE and UNPAUSE, in a server with connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import pytest
import redis.asyncio

from lsmkv.server import Server


def connect(server: Server) -> redis.asyncio.Redis:
    return redis.asyncio.Redis(port=server.port, single_connection_client=True)


async def waits(started: asyncio.Task[Any]) -> bool:
    done, _ = await asyncio.wait([started], timeout=0.1)
    return not done


def begin(call: Awaitable[Any]) -> asyncio.Task[Any]:
    return asyncio.ensure_future(call)


def test_writes_wait_and_reads_go_on(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        async with connect(server) as one, connect(server) as other, connect(server) as third:
            await one.set("k", 1)
            await one.execute_command("CLIENT", "PAUSE", 100_000, "WRITE")
            writes = [begin(other.incr("k")), begin(third.publish("c", "m"))]
            assert [await waits(write) for write in writes] == [True, True]
            assert await one.get("k") == b"1"
            assert (await one.info("clients"))["blocked_clients"] == 2
            assert sum("b" in client["flags"] for client in await one.client_list()) == 2
            await one.execute_command("CLIENT", "UNPAUSE")
            assert await asyncio.gather(*writes) == [2, 0]
            assert await one.incr("k") == 3

    runner.run(main())


def test_everything_waits_until_the_time_has_passed(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        async with connect(server) as one, connect(server) as other:
            await one.ping()
            await other.ping()
            started = time.monotonic()
            await one.execute_command("CLIENT", "PAUSE", 300)
            await other.ping()
            assert time.monotonic() - started >= 0.299
            await one.ping()

    runner.run(main())


def test_a_pause_gets_only_longer_and_stricter(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        async with connect(server) as one:
            started = time.monotonic()
            await one.execute_command("CLIENT", "PAUSE", 400, "WRITE")
            await one.execute_command("CLIENT", "PAUSE", 1, "ALL")
            await one.get("k")
            assert time.monotonic() - started >= 0.399

    runner.run(main())


def test_a_transaction_waits_as_soon_as_it_is_to_write(
    runner: asyncio.Runner, server: Server
) -> None:
    async def main() -> None:
        async with connect(server) as one, connect(server) as other:
            await other.execute_command("MULTI")
            await other.execute_command("SET", "k", "v")
            await one.execute_command("CLIENT", "PAUSE", 100_000, "WRITE")
            ended = begin(other.execute_command("EXEC"))
            assert await waits(ended)
            await one.execute_command("CLIENT", "UNPAUSE")
            assert await ended == [b"OK"]

    runner.run(main())


def test_pipelines_keep_their_order(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        async with connect(server) as one:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            await one.execute_command("CLIENT", "PAUSE", 100_000, "WRITE")
            writer.write(b"GET n\r\nINCR n\r\nGET n\r\nINCR n\r\nGET n\r\n")
            assert await reader.readline() == b"$-1\r\n"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readline(), 0.1)
            await one.execute_command("CLIENT", "UNPAUSE")
            rest = [await reader.readline() for _ in range(6)]
            assert rest == [b":1\r\n", b"$1\r\n", b"1\r\n", b":2\r\n", b"$1\r\n", b"2\r\n"]
            writer.close()

    runner.run(main())


def test_a_client_that_leaves_meanwhile_writes_nothing(
    runner: asyncio.Runner, server: Server
) -> None:
    async def main() -> None:
        async with connect(server) as one:
            await one.execute_command("CLIENT", "PAUSE", 100_000, "WRITE")
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"SET gone 1\r\n")
            await asyncio.sleep(0.05)
            writer.transport.abort()
            while (await one.info("clients"))["blocked_clients"]:
                await asyncio.sleep(0.01)
            await one.execute_command("CLIENT", "UNPAUSE")
            assert await one.get("gone") is None

    runner.run(main())


def test_keys_do_not_expire_meanwhile(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        async with connect(server) as one:
            await one.set("k", "v", px=20)
            await one.execute_command("CLIENT", "PAUSE", 100_000, "WRITE")
            await asyncio.sleep(0.25)
            assert await one.get("k") is None
            assert await one.dbsize() == 1
            await one.execute_command("CLIENT", "UNPAUSE")
            while await one.dbsize():
                await asyncio.sleep(0.01)

    runner.run(main())


def test_a_server_that_ends_runs_what_has_waited(runner: asyncio.Runner) -> None:
    async def main() -> None:
        server = Server(":memory:", port=0)
        await server.start()
        async with connect(server) as one, connect(server) as other:
            await one.execute_command("CLIENT", "PAUSE", 100_000, "WRITE")
            write = begin(other.set("k", "v"))
            assert await waits(write)
            await server.stop()
            assert await write

    runner.run(main())
