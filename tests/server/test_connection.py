"""Connections: bytes in, replies out, whatever clients do."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import tracemalloc
from typing import Any

import pytest
from held_syncs import HeldSyncs
from wire import Wire, packed, request, until

from lsmkv.server import Server
from lsmkv.server.commands import COMMANDS
from lsmkv.server.connection import Connection, _shown
from lsmkv.server.session import Session


async def test_pipelined_requests_are_answered_in_their_order(server: Server) -> None:
    async with Wire(server) as wire:
        await wire.send(b"".join(packed(b"INCR", b"n") for _ in range(3000)) + b"PING\r\n")
        assert [await wire.reply() for _ in range(3001)] == [*range(1, 3001), b"PONG"]


async def test_requests_in_pieces(server: Server) -> None:
    async with Wire(server) as wire:
        data = request("SET k 'a value'") + b"GET k\r\n" + request("STRLEN k")
        for at in range(len(data)):
            await wire.send(data[at : at + 1])
            await asyncio.sleep(0)
        assert [await wire.reply() for _ in range(3)] == [b"OK", b"a value", 7]


async def test_what_is_no_request_is_answered_and_ends_the_connection(server: Server) -> None:
    async with Wire(server) as wire:
        await wire.send(request("SET k v") + b"*1\r\n+PING\r\n" + request("SET k w"))
        assert await wire.reply() == b"OK"
        assert await wire.reply() == "ERR Protocol error: expected '$', got '+'"
        assert await wire.is_closed()
    async with Wire(server) as wire:
        assert await wire("GET k") == b"v"


async def test_too_large_a_request(server: Server) -> None:
    async with Wire(server) as wire:
        assert await wire("CONFIG SET client-query-buffer-limit 1mb") == b"OK"
        with contextlib.suppress(ConnectionError):  # it may hang up while more is sent
            await wire.send(b"*2\r\n$4\r\nECHO\r\n$3000000\r\n" + b"x" * 1_500_000)
        assert await wire.reply() == "ERR Protocol error: too big a request"
        assert await wire.is_closed()


@pytest.mark.usefixtures("runner")
async def test_a_large_request_of_one_who_has_not_said_the_password() -> None:
    async with Server(":memory:", port=0, password="secret") as server:
        async with Wire(server) as wire:
            await wire.send(packed(b"AUTH", b"x" * 10_000))
            assert str(await wire.reply()).startswith("WRONGPASS")
            await wire.send(packed(b"AUTH", b"x" * 20_000)[:-5])
            assert await wire.reply() == "ERR Protocol error: unauthenticated bulk length"
            assert await wire.is_closed()
        async with Wire(server) as wire:
            assert await wire("AUTH secret") == b"OK"
            await wire.send(packed(b"ECHO", b"x" * 20_000))
            assert await wire.reply() == b"x" * 20_000


async def test_replies_wait_for_a_slow_reader(server: Server) -> None:
    value = b"x" * 2**20
    async with Wire(server) as writer:
        await writer.send(packed(b"SET", b"k", value))
        assert await writer.reply() == b"OK"
    reading = socket.socket()
    reading.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reading.setblocking(False)
    loop = asyncio.get_running_loop()
    with reading:
        await loop.sock_connect(reading, ("127.0.0.1", server.port))
        await loop.sock_sendall(reading, packed(b"GET", b"k") * 60 + packed(b"PING"))
        await until(lambda: server.engine.bytes_out > 0)
        for _ in range(50):
            await asyncio.sleep(0.002)
        # 60 MB are asked for.  A few are with the kernel, or wait here.
        assert server.engine.bytes_out < 20 * 2**20
        assert sum(session.out_size for session in server.engine.sessions.values()) < 4 * 2**20
        async with Wire(server) as other:
            assert await other("PING") == b"PONG"  # nobody else waits
        size = 0
        while size < 60 * (len(value) + 12) + 7:
            data = await loop.sock_recv(reading, 1 << 20)
            assert data
            size += len(data)
        assert data.endswith(b"+PONG\r\n")


async def test_a_subscriber_that_does_not_read_is_disconnected(server: Server) -> None:
    server.settings.pubsub_limit = 2**20
    async with Wire(server) as slow, Wire(server) as publisher:
        slow.writer.transport.pause_reading()
        await slow.send(request("SUBSCRIBE c"))
        await until(lambda: any(server.engine.channels.subscribers))
        sent = 0
        while any(server.engine.channels.subscribers):
            await publisher.send(packed(b"PUBLISH", b"c", b"x" * 100_000))
            assert await publisher.reply() in (0, 1)
            sent += 1
            assert sent < 500
        assert len(server.engine.sessions) == 1
        slow.writer.transport.abort()


async def test_requests_behind_one_that_blocks_wait(server: Server) -> None:
    async with Wire(server) as wire, Wire(server) as other:
        await wire.send(request("BLPOP l 0") + request("INCR n") + request("INCR n"))
        await until(lambda: len(server.engine.waits))
        await wire.send(request("INCR n") + request("PING")[:7])
        await asyncio.sleep(0.02)
        assert await other("GET n") is None
        assert await other("RPUSH l a") == 1
        await wire.send(request("PING")[7:])
        replies = [await wire.reply() for _ in range(5)]
        assert replies == [[b"l", b"a"], 1, 2, 3, b"PONG"]


async def test_much_behind_a_request_that_blocks_is_not_read(server: Server) -> None:
    async with Wire(server) as wire, Wire(server) as other:
        await wire.send(request("BLPOP l 0"))
        await until(lambda: len(server.engine.waits))
        large = packed(b"STRLEN", b"x" * 1000)
        sending = asyncio.create_task(wire.send(large * 30_000))  # 30 MB
        for _ in range(50):
            await asyncio.sleep(0.002)
        assert server.engine.bytes_in < 2 * 2**20
        assert await other("RPUSH l a") == 1
        assert await wire.reply() == [b"l", b"a"]
        for _ in range(30_000):
            assert await wire.reply() == 0
        await sending


async def test_one_who_goes_while_blocked_takes_nothing(server: Server) -> None:
    async with Wire(server) as other:
        for behind in (b"", request("PING") * 10):
            async with Wire(server) as wire:
                await wire.send(request("BLPOP l 0") + behind)
                await until(lambda: len(server.engine.waits) == 1)
            await until(lambda: len(server.engine.waits) == 0)
        await other.plays(("RPUSH l a", 1), ("LLEN l", 1))


async def test_blocked_clients(server: Server) -> None:
    async with Wire(server) as first, Wire(server) as second, Wire(server) as other:
        for number, wire in enumerate((first, second), 1):
            await wire.send(request("BLPOP l 0"))
            await until(lambda number=number: len(server.engine.waits) == number)
        await other.plays(("RPUSH l a b", 2), ("EXISTS l", 0))
        assert await first.reply() == [b"l", b"a"]
        assert await second.reply() == [b"l", b"b"]
        assert await first("BLPOP l 0.01") is None
        number = await second("CLIENT ID")
        await second.send(request("BLPOP l 0"))
        await until(lambda: len(server.engine.waits) == 1)
        assert await other(f"CLIENT UNBLOCK {number} ERROR") == 1
        assert str(await second.reply()).startswith("UNBLOCKED ")


@pytest.mark.usefixtures("runner")
async def test_passwords_and_protocols() -> None:
    async with Server(":memory:", port=0, password="secret") as server:
        async with Wire(server) as wire:
            await wire.plays(("PING", "NOAUTH Authentication required."), ("AUTH secret", b"OK"))
            assert await wire("PING") == b"PONG"
        async with Wire(server) as wire:
            assert (await wire("HELLO 3 AUTH default secret"))[b"proto"] == 3


@pytest.mark.usefixtures("runner")
async def test_the_most_clients() -> None:
    async with Server(":memory:", port=0, maxclients=2) as server, Wire(server) as one:
        async with Wire(server) as other:
            assert await other("PING") == b"PONG"
            async with Wire(server) as third:
                assert await third.reply() == "ERR max number of clients reached"
                assert await third.is_closed()
            assert await one("PING") == b"PONG"
        await until(lambda: len(server.engine.sessions) == 1)
        async with Wire(server) as third:
            assert await third("PING") == b"PONG"
            assert server.engine.refused_connections == 1


class FakeTransport(asyncio.Transport):
    """A transport of a client with a given address."""

    def __init__(self, peer: object) -> None:
        super().__init__({"peername": peer, "sockname": ("10.0.0.1", 6379)})
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        assert not self.closed
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


@pytest.mark.parametrize(
    ("peer", "settings", "refused"),
    [
        (("10.0.0.2", 5000), {}, True),
        (("fe80::1", 5000, 0, 0), {}, True),
        (("::1234", 5000, 0, 0), {}, True),
        (("127.0.0.1", 5000), {}, False),
        (("::1", 5000, 0, 0), {}, False),
        (("::ffff:127.0.0.1", 5000, 0, 0), {}, False),
        ("", {}, False),
        (("10.0.0.2", 5000), {"protected_mode": False}, False),
        (("10.0.0.2", 5000), {"password": "secret"}, False),
    ],
)
@pytest.mark.usefixtures("runner")
async def test_protected_mode(peer: object, settings: dict[str, Any], refused: bool) -> None:
    async with Server(":memory:", port=0, **settings) as server:
        transport = FakeTransport(peer)
        connection = Connection(server.engine)
        connection.connection_made(transport)
        connection.data_received(b"PING\r\n")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert transport.closed == refused
        if refused:
            assert transport.written.startswith(b"-DENIED lsmkv serve is running in protected mode")
            assert transport.written.count(b"\n") == 1
        else:
            assert transport.written[:1] in (b"+", b"-")
            assert not transport.written.startswith(b"-DENIED")
        connection.connection_lost(None)
        assert not server.engine.sessions


@pytest.mark.usefixtures("runner")
async def test_a_connection_that_closes_waits_for_replies_that_a_sync_holds_back() -> None:
    async with Server(":memory:", port=0, appendfsync="always") as server:
        transport = FakeTransport("")
        connection = Connection(server.engine)
        connection.connection_made(transport)
        connection.data_received(b"SET k v\r\n")
        await asyncio.sleep(0)
        assert server.engine.syncing
        connection.data_received(b"INCR n\r\nQUIT\r\n")
        server.engine.commit()
        assert (transport.written, transport.closed) == (b"", False)
        await until(lambda: transport.closed)
        assert transport.written == b"+OK\r\n:1\r\n+OK\r\n"
        connection.connection_lost(None)


async def test_killing(server: Server) -> None:
    async with Wire(server) as one, Wire(server) as other:
        number = await other("CLIENT ID")
        listed = (await one("CLIENT LIST")).decode()
        assert listed.count("\n") == 2
        host, port = other.writer.get_extra_info("sockname")
        assert f"addr={host}:{port} laddr=127.0.0.1:{server.port} " in listed
        assert await one(f"CLIENT KILL ID {number}") == 1
        assert await other.is_closed()
        await until(lambda: len(server.engine.sessions) == 1)
        host, port = one.writer.get_extra_info("sockname")
        assert await one(f"CLIENT KILL {host}:{port}") == b"OK"  # the reply comes first
        assert await one.is_closed()


@pytest.mark.parametrize("sync", ["everysec", "always"])
@pytest.mark.usefixtures("runner")
async def test_what_was_asked_before_quit_is_answered(sync: str) -> None:
    async with Server(":memory:", port=0, appendfsync=sync) as server, Wire(server) as wire:
        await wire.send(request("SET k v"))
        await until(lambda: server.engine.commands == 1)
        await wire.send(request("INCR n") + request("QUIT") + request("INCR n"))
        assert [await wire.reply() for _ in range(3)] == [b"OK", 1, b"OK"]
        assert await wire.is_closed()


async def test_monitor(server: Server) -> None:
    async with Wire(server) as watcher, Wire(server) as other:
        assert await watcher("MONITOR") == b"OK"
        await other("SET k 'a b'")
        host, port = other.writer.get_extra_info("sockname")
        line = (await watcher.reply()).decode()
        assert line.endswith(f' [0 {host}:{port}] "SET" "k" "a b"')


@pytest.mark.usefixtures("runner")
async def test_idle_clients_are_disconnected() -> None:
    server = Server(":memory:", port=0, timeout=5)
    async with server, Wire(server) as idle, Wire(server) as blocked, Wire(server) as listener:
        assert await idle("PING") == b"PONG"
        await blocked.send(request("BLPOP l 0"))
        assert await listener("SUBSCRIBE c") == [b"subscribe", b"c", 1]
        await until(lambda: len(server.engine.waits))
        for session in server.engine.sessions.values():
            session.last_active -= 10
        assert await idle.is_closed()
        async with Wire(server) as other:
            await other.plays(("RPUSH l a", 1), ("PUBLISH c hi", 1))
        assert await blocked.reply() == [b"l", b"a"]
        assert await listener.reply() == [b"message", b"c", b"hi"]


@pytest.mark.usefixtures("runner")
async def test_an_idle_client_that_does_not_read_is_disconnected_too() -> None:
    server = Server(":memory:", port=0, timeout=5)
    async with server, Wire(server) as idle, Wire(server) as monitor:
        assert await monitor("MONITOR") == b"OK"
        await idle.plays(("SET k v", b"OK"))
        (session, watching) = server.engine.sessions.values()
        idle.writer.transport.pause_reading()
        await idle.send(request(f"SETRANGE k {20 << 20} x") + request("GET k"))
        await until(lambda: session.last_command is COMMANDS[b"GET"])
        for one in (session, watching):
            one.last_active -= 100
        await until(lambda: session.id not in server.engine.sessions)
        assert watching.id in server.engine.sessions


async def test_a_connection_that_is_cut(server: Server) -> None:
    async with Wire(server) as wire:
        await wire.send(request("MULTI") + request("SET k v") + b"*2\r\n$3\r\nGE")
        await until(lambda: server.engine.commands == 1)
        wire.writer.transport.abort()
        await until(lambda: not server.engine.sessions)
    async with Wire(server) as wire:
        assert await wire("GET k") is None


def test_an_address_is_shown_as_it_is_written() -> None:
    peers = (("::1", 5000, 0, 0), ("127.0.0.1", 5000), "/run/socket", None)
    shown = [_shown(peer) for peer in peers]
    assert shown == ["[::1]:5000", "127.0.0.1:5000", "/run/socket:0", ":0"]


@pytest.mark.parametrize("line", [b"POST / HTTP/1.1\r\n", b"GET x\r\nhost: x\r\n", b"Post\r\n"])
async def test_what_a_web_page_sends_is_not_run(
    server: Server, line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with Wire(server) as wire, Wire(server) as other:
        assert await wire("SET k v") == b"OK"
        await other.send(line + b"Host: x\r\n\r\nFLUSHALL\r\n")
        if line.startswith(b"GET"):
            assert await other.reply() is None
        assert await other.is_closed()
        assert await wire("GET k") == b"v"
    (record,) = caplog.records
    assert "POST or Host: was sent by 127.0.0.1:" in record.getMessage()


@pytest.mark.usefixtures("runner")
async def test_before_the_password_and_in_a_transaction_a_web_page_is_found_out_too() -> None:
    async with Server(":memory:", port=0, password="secret") as server:
        for before in (b"", b"AUTH secret\r\nMULTI\r\n"):
            async with Wire(server) as wire:
                await wire.send(before + b"Host: x\r\nAUTH secret\r\nSET k v\r\n")
                for _ in before.splitlines():
                    assert await wire.reply() == b"OK"
                assert await wire.is_closed()
        async with Wire(server) as wire:
            await wire.plays(("AUTH secret", b"OK"), ("GET k", None))


async def test_a_connection_that_is_gone_leaves_nothing_behind(server: Server) -> None:
    """Its memory is free at once: no reference cycle keeps it until the collector runs."""
    value = b"x" * 20_000_000
    half = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000000\r\n" + value
    engine = server.engine
    gc.collect()
    gc.disable()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        for lines in ("SUBSCRIBE c", "WATCH k\nMULTI\nGET k", "MONITOR", "HELLO 3", "CLIENT LIST"):
            async with Wire(server) as wire:
                for line in lines.split("\n"):
                    await wire(line)
                engine.bytes_in = 0
                await wire.send(half)
                await until(lambda: engine.bytes_in == len(half))
                wire.writer.transport.abort()
                await until(lambda: not engine.sessions)
            async with Wire(server) as wire:
                await wire.send(request("BLPOP l 0"))
                await until(lambda: len(engine.waits))
                wire.writer.transport.abort()
                await until(lambda: not engine.sessions)
        for _ in range(5):
            await asyncio.sleep(0)
        assert tracemalloc.get_traced_memory()[0] < before + 5_000_000
        # Not isinstance(): a lazy object of Django's would set itself up to say its class.
        kinds = (Connection, Session)
        left = [one for one in gc.get_objects() if issubclass(type(one), kinds)]
        assert [type(one) for one in left if not getattr(one, "of_scripts", False)] == []
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.mark.parametrize("value", ["no", "everysec"])
@pytest.mark.usefixtures("runner")
async def test_replies_keep_their_order_when_appendfsync_changes(value: str) -> None:
    env = HeldSyncs()
    server = Server("/db", port=0, env=env, appendfsync="always")
    async with server, Wire(server) as wire, Wire(server) as other:
        env.go.clear()
        await wire.send(request("SET k v"))
        await until(lambda: server.engine.syncing)
        server.settings.change([("appendfsync", value)])
        await wire.send(request("GET k"))
        assert await other("GET k") == b"v"
        env.go.set()
        assert [await wire.reply() for _ in range(2)] == [b"OK", b"v"]


@pytest.mark.skipif(not hasattr(socket, "TCP_KEEPINTVL"), reason="the system has no such options")
@pytest.mark.parametrize(("seconds", "between"), [(300, 100), (1, 1)])
async def test_a_connection_whose_other_end_is_gone_is_noticed(
    server: Server, seconds: int, between: int
) -> None:
    server.settings.tcp_keepalive = seconds
    seen: list[tuple[int, ...]] = []

    class Seen(Connection):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            connected = transport.get_extra_info("socket")
            names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
            options = [getattr(socket, name) for name in names]
            asked = [connected.getsockopt(socket.IPPROTO_TCP, one) for one in options]
            seen.append((connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), *asked))

    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: Seen(server.engine), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    await until(lambda: seen)
    writer.close()
    listener.close()
    await until(lambda: not server.engine.sessions)
    assert seen == [(1, seconds, between, 3)]


async def test_a_request_of_many_arguments_is_bounded_by_their_memory(server: Server) -> None:
    async with Wire(server) as wire:
        await wire("CONFIG SET client-query-buffer-limit 1mb")
        await wire.send(b"*100001\r\n$3\r\nDEL\r\n" + b"$1\r\nk\r\n" * 40_000)
        assert await wire.reply() == "ERR Protocol error: too big a request"
        assert await wire.is_closed()


async def test_what_a_transaction_queues_is_bounded(server: Server) -> None:
    async with Wire(server) as wire:
        await wire("CONFIG SET client-query-buffer-limit 2mb")
        for _ in range(3):
            await wire.plays(("MULTI", b"OK"))
            await wire.send(packed(b"SET", b"k", b"x" * 900_000) * 2)
            assert [await wire.reply() for _ in range(2)] == [b"QUEUED"] * 2
            assert await wire("EXEC") == [b"OK", b"OK"]
        await wire("MULTI")
        with contextlib.suppress(ConnectionError):
            await wire.send(packed(b"SET", b"k", b"y" * 900_000) * 3)
        assert [await wire.reply() for _ in range(2)] == [b"QUEUED"] * 2
        assert await wire.reply() in (b"QUEUED", "ERR Protocol error: too big a request")
        assert await wire.is_closed()
    async with Wire(server) as wire:
        assert await wire("STRLEN k") == 900_000
        assert (await wire("GETRANGE k 0 0")) == b"x"
