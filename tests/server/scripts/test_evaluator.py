"""Scripts that take long run beside the loop: others wait, then get BUSY; SCRIPT KILL."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

import pytest
from busy_scripts import BUSY, KILLED, busy, over_limit
from wire import Wire, request

from lsmkv.server import Server

pytest.importorskip("lupa")

FOREVER = "EVAL 'while true do end' 0"


def test_others_get_busy_until_the_script_is_killed(
    runner: asyncio.Runner, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with busy(server, FOREVER) as (one, other):
            await over_limit(server)
            assert await other("GET k") == BUSY
            assert await other("PING") == BUSY
            assert await other("SHUTDOWN") == BUSY
            await other.plays(("MULTI", b"OK"), ("SET k v", BUSY), ("DISCARD", b"OK"))
            await other.plays(
                ("MULTI", b"OK"), ("EXEC", f"EXECABORT Transaction discarded because of: {BUSY}")
            )
            await other.plays(("WATCH k", b"OK"), ("UNWATCH", b"OK"), ("RESET", b"RESET"))
            assert await other("SCRIPT KILL") == b"OK"
            assert (await one.reply()).startswith(KILLED)
            await other.plays(
                ("SET k v", b"OK"),
                ("SCRIPT KILL", "NOTBUSY No scripts in execution right now."),
            )
            await one.plays(("GET k", b"v"), ("EVAL 'return 5' 0", 5))

    runner.run(main())
    assert "has run for 30 ms" in caplog.text
    caplog.clear()


@pytest.mark.parametrize(
    "script",
    [
        "return string.find(string.rep(\\'a\\', 250), \\'.-.-.-.-b\\')",
        "local t = {} for i = 1, 30 do t = {t, t} end return t",
        "return load(gcinfo)",
    ],
)
def test_one_call_of_the_libraries_is_killed(
    runner: asyncio.Runner, server: Server, script: str
) -> None:
    async def main() -> None:
        async with busy(server, f"EVAL '{script}' 0") as (one, other):
            await over_limit(server)
            assert await other("PING") == BUSY
            assert await other("SCRIPT KILL") == b"OK"
            assert (await one.reply()).startswith((KILLED, KILLED.partition(" script: ")[0]))

    runner.run(main())


@pytest.mark.parametrize("caught", ["", "pcall(function() return ('x'):rep(2e6):rep(3) end) "])
def test_a_script_that_needs_memory_begins_again_in_a_thread(
    runner: asyncio.Runner, server: Server, caught: str
) -> None:
    """An error that it catches is no reason to go on with less than it may have."""
    script = (
        "redis.call('incr', 'count') " + caught + "local s = ('x'):rep(1e6):rep(5)"
        " redis.call('set', 'large', s) return {redis.call('get', 'count'), #s}"
    )

    async def main() -> None:
        async with Wire(server) as one:
            assert await one(f'EVAL "{script}" 0') == [b"1", 5_000_000]
            await one.plays(("GET count", b"1"), ("STRLEN large", 5_000_000))

    runner.run(main())


def test_before_the_limit_others_wait(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        counting = "local n = 0 while n < 1e7 do n = n + 1 end redis.call('set', 'n', n) return n"
        async with busy(server, f'EVAL "{counting}" 0', limit=60_000) as (one, other):
            await other.send(request("INCR n") + request("PING"))
            started = time.monotonic()
            await asyncio.sleep(0.01)  # the loop goes on
            assert time.monotonic() - started < 5
            assert await one.reply() == 10_000_000
            assert [await other.reply(), await other.reply()] == [10_000_001, b"PONG"]

    runner.run(main())


@pytest.mark.parametrize("scripts", ["inline"])
def test_a_script_that_has_written_is_not_killed(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        script = (
            "redis.call('set', 'k', 1) while redis.call('exists', 'stop') == 0 do end return 'end'"
        )
        async with busy(server, f'EVAL "{script}" 0') as (_, other):
            await over_limit(server)
            assert (await other("SCRIPT KILL")).startswith("UNKILLABLE Sorry the script already")
            assert await other("SHUTDOWN") == BUSY
            await other.send(request("SHUTDOWN NOSAVE"))
            await server.serve_until_shutdown()
            started = time.monotonic()
            await server.stop()
            assert time.monotonic() - started < 5

    runner.run(main())


def test_what_an_ended_server_has_not_acknowledged_is_not_written(
    runner: asyncio.Runner, tmp_path: Path, scripts: str
) -> None:
    async def main() -> None:
        server = Server(tmp_path, port=0, scripts=scripts)
        await server.start()
        script = "redis.call('set', 'half', 1) while true do end"
        async with Wire(server) as one, Wire(server) as other:
            assert await other("SET before 1") == b"OK"
            await one.send(
                request("MULTI") + request("SET in-it 1") + request(f'EVAL "{script}" 0')
            )
            await one.send(request("EXEC"))
            while server.engine.busy is None:
                await asyncio.sleep(0.001)
            await server.stop()
        server = Server(tmp_path, port=0)
        async with server, Wire(server) as one:
            assert await one("EXISTS before half in-it") == 1

    runner.run(main())


def test_a_transaction_with_a_long_script_is_one_record(
    runner: asyncio.Runner, server: Server
) -> None:
    async def main() -> None:
        counting = "local n = 0 while n < 5e6 do n = n + 1 end return redis.call('incr', 'n')"
        async with Wire(server) as one, Wire(server) as other:
            for line in (
                "MULTI",
                "SET n 1",
                f'EVAL "{counting}" 0',
                f'EVAL "{counting}" 0',
                "INCR n",
            ):
                await one(line)
            writes = server.db.stats().log_writes
            await one.send(request("EXEC") + request("GET n"))
            while server.engine.busy is None:
                await asyncio.sleep(0.001)
            assert server.db.stats().log_writes == writes
            await other.send(request("GET n"))
            assert await one.reply() == [b"OK", 2, 3, 4]
            assert await one.reply() == b"4"
            assert await other.reply() == b"4"
            assert server.db.stats().log_writes == writes + 1

    runner.run(main())


def test_what_a_long_script_does_happens_once(
    runner: asyncio.Runner, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """It begins twice, and nobody sees the first attempt."""
    script = """
    redis.log(redis.LOG_WARNING, 'begins')
    redis.call('incr', 'count')
    redis.call('publish', 'channel', 'message')
    redis.call('rpush', 'list', 'a')
    local n = 0
    while n < 1e7 do n = n + 1 end
    return redis.call('get', 'count')
    """.replace("\n", " ")

    async def main() -> None:
        async with Wire(server) as listener, Wire(server) as waiter, Wire(server) as one:
            await listener("SUBSCRIBE channel")
            await waiter.send(request("BLPOP list 0"))
            await one("PING")
            assert await one(f'EVAL "{script}" 0') == b"1"
            assert await listener.reply() == [b"message", b"channel", b"message"]
            assert await waiter.reply() == [b"list", b"a"]
            await one.plays(("LLEN list", 0), ("GET count", b"1"))
            await one("PUBLISH channel last")
            assert await listener.reply() == [b"message", b"channel", b"last"]

    with caplog.at_level(logging.WARNING):
        runner.run(main())
    assert caplog.text.count("begins") == 1


def test_a_client_that_leaves_does_not_end_its_script(
    runner: asyncio.Runner, server: Server
) -> None:
    async def main() -> None:
        counting = "local n = 0 while n < 1e7 do n = n + 1 end return redis.call('set', 'n', n)"
        async with Wire(server) as other:
            async with Wire(server) as one:
                await one.send(request(f'EVAL "{counting}" 0'))
                while server.engine.busy is None:
                    await asyncio.sleep(0.001)
            while server.engine.busy is not None:
                await asyncio.sleep(0.001)
            assert await other("GET n") == b"10000000"

    runner.run(main())


def test_expiry_and_sweeping_wait_for_the_script(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        async with Wire(server) as one:
            await one("SET short 1 PX 50")
        script = """
        for i = 1, 1000 do redis.call('hset', 'h', i, i) end
        redis.call('del', 'h')
        local n = 0
        while n < 1e7 do n = n + 1 end
        return redis.call('dbsize')
        """.replace("\n", " ")
        async with busy(server, f'EVAL "{script}" 0', limit=60_000) as (one, other):
            assert await one.reply() in (0, 1)
            assert await other("EXISTS short h") == 0

    runner.run(main())
