"""Clients that leave in the middle of everything, and others that must not notice.

Each way of leaving runs beside witnesses: connections that send small pipelines and wait for every
reply.  A witness that gets none for ten seconds hangs, which is what is looked for.  The server is
a process of its own, in a loop of asyncio's or of uvloop's, which differ in what they do with a
connection that is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import hiredis
from processes import start
from wire import packed

_WITNESSES = 4
_LEAVERS = 12
_HANGS_AFTER = 10.0
"""Seconds: far more than a busy machine takes."""
_SERVE = """
import asyncio, sys
from lsmkv.server import Server

async def main():
    async with Server(sys.argv[1], port=0, appendfsync=sys.argv[3]) as server:
        print(server.port, flush=True)
        await server.serve_until_shutdown()

if sys.argv[2] == "uvloop":
    import uvloop
    factory = uvloop.new_event_loop
else:
    factory = asyncio.new_event_loop
with asyncio.Runner(loop_factory=factory) as runner:
    runner.run(main())
"""


class Client:
    """A connection that sends and reads bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._parser = hiredis.Reader(notEnoughData=self)

    @classmethod
    async def connect(cls, port: int, receive_buffer: int = 0) -> Client:
        connected = socket.socket()
        if receive_buffer:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connected.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connected, ("127.0.0.1", port))
        return cls(*await asyncio.open_connection(sock=connected, limit=1 << 16))

    def send(self, *requests: tuple[bytes, ...]) -> None:
        self._writer.write(b"".join(packed(*request) for request in requests))

    async def reply(self) -> Any:
        while (reply := self._parser.gets()) is self:
            data = await self._reader.read(1 << 16)
            if not data:
                raise ConnectionResetError
            self._parser.feed(data)
        return reply

    async def replies(self, count: int) -> list[Any]:
        return [await self.reply() for _ in range(count)]

    def leave(self, rudely: bool) -> None:
        """Close the connection, or reset it."""
        if rudely:
            connected = self._writer.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


class Departures:
    """One server, and one way in which its clients leave."""

    def __init__(self, port: int, seconds: float, seed: int = 0) -> None:
        self._port = port
        self._ends = time.monotonic() + seconds
        self._rng = random.Random(seed)
        self.left = 0
        """How many clients have left."""
        self.rounds = 0
        """How many pipelines of witnesses were answered."""
        self.hangs = 0
        self.wrong: list[str] = []

    async def run(self, way: Callable[[Departures], list[Awaitable[None]]]) -> None:
        tasks = [*way(self), *(self._witness(number) for number in range(_WITNESSES))]
        await asyncio.gather(*tasks)

    @property
    def _goes_on(self) -> bool:
        return time.monotonic() < self._ends

    async def _witness(self, number: int) -> None:
        """Count a key up, and read it back: exactly once for each INCR, whatever others do."""
        key, count = b"witness%d" % number, 0
        client = await Client.connect(self._port)
        client.send((b"DEL", key))
        await client.reply()
        while self._goes_on:
            client.send((b"INCR", key), (b"GET", key), (b"PING",))
            try:
                replies = await asyncio.wait_for(client.replies(3), _HANGS_AFTER)
            except TimeoutError:
                self.hangs += 1
                client.leave(rudely=True)
                client = await Client.connect(self._port)
                client.send((b"GET", key))
                count = int(await asyncio.wait_for(client.reply(), _HANGS_AFTER))
                continue
            count += 1
            self.rounds += 1
            if replies != [count, b"%d" % count, b"PONG"]:
                self.wrong.append(f"{replies} instead of {count}")
                count = int(replies[1])
        client.leave(rudely=False)

    async def _pause(self, most: float) -> None:
        await asyncio.sleep(self._rng.random() * most)

    async def _leaver(self, *requests: tuple[bytes, ...], stays: float) -> None:
        """Connect, send requests, and leave, whether they are answered or not."""
        while self._goes_on:
            with contextlib.suppress(ConnectionError):
                client = await Client.connect(self._port)
                client.send(*requests)
                await self._pause(stays)
                client.leave(rudely=self._rng.random() < 0.5)
                self.left += 1

    async def _feeder(self, *requests: tuple[bytes, ...]) -> None:
        """Send requests that feed those who leave."""
        client = await Client.connect(self._port)
        while self._goes_on:
            client.send(*requests)
            try:
                await asyncio.wait_for(client.replies(len(requests)), _HANGS_AFTER)
            except TimeoutError:
                self.hangs += 1
                client.leave(rudely=True)
                client = await Client.connect(self._port)
            await self._pause(0.001)
        client.leave(rudely=False)

    async def _deaf(self) -> None:
        """Subscribe, read nothing, and wait to be disconnected."""
        while self._goes_on:
            client = await Client.connect(self._port, receive_buffer=4096)
            client._writer.transport.pause_reading()  # type: ignore[attr-defined]
            client.send((b"SUBSCRIBE", b"large"))
            await self._pause(1)
            client.leave(rudely=False)
            self.left += 1

    def subscribers(self) -> list[Awaitable[None]]:
        """Subscribers come and go while messages are published."""
        leavers = [self._leaver((b"SUBSCRIBE", b"c"), stays=0.02) for _ in range(_LEAVERS)]
        return [*leavers, self._feeder(*[(b"PUBLISH", b"c", b"x" * 200)] * 20)]

    def deaf_subscribers(self) -> list[Awaitable[None]]:
        """Subscribers that do not read are disconnected at 32 MiB."""
        message = (b"PUBLISH", b"large", b"x" * 1_000_000)
        feeders = [self._feeder(message) for _ in range(4)]
        return [*(self._deaf() for _ in range(3)), *feeders]

    def consumers(self) -> list[Awaitable[None]]:
        """Consumers of a queue leave while they wait, and as they are served."""
        leavers = [self._leaver((b"BRPOP", b"jobs", b"0"), stays=0.01) for _ in range(_LEAVERS)]
        return [*leavers, self._feeder(*[(b"LPUSH", b"jobs", b"job")] * 4, (b"DEL", b"jobs"))]

    def writers(self) -> list[Awaitable[None]]:
        """Writers leave before they are answered; with appendfsync always, during the sync."""
        requests = [(b"SET", b"k", b"x" * 1000), (b"GET", b"k")]
        return [self._leaver(*requests, stays=0.004) for _ in range(_LEAVERS)]


WAYS = {
    "subscribers": (Departures.subscribers, "everysec"),
    "deaf subscribers": (Departures.deaf_subscribers, "everysec"),
    "consumers": (Departures.consumers, "everysec"),
    "writers": (Departures.writers, "always"),
}
"""The ways of leaving, each with the server's ``appendfsync``."""


def depart(directory: Path, loop: str, way: str, seconds: float) -> Departures:
    """Run one way for so long.  The server must end by itself, too."""
    clients, appendfsync = WAYS[way]
    with start(_SERVE, str(directory), loop, appendfsync) as server:
        try:
            assert server.stdout is not None
            departures = Departures(int(server.stdout.readline()), seconds)
            asyncio.run(departures.run(clients))
            stop(server, departures._port)
        finally:
            server.kill()
    return departures


def stop(server: subprocess.Popen[bytes], port: int) -> None:
    """End it by SHUTDOWN."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(packed(b"SHUTDOWN"))
        server.wait(60)
    assert server.returncode == 0, signal.strsignal(-server.returncode)
