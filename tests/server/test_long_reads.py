"""Reads that take long run in a thread, on what was written before them."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from serving import Client, an_engine, parsed

from lsmkv.server import Server
from lsmkv.server.engine import Engine

MANY = 1000


@asynccontextmanager
async def hurried_engine(**settings: Any) -> AsyncIterator[Engine]:
    """An engine whose reads leave the loop after some hundred records, however fast they are."""
    with an_engine(**settings) as engine:
        engine.schedule = asyncio.get_running_loop().call_soon
        client = Client(engine)
        numbers = [b"%04d" % number for number in range(MANY)]
        pairs = [word for number in numbers for word in (number, number)]
        client(b"HSET", b"hash", *pairs)
        client(b"SADD", b"set", *numbers)
        client(b"RPUSH", b"list", *numbers)
        client(b"ZADD", b"sorted", *pairs)
        client(b"MSET", *pairs)
        for number in numbers:
            client(b"XADD", b"stream", b"%d-1" % (int(number) + 1), b"field", number)
        engine.commit()
        client.received()
        engine.reads.in_loop = -1.0
        yield engine
        await engine.reads.drain()


async def answer(client: Client) -> Any:
    """What a client gets once its read has ended."""
    sent: list[bytes] = []
    client.session.send = sent.append
    while client.session.postponed:
        await asyncio.sleep(0)
    client.engine.commit()
    (reply,) = parsed(b"".join(sent))
    return reply


@pytest.mark.parametrize(
    "line",
    [
        "HGETALL hash",
        "SMEMBERS set",
        "LRANGE list 0 -1",
        "ZRANGE sorted 0 -1 WITHSCORES",
        "KEYS *",
        "XREAD STREAMS stream 0",
        "XRANGE stream - +",
        "SUNION set set",
        "SORT_RO list ALPHA DESC",
        "SORT list ALPHA DESC",
        "HGETALL list",
    ],
)
def test_the_reply_is_that_of_a_read_in_the_loop(line: str) -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            client = Client(engine)
            left = client(line) is None
            assert left == client.session.postponed == (line != "HGETALL list")
            engine.reads.in_loop = 100.0
            if left:
                expected = Client(engine)(line)
                assert await answer(client) == expected is not None

    asyncio.run(main())


def test_a_read_sees_what_was_written_before_it_and_nothing_later() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            client, other = Client(engine), Client(engine)
            assert client("HSET hash 0000 changed") == 0
            assert client("HGETALL hash") is None
            other.plays(("HSET hash 0001 later", 0), ("DEL set", 1), ("FLUSHALL", b"OK"))
            found = await answer(client)
            assert found[:4] == [b"0000", b"changed", b"0001", b"0001"]
            assert len(found) == 2 * MANY

    asyncio.run(main())


def test_a_read_that_may_block_runs_in_the_loop() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            client = Client(engine)
            assert len(client("XREAD BLOCK 0 STREAMS stream 0")[0][1]) == MANY
            assert client("XREAD BLOCK 0 STREAMS stream $") is None
            assert client.session.wait is not None
            engine.waits.unblock(client.session, error=False)

    asyncio.run(main())


def test_a_read_has_the_rights_of_its_user() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            client = Client(engine)
            client("ACL SETUSER ann on nopass ~* +@all")
            client("AUTH ann password")
            client("ACL SETUSER default resetkeys ~list")
            assert client("SORT_RO list BY nosort GET *") is None
            assert len(await answer(client)) == MANY

    asyncio.run(main())


def test_a_transaction_and_a_script_read_in_the_loop() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            client = Client(engine)
            for line in ("MULTI", "HLEN hash", "HGETALL hash"):
                client(line)
            assert len(client("EXEC")[1]) == 2 * MANY
            engine.reads.in_loop = 100.0
            client("HSET", "few", *[b"%d" % number for number in range(600)])
            engine.reads.in_loop = -1.0
            assert client("EVAL \"return #redis.call('hgetall','few')\" 0") == 600

    asyncio.run(main())


def test_a_client_that_leaves_ends_its_read() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            clients = [Client(engine) for _ in range(5)]
            for client in clients:
                client("HGETALL hash")
                engine.close_session(client.session)
        assert not any(client.session.out for client in clients)

    asyncio.run(main())


def test_replies_of_a_pipeline_keep_their_order(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        server.engine.reads.in_loop = -1.0
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        words = b" ".join(b"%04d" % number for number in range(MANY))
        writer.write(
            b"SADD set %b\r\nSMEMBERS set\r\nSCARD set\r\nSMEMBERS set\r\nPING\r\n" % words
        )
        elements = b"".join(b"$4\r\n%04d\r\n" % number for number in range(MANY))
        members = b"*1000\r\n" + elements
        assert await reader.readexactly(7) == b":1000\r\n"
        for expected in (members, b":1000\r\n", members, b"+PONG\r\n"):
            assert await reader.readexactly(len(expected)) == expected
        writer.close()

    runner.run(main())


def test_a_server_that_ends_answers_its_reads(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        server.engine.reads.in_loop = -1.0
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        words = b" ".join(b"%04d" % number for number in range(MANY))
        writer.write(b"SADD set %b\r\nSMEMBERS set\r\n" % words)
        assert await reader.readexactly(7) == b":1000\r\n"
        await server.stop()
        assert len(await reader.read()) == 7 + 10 * MANY
        writer.close()

    runner.run(main())


def test_an_error_of_a_read_in_a_thread_is_answered() -> None:
    async def main() -> None:
        async with hurried_engine(slowlog_slower_than=0) as engine:
            client = Client(engine)
            engine.reads.in_loop = 100.0
            client(b"RPUSH", b"words", *[b"x%04d" % number for number in range(MANY)])
            engine.reads.in_loop = -1.0
            assert client("SORT_RO words") is None
            assert await answer(client) == "ERR One or more scores can't be converted into double"
            assert client("SLOWLOG GET 1")[0][3] == [b"SORT_RO", b"words"]

    asyncio.run(main())


def test_a_read_without_a_loop_runs_to_its_end() -> None:
    with an_engine() as engine:
        engine.reads.in_loop = -1.0
        client = Client(engine)
        client(b"SADD", b"set", *[b"%d" % number for number in range(MANY)])
        assert len(client("SMEMBERS set")) == MANY


@pytest.mark.parametrize(
    "line", ["XRANGE stream - +", "GEOSEARCHSTORE new geo FROMLONLAT 0 0 BYBOX 40000 20000 km"]
)
def test_no_garbage_is_collected_in_a_thread(line: str) -> None:
    async def main() -> None:
        collecting: set[str] = set()

        def note(phase: str, info: dict[str, int]) -> None:
            collecting.add(threading.current_thread().name[:5])

        async with hurried_engine() as engine:
            client = Client(engine)
            engine.reads.in_loop = 100.0
            for number in range(MANY):
                client(f"GEOADD geo {number % 180} {number % 80} {number}")
            engine.reads.in_loop = -1.0
            gc.callbacks.append(note)
            try:
                client(line)
                assert client.session.postponed
                await answer(client)
            finally:
                gc.callbacks.remove(note)
            assert "lsmkv" not in collecting
            assert gc.isenabled()

    asyncio.run(main())
