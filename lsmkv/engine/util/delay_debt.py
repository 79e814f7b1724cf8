"""Delays that are spread over many calls: :class:`DelayDebt`.

A call that is to be delayed by a few microseconds cannot sleep for so long: a sleep takes 60 us
more than it is asked for.  So each call *owes* its delay, and one that finds that a tenth of a
millisecond is owed sleeps for all of it.  Nearly every call is fast then, and the slowest ones take
no longer than they must.
"""

from __future__ import annotations

import time
from typing import Final

from lsmkv.engine.util.threads import pause

_LEAST: Final = 0.0001
"""Seconds below which no call sleeps."""
_MOST_OWED: Final = 0.01
"""Seconds above which nothing more is owed."""
_CREDIT: Final = 0.0002
"""Seconds by which a sleep may have been too long, for later calls to make up for it."""


class DelayDebt:
    """The delays owed by all threads together.  Any thread may call any method, without a lock.

    Each thread sleeps for itself, until its own call is due.  The calls of several threads
    are due one after another, so together they get no faster than one.
    """

    def __init__(self, longest: float) -> None:
        """``longest`` is for how many seconds a call sleeps at most; the next ones sleep for the
        rest."""
        self._longest = longest
        self._due = 0.0
        """The time at which all that is owed will have passed (``time.monotonic``)."""

    def owe(self, seconds: float) -> bool:
        """Owe so many seconds more, and sleep if enough is owed.  Returns whether it slept.

        Caller holds no lock.  Cost: the clock, 0.05 us, or the sleep.
        """
        now = time.monotonic()
        due = max(self._due, now - _CREDIT) + seconds
        self._due = min(due, now + _MOST_OWED)
        owed = due - now
        if owed < _LEAST:
            return False
        pause(min(owed, self._longest))
        return True
