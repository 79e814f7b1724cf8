"""A server in its own thread, for programs and tests without an asyncio loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import new_lock
from lsmkv.server.server import Server


@contextmanager
def server_in_thread(server: Server) -> Iterator[Server]:
    """Start a server in a thread, and stop it at the end of the block.

    Raises what starting and stopping raise.
    """
    waiting = new_lock()  # no Event, which Ctrl-C may leave locked
    waiting.acquire()
    ready = False
    failed: list[BaseException] = []
    loops: list[asyncio.AbstractEventLoop] = []

    def note_ready() -> None:
        nonlocal ready
        if not ready:
            ready = True
            waiting.release()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with server:
            note_ready()
            await server.serve_until_shutdown()

    def run() -> None:
        with asyncio.Runner() as runner:
            try:
                runner.run(serve())
            except BaseException as error:
                failed.append(error)
            finally:
                note_ready()

    def stop() -> None:
        if thread.ident is not None:
            with deferred, deferred.undisturbed():
                deferred.wait_for(waiting)
                for loop in loops:
                    _call_if_open(loop, server)
            thread.join()

    thread = threading.Thread(target=run, name="lsmkv serve", daemon=True)
    try:
        with deferred:
            thread.start()
        deferred.wait_for(waiting)
        if not failed:
            yield server
    finally:
        try:
            stop()
        finally:
            stop()  # if a signal has ended the first call
    if failed:
        raise failed[0]


def _call_if_open(loop: Any, server: Server) -> None:
    try:
        loop.call_soon_threadsafe(server.shut_down)
    except RuntimeError:
        pass  # it has ended on its own
