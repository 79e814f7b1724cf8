"""Keeps the store near ``max-disk``: compacts it, evicts keys, or refuses commands.

``eviction.py`` says what happens when.  ``Server`` calls :meth:`DiskLimit.look` once a second.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from lsmkv.engine.errors import Error
from lsmkv.server.engine import Engine
from lsmkv.server.eviction import BURST, KEPT

_PAUSE: Final = 0.002
"""Seconds between two steps of eviction."""
_REST: Final = 10
"""The wait for the next compaction, in multiples of the duration of the last one."""
_HURRY: Final = 1.1
"""The part of the limit from which on it does not wait."""


class DiskLimit:
    """The limit of a server's store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._compacted_at = -1
        """The number of key changes at the last compaction of the store."""
        self._rests_until = 0.0
        self._ending = False

    @property
    def size(self) -> int:
        """The bytes of the tables, and of the writes that are not in them."""
        stats = self._engine.db.stats()
        return sum(level.bytes for level in stats.levels) + stats.memtable_bytes

    def end(self) -> None:
        """End a compaction that runs."""
        self._ending = True

    async def look(self) -> None:
        """Compare the store with its limit, and do what that needs.

        Raises the store's errors.
        """
        engine, limit = self._engine, self._engine.settings.max_disk
        size = self.size
        if limit == 0 or size <= limit:
            engine.refuse_growth(False)
            return
        if size > BURST * limit:
            engine.refuse_growth(True)
        changes = engine.space.changes
        rests = time.monotonic() < self._rests_until and size < _HURRY * limit
        if changes == self._compacted_at or rests:
            return
        await self._compact()
        self._compacted_at = changes
        size = self.size
        excess = int(size - KEPT * limit)
        evicted = excess > 0 and engine.eviction.evicts and await self._evict(excess)
        engine.refuse_growth(size > limit and not evicted)

    async def _compact(self) -> None:
        """Compact the store once what was removed is swept, in a thread."""
        while self._engine.space.garbage_ranges:
            await asyncio.sleep(0.05)
        started = time.monotonic()
        compacting = asyncio.to_thread(self._engine.db.compact_range, progress=self._go_on)
        await compacting
        ended = time.monotonic()
        self._rests_until = ended + _REST * (ended - started)

    def _go_on(self, done: int, total: int, level: object) -> None:
        """Called in the thread that compacts."""
        if self._ending:
            raise Error("the server ends")

    async def _evict(self, size: int) -> bool:
        """Evict keys that take this many bytes.  Returns whether there were any."""
        engine = self._engine
        before = engine.space.evicted
        engine.eviction.owe(size)
        while engine.eviction.owed > 0:
            if engine.is_busy() or engine.space.failing:
                await asyncio.sleep(0.1)
                continue
            if not engine.evict_once():
                break
            await asyncio.sleep(_PAUSE)
        return engine.space.evicted > before
