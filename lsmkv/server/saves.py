"""The number of durable key changes, and the time of the last sync."""

from __future__ import annotations

import time


class Saves:
    """Counts what syncs have made durable.

    Call order: ``written = n``, then ``end(written)`` of what it was when the sync began.
    """

    def __init__(self) -> None:
        self.time = int(time.time())
        """The time at which the last sync ended, or the server started: seconds since 1970."""
        self.written = 0
        """Changes that are in the log."""
        self.durable = 0
        """The number of changes that a sync has made durable."""

    def end(self, written: int) -> None:
        """Note the end of a sync that began when ``written`` changes were in the log."""
        self.time = int(time.time())
        self.durable = max(self.durable, written)
