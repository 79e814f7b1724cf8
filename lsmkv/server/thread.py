"""A server in its own thread, for programs and tests without an asyncio loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lsmkv.server.server import Server


@contextmanager
def server_in_thread(server: Server) -> Iterator[Server]:
    """Start a server in a thread, and stop it at the end of the block.

    Raises what starting and stopping raise.
    """
    ready = threading.Event()
    failed: list[BaseException] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with server:
            ready.set()
            await server.serve_until_shutdown()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(serve())
            except BaseException as error:
                failed.append(error)
            finally:
                ready.set()

    thread = threading.Thread(target=run, name="lsmkv serve", daemon=True)
    thread.start()
    ready.wait()
    try:
        if not failed:
            yield server
    finally:
        _call_if_open(loop, server)
        thread.join()
    if failed:
        raise failed[0]


def _call_if_open(loop: Any, server: Server) -> None:
    try:
        loop.call_soon_threadsafe(server.shut_down)
    except RuntimeError:
        pass  # it has ended on its own
