"""A server that is busy with a script."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from wire import Wire, request

from lsmkv.server import Server

BUSY = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
KILLED = "ERR Script killed by user with SCRIPT KILL... script: "


@contextlib.asynccontextmanager
async def busy(server: Server, line: str, limit: int = 30) -> AsyncIterator[tuple[Wire, Wire]]:
    """A client whose script runs in a thread, and another client."""
    async with Wire(server) as one, Wire(server) as other:
        await other(f"CONFIG SET lua-time-limit {limit}")
        await one.send(request(line))
        while server.engine.busy is None:
            await asyncio.sleep(0.001)
        yield one, other


async def over_limit(server: Server) -> None:
    """Wait until other clients get BUSY."""
    while not (server.engine.busy is not None and server.engine.busy.over_limit):
        await asyncio.sleep(0.001)
