"""Reads that take long: they leave the loop, and run in a thread on a snapshot of the store.

A command that only reads begins in the loop, where nearly all end within microseconds.  One that
takes longer than ``in_loop`` is stopped by :class:`Records`, and begins again in a thread, as it
would have at that moment: what the tick has written before it is in the snapshot, and what others
write meanwhile is not.  Its client waits; all others continue.

A thread of compiled code does not release the interpreter by itself, so :class:`Records` rests
after some hundred records.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from lsmkv.engine.errors import Error
from lsmkv.server.command import Command
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.records import TooLong
from lsmkv.server.resp import CommandError, Reply, encode_in_pieces
from lsmkv.server.session import Service, Session

_log = logging.getLogger("lsmkv.server")
_IN_LOOP: Final = 0.02
_THREADS: Final = 2
"""The number of reads that run at the same time; further ones wait."""
_PATIENCE: Final = 10.0
"""Seconds that a server that ends waits for them."""


class LongReads:
    """The reads of a server that run in threads, at most one of each client."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.in_loop = _IN_LOOP
        """Seconds that a read may take in the loop's thread."""
        self._views: dict[Session, Keyspace] = {}
        """The view that each client's read uses."""
        self._threads: ThreadPoolExecutor | None = None
        self._ended: asyncio.Event | None = None
        """Set when none is left, once that is waited for."""

    def begin(self, session: Session, found: Command, request: list[bytes]) -> bool:
        """Run a command in a thread, which answers it.  Returns False if there is no loop that
        could continue, or if the command may block.  Raises the store's errors."""
        if found.name == "XREAD" and any(word.upper() == b"BLOCK" for word in request):
            return False
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        service = self._service
        service.commit()  # the snapshot has what was written before
        view = type(service.space)(service.db, writable=False)
        view.records.rests = True
        self._views[session] = view
        session.postponed = True
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, "lsmkv read")
        reader = Session(service, session.id, session.address)
        reader.space, reader.resp3 = view, session.resp3
        reader.user, reader.limited = session.user, session.limited
        reader.database = view.databases[session.database.index]
        running = loop.run_in_executor(self._threads, _read, reader, found, request)
        started = time.perf_counter()
        running.add_done_callback(partial(self._end, session, found, request, started))
        return True

    def _end(
        self,
        session: Session,
        found: Command,
        request: list[bytes],
        started: float,
        running: asyncio.Future[bytes],
    ) -> None:
        """Answer a read that has ended, and run the next request of its client."""
        self._views.pop(session).records.close()
        if not self._views and self._ended is not None:
            self._ended.set()
        session.postponed = False
        service, seconds = self._service, time.perf_counter() - started
        found.add_time(int(seconds * 1e9))
        if seconds * 1e6 >= service.slow.threshold >= 0:
            service.slow.add(request, seconds, session.address, session.name)
        if not session.gone and not running.cancelled():
            session.write(running.result())
            session.on_unblocked()

    def cancel(self, session: Session) -> None:
        """End the read of a client that is gone."""
        view = self._views.get(session)
        if view is not None:
            view.records.deadline = 0.0

    async def drain(self) -> None:
        """Wait for all reads: the server ends.  Those that take too long are ended."""
        for patience in (_PATIENCE, _PATIENCE):
            if not self._views:
                break
            self._ended = asyncio.Event()
            try:
                await asyncio.wait_for(self._ended.wait(), patience)
            except TimeoutError:
                for session in self._views:
                    self.cancel(session)
        if self._threads is not None:
            self._threads.shutdown(wait=False)


def without_collections(call: Callable[[], bytes]) -> bytes:
    """Return the result of a call made with Python's cyclic garbage collector disabled.

    It would go through all that a command has in memory, again and again, and all threads would
    wait: 300 ms for 100,000 members.  A command makes no cycles of them.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return call()
    finally:
        if collects:
            gc.enable()


def _read(reader: Session, found: Command, request: list[bytes]) -> bytes:
    """The encoded reply of a command."""
    return without_collections(partial(_reply, reader, found, request))


def _reply(reader: Session, found: Command, request: list[bytes]) -> bytes:
    reply: Reply
    try:
        reply = found.handler(reader, request)
    except TooLong:
        return b""  # nobody still waits for it
    except CommandError as error:
        reply = error
    except Error as failure:
        _log.error("%s: %s", found.name, failure)
        reply = CommandError(f"ERR {type(failure).__name__}: {failure}")
    except Exception:
        _log.exception("%s failed", found.name)
        reply = CommandError("ERR internal error: the server's log has the details")
    found.failed += type(reply) is CommandError
    try:
        return encode_in_pieces(reply, reader.resp3, reader.space.records.look_at_time)
    except TooLong:
        return b""
