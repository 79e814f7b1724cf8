"""A client of a server in this process, which sends and reads bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Self

import hiredis
from serving import shown

from lsmkv.server import Server
from lsmkv.server.quoting import split_words


def packed(*words: bytes) -> bytes:
    """A request as libraries send it."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


def request(line: str) -> bytes:
    """A line as a request."""
    return packed(*split_words(line.encode()))


class Wire:
    """A connection: ``async with Wire(server) as wire``."""

    def __init__(self, server: Server, path: str | None = None) -> None:
        self._server = server
        self._path = path
        self._parser = hiredis.Reader(notEnoughData=self)

    async def __aenter__(self) -> Self:
        if self._path is not None:
            streams = await asyncio.open_unix_connection(self._path)
        else:
            streams = await asyncio.open_connection("127.0.0.1", self._server.port)
        self.reader, self.writer = streams
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            pass

    def close(self) -> None:
        self.writer.close()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self) -> Any:
        """The next reply or push; an error as text.  ``EOFError`` if the server has hung up."""
        while (reply := self._parser.gets()) is self:
            data = await self.reader.read(1 << 16)
            if not data:
                raise EOFError
            self._parser.feed(data)
        return shown(reply)

    async def __call__(self, line: str) -> Any:
        await self.send(request(line))
        return await self.reply()

    async def plays(self, *steps: tuple[str, Any]) -> None:
        """Check the replies to requests, one after the other."""
        for line, expected in steps:
            reply = await self(line)
            assert reply == expected, f"{line}: {reply!r}, not {expected!r}"

    async def is_closed(self) -> bool:
        """Whether nothing comes any more but the end: it waits for that."""
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True


async def until(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    while not condition():
        await asyncio.sleep(0.005)
