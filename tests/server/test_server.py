"""``lsmkv.server.Server``: started, stopped, used by redis-py."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from wire import Wire, packed, request, until

import lsmkv
from lsmkv.server import Server

pytestmark = pytest.mark.usefixtures("runner")


async def beside(server: Server, work: Callable[[redis.Redis], Any]) -> Any:
    """Lets a client of redis-py work in a thread, while a server is served here."""
    async with server:
        url = f"redis://127.0.0.1:{server.port}"

        def use() -> Any:
            with redis.Redis.from_url(url) as client:
                return work(client)

        return await asyncio.to_thread(use)


@pytest.mark.parametrize("protocol", [2, 3])
async def test_redis_py(protocol: int) -> None:
    def work(_: redis.Redis) -> None:
        with redis.Redis(port=server.port, protocol=protocol, decode_responses=True) as client:
            assert client.set("k", "v", ex=100)
            assert client.get("k") == "v"
            assert client.ttl("k") == 100
            client.hset("h", mapping={"f": 1, "g": 2})
            assert client.hgetall("h") == {"f": "1", "g": "2"}
            client.zadd("z", {"a": 1, "b": 2.5})
            assert [list(one) for one in client.zrange("z", 0, -1, withscores=True)] == [
                ["a", 1.0],
                ["b", 2.5],
            ]
            assert client.sadd("s", "x", "y") == 2
            assert client.smembers("s") == {"x", "y"}
            with client.pipeline() as pipeline:
                pipeline.incr("n").incr("n").rpush("l", "a", "b")
                assert pipeline.execute() == [1, 2, 2]
            assert list(client.blpop(["none", "l"], timeout=1)) == ["l", "a"]
            assert client.info()["redis_version"].startswith("7.")
            assert sorted(client.scan_iter(count=2)) == ["h", "k", "l", "n", "s", "z"]
            with client.pubsub() as listener:
                listener.subscribe("c")
                assert listener.get_message(timeout=5)["type"] == "subscribe"
                assert client.publish("c", "hello") == 1
                message = listener.get_message(timeout=5)
                assert (message["channel"], message["data"]) == ("c", "hello")

            def add(pipeline: Any) -> None:
                value = int(pipeline.get("n"))
                pipeline.multi()
                pipeline.set("n", value + 40)

            assert client.transaction(add, "n") == [True]
            assert client.get("n") == "42"
            with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
                client.incr("h")

    server = Server(":memory:", port=0)
    await beside(server, work)


async def test_a_restart_keeps_data_and_expiry(tmp_path: Path) -> None:
    path = tmp_path / "store"
    at = int(time.time() * 1000) + 100_000

    def write(client: redis.Redis) -> None:
        client.set("k", "v", pxat=at)
        client.set("gone", "v", px=20)
        client.rpush("l", *range(100))
        client.zadd("z", {"a": 1})

    def read(client: redis.Redis) -> tuple[Any, ...]:
        while client.exists("gone"):
            pass
        return (client.get("k"), client.pexpiretime("k"), client.llen("l"), client.zscore("z", "a"))

    await beside(Server(path, port=0), write)
    assert await beside(Server(path, port=0), read) == (b"v", at, 100, 1.0)


async def test_always_answers_once_it_is_synced(tmp_path: Path) -> None:
    clients, each = 20, 10
    async with Server(tmp_path / "store", port=0, appendfsync="always") as server:
        stats = server.db.stats
        async with Wire(server) as wire:
            before = stats().log_syncs
            for number in range(5):
                assert await wire(f"SET k{number} v") == b"OK"
                assert stats().log_syncs >= before + number + 1
            reads = stats().log_syncs
            for _ in range(5):
                assert await wire("GET k0") == b"v"
            assert stats().log_syncs == reads
        async with contextlib.AsyncExitStack() as stack:
            wires = [await stack.enter_async_context(Wire(server)) for _ in range(clients)]
            before = stats().log_syncs

            async def write(wire: Wire) -> None:
                for _ in range(each):
                    assert isinstance(await wire("INCR n"), int)

            await asyncio.gather(*map(write, wires))
            assert await wires[0]("GET n") == b"%d" % (clients * each)
            assert 0 < stats().log_syncs - before < clients * each // 2  # they share syncs


async def test_everysec_syncs_in_the_background(tmp_path: Path) -> None:
    async with Server(tmp_path / "store", port=0) as server, Wire(server) as wire:
        before = server.db.stats().log_syncs
        assert await wire("SET k v") == b"OK"
        assert server.db.stats().log_syncs == before
        await until(lambda: server.db.stats().log_syncs > before)


async def test_a_replica_follows_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "store"
    async with Server(path, port=0) as server, Wire(server) as writer:
        await writer.plays(("SET k 1", b"OK"), ("RPUSH l a", 1))
        replica = Server(path, port=0, read_only=True, refresh_seconds=0.01)
        async with replica, Wire(replica) as reader:
            await reader.plays(
                ("GET k", b"1"),
                ("SET k 2", "READONLY You can't write against a read only replica."),
            )
            await writer.plays(("SET k 2", b"OK"), ("RPUSH l b", 2), ("SET new v", b"OK"))
            while await reader("GET new") is None:
                pass
            await reader.plays(("GET k", b"2"), ("LRANGE l 0 -1", [b"a", b"b"]), ("DBSIZE", 3))


async def test_an_ordinary_store(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with lsmkv.DB(path, create_if_missing=True) as db:
        db.put(b"k", b"v")
    with pytest.raises(ValueError, match="holds data that lsmkv serve did not write"):
        await Server(path, port=0).start()
    async with Server(path, port=0, raw=True) as server, Wire(server) as wire:
        await wire.plays(("GET k", b"v"), ("SET new w", b"OK"))
    with lsmkv.DB(path) as db:
        assert list(db) == [(b"k", b"v"), (b"new", b"w")]


async def test_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    server = Server(":memory:", host=None, unix_socket=path)
    async with server, Wire(server, path) as wire:
        assert await wire("SET k v") == b"OK"
        assert f"laddr={path}:0 " in (await wire("CLIENT LIST")).decode()
        assert await wire("CONFIG GET port") == [b"port", b"0"]


async def test_the_mode_of_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    for mode in (0o600, 0o666):  # the second replaces what the first has left
        async with Server(":memory:", host=None, unix_socket=path, unix_socket_mode=mode) as server:
            assert stat.S_IMODE(path.stat().st_mode) == mode
            async with Wire(server, str(path)) as wire:
                shown = await wire("CONFIG GET unixsocketperm")
                assert shown == [b"unixsocketperm", b"%o" % mode]
    (tmp_path / "file").write_text("not a socket")
    with pytest.raises(OSError, match="in use"):
        await Server(":memory:", host=None, unix_socket=tmp_path / "file").start()
    assert (tmp_path / "file").read_text() == "not a socket"


async def test_stopping_while_clients_are_connected(tmp_path: Path) -> None:
    path = tmp_path / "store"
    server = Server(path, port=0, appendfsync="always")
    await server.start()
    async with Wire(server) as idle, Wire(server) as blocked, Wire(server) as busy:
        assert await idle("PING") == b"PONG"
        await blocked.send(request("BLPOP l 0"))
        await until(lambda: len(server.engine.waits))
        await busy.send(packed(b"INCR", b"n") * 100)
        await until(lambda: server.engine.commands >= 102)
        await server.stop()
        await server.stop()
        assert [await busy.reply() for _ in range(100)] == list(range(1, 101))
        assert str(await blocked.reply()).startswith("UNBLOCKED ")
        for wire in (idle, blocked, busy):
            assert await wire.is_closed()
        with pytest.raises(RuntimeError, match="the server is not running"):
            server.db  # noqa: B018 - a property
        with pytest.raises(ConnectionRefusedError):
            await Wire(server).__aenter__()
    assert await beside(Server(path, port=0), lambda client: client.get("n")) == b"100"


async def test_shutdown(tmp_path: Path) -> None:
    async with Server(tmp_path / "store", port=0) as server, Wire(server) as wire:
        waiting = asyncio.create_task(server.serve_until_shutdown())
        assert await wire("SET k v") == b"OK"
        assert not waiting.done()
        await wire.send(request("SHUTDOWN") + request("SET k w"))
        await waiting
        assert await wire.is_closed()
    server = Server(tmp_path / "store", port=0)
    assert await beside(server, lambda client: client.get("k")) == b"v"


@pytest.mark.parametrize(
    "options",
    [
        {"host": None},
        {"refresh_seconds": 0},
        {"appendfsync": "sometimes"},
        {"maxclients": 0},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Server(":memory:", port=0, **options)


async def test_an_address_in_use_leaves_nothing_open(tmp_path: Path) -> None:
    path = tmp_path / "store"
    async with Server(":memory:", port=0) as first:
        with pytest.raises(OSError, match="address already in use"):
            await Server(path, port=first.port).start()
    async with Server(path, port=0):  # its lock is free again
        pass


async def test_much_at_once_under_always(tmp_path: Path) -> None:
    server = Server(tmp_path / "store", port=0, appendfsync="always")
    async with server, Wire(server) as wire, Wire(server) as other:
        await wire.send(request("SET k v") * 50 + request("BLPOP l 0"))
        assert [await wire.reply() for _ in range(50)] == [b"OK"] * 50
        await until(lambda: len(server.engine.waits))
        assert await other("RPUSH l a") == 1
        assert await wire.reply() == [b"l", b"a"]
        await wire.send(request("BLPOP l 0"))
        await until(lambda: len(server.engine.waits))
        wire.close()
        await until(lambda: not len(server.engine.waits))


async def test_stopping_does_not_wait_for_a_client_that_does_not_read() -> None:
    server = Server(":memory:", port=0)
    await server.start()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        set_it = packed(b"SET", b"k", b"x" * 2**20)
        await asyncio.to_thread(client.sendall, set_it + packed(b"GET", b"k") * 64)
        engine = server.engine
        await until(lambda: engine.commands > 4)
        (session,) = engine.sessions.values()
        await server.stop()
        await until(lambda: not engine.sessions)
        assert session.closing
