"""Which entries were read lately: :class:`Recency`, in memory until a batch is worth writing.

A read notes the entry, which costs no write.  Every so often the notes become one step that moves
the entries in the order of eviction.  With ``"least-recently-used"`` an entry that was stored or
moved within the last ``recency`` seconds is not noted.  With ``"least-frequently-used"`` the reads
are counted.  What was noted and not written is lost if the process is killed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from lsmkv.cache.atomic_steps import Step, Steps
from lsmkv.cache.entries import move
from lsmkv.cache.entry_head import START
from lsmkv.cache.keys import (
    NUMBER_SIZE,
    POSITION_SIZE,
    count_position,
    order_key,
    position_number,
)
from lsmkv.engine.errors import Error

MOST_NOTES: Final = 1000
"""Notes that are written at once, at the latest."""
MOST_KNOWN: Final = 1 << 14
"""Entries of which a handle remembers when they were noted last."""
_BATCH: Final = 100
"""Entries that one step moves."""


class Recency:
    """The notes of one handle.  Any thread may call any method."""

    def __init__(self, steps: Steps, recency: float, clock: Callable[[], float]) -> None:
        self._steps = steps
        self._clock = clock
        self.recency = recency
        """Seconds within which an entry is not moved twice."""
        self._uses: dict[bytes, float] = {}
        self._counts: dict[bytes, int] = {}
        self._known: dict[bytes, float] = {}
        self._since = 0.0

    def note_use(self, data: bytes, now: float) -> None:
        """An entry was read, of which ``data`` is the head, under ``"least-recently-used"``.

        ``now`` is 0.0 if the caller has not asked the clock.  The read has succeeded: if the store
        fails, it keeps an older order.
        """
        try:
            stored: float = START.unpack_from(data)[2]
            self.used(data[1 : 1 + NUMBER_SIZE], stored, now or self._clock())
        except (Error, OSError, struct.error):
            pass

    def note_count(self, data: bytes, now: float) -> None:
        """The same under ``"least-frequently-used"``."""
        try:
            self.counted(data[1 : 1 + NUMBER_SIZE], now or self._clock())
        except (Error, OSError):
            pass

    def used(self, number: bytes, stored: float, now: float) -> None:
        """An entry was read, under ``"least-recently-used"``."""
        recency = self.recency
        if recency == 0:
            self._uses[number] = now
            self.write()
            return
        since = now - recency
        if since < stored <= now:  # a later time is that of a clock that has been set back since
            return
        known = self._known
        if since < known.get(number, -1.0) <= now:
            return
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[number] = now
        uses = self._uses
        if not uses:
            self._since = now
        uses[number] = now
        if len(uses) >= MOST_NOTES or not 0 <= now - self._since <= recency:
            self.write()

    def counted(self, number: bytes, now: float) -> None:
        """An entry was read, under ``"least-frequently-used"``."""
        counts = self._counts
        if not counts:
            self._since = now
        counts[number] = counts.get(number, 0) + 1
        is_recent = self.recency > 0 and 0 <= now - self._since <= self.recency
        if len(counts) >= MOST_NOTES or not is_recent:
            self.write()

    def write(self) -> None:
        """Move what was noted."""
        uses, self._uses = self._uses, {}
        counts, self._counts = self._counts, {}
        with self._steps.lock:
            position = self._steps.position
            moves = [(number, position(time)) for number, time in uses.items()]
        for begin in range(0, len(moves), _BATCH):
            part = moves[begin : begin + _BATCH]
            self._steps.run(lambda step: _move_all(step, part))  # noqa: B023 - called at once
        added = list(counts.items())
        for begin in range(0, len(added), _BATCH):
            some = added[begin : begin + _BATCH]
            self._steps.run(lambda step: _add_all(step, some))  # noqa: B023 - called at once

    def forget(self) -> None:
        """Drop the notes: those of another process after a fork, or of another policy."""
        self._uses, self._counts, self._known = {}, {}, {}


def _move_all(step: Step, moves: list[tuple[bytes, bytes]]) -> None:
    for number, position in moves:
        move(step, number, position)


def _add_all(step: Step, counts: list[tuple[bytes, int]]) -> None:
    for number, count in counts:
        entry = step.get(order_key(number))
        if entry is not None:
            before = position_number(entry[:POSITION_SIZE])
            move(step, number, count_position(before + count))
