"""Syncs of the log, and the replies that wait for them.

With ``appendfsync always`` a reply leaves once the writes before it are durable.  With ``everysec``
there is a sync every second, and no reply waits.  Syncs run in a thread, one at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lsmkv.engine.db.db import DB
from lsmkv.engine.errors import Error
from lsmkv.server.resp import CommandError, encode
from lsmkv.server.saves import Saves
from lsmkv.server.session import Session
from lsmkv.server.settings import Settings


class _Held:
    """Output that waits for a sync."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.parts = session.out.copy()
        self.unwritten = session.unwritten.copy()
        """The indexes in ``out`` of replies to writes."""
        self.transactional = session.transactional.copy()
        """The indexes in ``out`` of those that depend on a transaction's writes."""
        self.size = session.out_size
        session.held += 1
        session.held_size += self.size
        session.forget_output()

    def release(self) -> bytes:
        """Release the output: the session no longer waits for it."""
        self.session.held -= 1
        self.session.held_size -= self.size
        return b"".join(self.parts)

    def refuse_writes(self, refusal: bytes) -> None:
        """Replace the replies to writes with an error, after a failed sync."""
        for at in self.unwritten:
            self.parts[at] = refusal
        for at in self.transactional:
            self.parts[at] = b""

    def drop(self) -> None:
        """Drop the output of a lost connection."""
        self.parts.clear()
        self.unwritten.clear()
        self.transactional.clear()


class Syncs:
    """The syncs of a store.

    ``send`` sends output of a session, and ``fail`` notes why writes are not durable; it returns
    the error with which they are answered.
    """

    def __init__(
        self,
        db: DB,
        settings: Settings,
        writable: bool,
        send: Callable[[Session, bytes], None],
        fail: Callable[[BaseException], CommandError],
        saves: Saves,
    ) -> None:
        self._db = db
        self._settings = settings
        self._writable = writable
        self._send = send
        self._fail = fail
        self._saves = saves
        self.needed = False
        """True if anything was written since the last sync began."""
        self._held: list[_Held] = []
        self._syncing: asyncio.Future[None] | None = None

    @property
    def waited_for(self) -> bool:
        """True if output waits for a sync."""
        return bool(self._held)

    @property
    def running(self) -> bool:
        """True while a sync runs for which output waits."""
        return self._syncing is not None

    def hold(self, session: Session) -> None:
        """Keep the output of a session until a sync that :meth:`start` starts has ended."""
        self._held.append(_Held(session))

    def drop(self, session: Session) -> None:
        """Drop the output of a session whose connection is gone."""
        for held in self._held:
            if held.session is session:
                held.drop()

    def start(self) -> None:
        """Sync for the output that is held, after the sync that runs now."""
        if self._syncing is None:
            self.needed = False
            count, written = len(self._held), self._saves.written
            loop = asyncio.get_running_loop()
            self._syncing = loop.run_in_executor(None, self._db.sync)
            self._syncing.add_done_callback(lambda done: self._end(done, count, written))

    def _end(self, done: asyncio.Future[None], count: int, written: int) -> None:
        """Release the replies whose writes are now durable, and sync for later writes."""
        self._syncing = None
        error = None if done.cancelled() else done.exception()
        released, self._held = self._held[:count], self._held[count:]
        if error is not None:
            refusal = encode(self._fail(error))
            for held in released:
                held.refuse_writes(refusal)
        elif not done.cancelled():
            self._saves.end(written)
        for held in released:
            self._send(held.session, held.release())
        if self._held:
            self.start()

    async def sync(self) -> None:
        """Wait until all earlier writes are durable.  Raises what ``DB.sync`` raises."""
        if self._writable:
            self.needed = False
            written = self._saves.written
            await asyncio.get_running_loop().run_in_executor(None, self._db.sync)
            self._saves.end(written)

    async def drain(self) -> None:
        """Wait until every reply that a sync holds back is sent.  Then sync what is left."""
        while self._syncing is not None:
            await asyncio.wait([self._syncing])
            await asyncio.sleep(0)
        if self.needed and self._settings.appendfsync != "no":
            await self.sync()

    async def every_second(self) -> None:
        """Sync for ``appendfsync everysec``."""
        while True:
            await asyncio.sleep(1)
            if self.needed and self._settings.appendfsync == "everysec":
                try:
                    await self.sync()
                except (Error, OSError) as error:
                    self.needed = True
                    self._fail(error)
