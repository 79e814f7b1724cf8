"""The session of a client: what it is sent, and when it is cut off."""

from __future__ import annotations

import asyncio

import pytest
from held_syncs import HeldSyncs
from wire import Wire, packed, request, until

from lsmkv.server import Server


async def test_pushes_come_between_replies(server: Server) -> None:
    async with Wire(server) as wire, Wire(server) as other:
        assert (await wire("HELLO 3"))[b"proto"] == 3
        assert await wire("SUBSCRIBE c") == [b"subscribe", b"c", 1]
        assert await other("PUBLISH c hello") == 1
        assert await wire.reply() == [b"message", b"c", b"hello"]
        assert await wire("ECHO x") == b"x"


@pytest.mark.parametrize("last", ["QUIT", "CLIENT KILL ID {} SKIPME no", "'"])
@pytest.mark.parametrize("sync", ["everysec", "always"])
@pytest.mark.usefixtures("runner")
async def test_one_who_wants_no_replies_is_disconnected_all_the_same(last: str, sync: str) -> None:
    async with Server(":memory:", port=0, appendfsync=sync) as server:
        async with Wire(server) as wire:
            number = await wire("CLIENT ID")
            line = last.format(number).encode()
            await wire.send(b"CLIENT REPLY OFF\r\nSET k v\r\n" + line + b"\r\n")
            assert await wire.is_closed()
        assert server.engine.db.stats().log_writes > 0
        async with Wire(server) as wire:
            assert await wire("GET k") == b"v"


@pytest.mark.usefixtures("runner")
async def test_replies_that_wait_for_a_sync_are_counted() -> None:
    """A client that asks for much while a sync runs is not read from beyond a bound."""
    value = b"x" * 2**20
    env = HeldSyncs()
    async with Server("/db", port=0, env=env, appendfsync="always") as server:
        engine = server.engine
        async with Wire(server) as wire:
            await wire.send(packed(b"SET", b"k", value))
            assert await wire.reply() == b"OK"
            (session,) = engine.sessions.values()
            env.go.clear()
            await wire.send(request("INCR n") + request("GET k") * 200)
            await until(lambda: engine.commands >= 3)
            for _ in range(100):
                await asyncio.sleep(0.001)
                assert session.unsent < 4 * 2**20
            assert engine.commands < 10
            env.go.set()
            assert await wire.reply() == 1
            for _ in range(200):
                assert await wire.reply() == value
            assert session.unsent == 0


@pytest.mark.usefixtures("runner")
async def test_messages_that_wait_for_a_sync_are_counted() -> None:
    env = HeldSyncs()
    async with Server("/db", port=0, env=env, appendfsync="always") as server:
        server.settings.pubsub_limit = 2**20
        async with Wire(server) as listener, Wire(server) as publisher:
            await listener("SUBSCRIBE c")
            env.go.clear()
            await publisher.send(request("SET k v"))
            await until(lambda: server.engine.syncing)
            await publisher.send(packed(b"PUBLISH", b"c", b"x" * 300_000) * 5)
            await until(lambda: len(server.engine.sessions) == 1)
            assert await listener.is_closed()
            env.go.set()
            replies = [await publisher.reply() for _ in range(6)]
            assert replies[:5] == [b"OK", 1, 1, 1, 1]


@pytest.mark.usefixtures("runner")
async def test_a_client_that_is_killed_while_its_replies_wait_for_a_sync_gets_none() -> None:
    env = HeldSyncs()
    server = Server("/db", port=0, env=env, appendfsync="always")
    async with server, Wire(server) as killer, Wire(server) as other:
        number = await other("CLIENT ID")
        env.go.clear()
        await other.send(request("SET k v"))
        await until(lambda: server.engine.syncing)
        await killer.send(request(f"CLIENT KILL ID {number}") + request("GET k"))
        assert await other.is_closed()
        env.go.set()
        assert [await killer.reply() for _ in range(2)] == [1, b"v"]
        assert len(server.engine.sessions) == 1
