"""Recent reads of entries: :class:`Recency`, in memory until a batch is worth writing.

A read notes the entry, which costs no write.  From time to time the notes become one step.  With
``"least-recently-used"`` it marks the entries as read (:func:`lsmkv.cache.culling.evict_first`).
One that was stored or marked within the last ``recency`` seconds, or within a fourth of the time
that entries stay, is not noted.  With ``recency=0`` each read immediately puts its entry last in
the order of eviction.  With ``"least-frequently-used"`` the reads are counted.  Unwritten notes are
lost if the process is killed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from lsmkv.cache.atomic_steps import Step, Steps
from lsmkv.cache.entries import mark_read, move, renew
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
"""The most notes before they are written."""
MOST_KNOWN: Final = 1 << 14
"""Entries of which a handle remembers when they were noted last."""
_BATCH: Final = 100
"""Entries that one step marks or moves."""
_YOUNG: Final = 0.25
"""The share of the time that entries stay in which a read is not noted: it is too early to matter.
A fourth of the entries is that young."""
_LEAST_PERIOD: Final = 0.1
"""Seconds that pass between two batches of a few notes, however soon entries go."""
_LOOK_EVERY: Final = 1.0
"""Seconds after which a handle looks again how long entries stay."""


class Recency:
    """The notes of one handle.  Any thread may call any method."""

    def __init__(
        self,
        steps: Steps,
        recency: float,
        clock: Callable[[], float],
        stay: Callable[[float], float],
    ) -> None:
        """``stay`` returns the seconds that entries stay, for the time that it is given."""
        self._steps = steps
        self._stay = stay
        self._next_look = clock() + _LOOK_EVERY
        self._clock = clock
        self.recency = recency
        """Seconds to which the order of eviction is exact, at the most."""
        self._period = recency
        """Seconds within which an entry is not noted twice."""
        self._uses: dict[bytes, float] = {}
        self._counts: dict[bytes, int] = {}
        self._known: dict[bytes, float] = {}
        self._since = 0.0

    def note_use(self, data: bytes, now: float) -> None:
        """Note a read of an entry, of which ``data`` is the head, under ``"least-recently-used"``.

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
        """Note a read of an entry, under ``"least-recently-used"``."""
        if self.recency == 0:
            self._uses[number] = now
            self.write()
            return
        if not self._next_look - _LOOK_EVERY <= now < self._next_look:
            self._next_look = now + _LOOK_EVERY
            self._period = min(self.recency, max(self._stay(now), 0.0) * _YOUNG)
        period = self._period
        since = now - period
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
        if len(uses) >= MOST_NOTES or not 0 <= now - self._since <= max(period, _LEAST_PERIOD):
            self.write()

    def counted(self, number: bytes, now: float) -> None:
        """Count a read of an entry, under ``"least-frequently-used"``."""
        counts = self._counts
        if not counts:
            self._since = now
        counts[number] = counts.get(number, 0) + 1
        is_recent = self.recency > 0 and 0 <= now - self._since <= self.recency
        if len(counts) >= MOST_NOTES or not is_recent:
            self.write()

    def write(self) -> None:
        """Write the notes."""
        uses, self._uses = self._uses, {}
        counts, self._counts = self._counts, {}
        notes = list(uses.items())
        change = renew if self.recency == 0 else _mark
        for begin in range(0, len(notes), _BATCH):
            part = notes[begin : begin + _BATCH]
            self._steps.run(lambda step: _change_all(step, part, change))  # noqa: B023 - called at once
        added = list(counts.items())
        for begin in range(0, len(added), _BATCH):
            some = added[begin : begin + _BATCH]
            self._steps.run(lambda step: _add_all(step, some))  # noqa: B023 - called at once

    def forget(self) -> None:
        """Drop the notes: those of another process after a fork, or of another policy."""
        self._uses, self._counts, self._known = {}, {}, {}


def _change_all(
    step: Step, notes: list[tuple[bytes, float]], change: Callable[[Step, bytes, float], object]
) -> None:
    for number, now in notes:
        change(step, number, now)


def _mark(step: Step, number: bytes, _now: float) -> None:
    mark_read(step, number)


def _add_all(step: Step, counts: list[tuple[bytes, int]]) -> None:
    for number, count in counts:
        entry = step.get(order_key(number))
        if entry is not None:
            before = position_number(entry[:POSITION_SIZE])
            move(step, number, count_position(before + count))
