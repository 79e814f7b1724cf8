"""CLIENT PAUSE: requests wait for a time.

A request that arrives during the pause is kept, and runs when it ends.  No later request of its
client runs before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from lsmkv.server.command import Command


class Postponable(Protocol):
    """The part of a session that a pause needs."""

    postponed: bool
    queued: list[tuple[Command, list[bytes]]] | None


class Pause:
    """A pause of requests: of all, or of those that write, until a time."""

    def __init__(self) -> None:
        self.active = False
        self._everything = False
        """True if all requests wait; False if only those that write do."""
        self._end = 0.0
        self._waiting: dict[Postponable, Callable[[], None]] = {}
        """Calls that run the waiting clients' requests, in order of arrival."""

    def __len__(self) -> int:
        """The number of clients that wait."""
        return len(self._waiting)

    def begin(self, seconds: float, everything: bool) -> None:
        """Pause clients.  This only extends and tightens an existing pause."""
        end = time.monotonic() + seconds
        self._end = max(end, self._end) if self.active else end
        self._everything = everything or (self.active and self._everything)
        self.active = True

    @property
    def left(self) -> float:
        """Seconds until its time has passed."""
        return self._end - time.monotonic()

    def postpones(self, session: Postponable, found: Command, run: Callable[[], None]) -> bool:
        """Postpone a request and return True if it must wait; ``run`` runs it later."""
        if not self._everything and not _may_write(session, found):
            return False
        session.postponed = True
        self._waiting[session] = run
        return True

    def end(self) -> list[Callable[[], None]]:
        """End the pause.  Returns what runs the requests that have waited."""
        self.active = self._everything = False
        waiting, self._waiting = self._waiting, {}
        for session in waiting:
            session.postponed = False
        return list(waiting.values())

    def remove(self, session: Postponable) -> None:
        """Forget the request of a client that is gone."""
        self._waiting.pop(session, None)


def _may_write(session: Postponable, found: Command) -> bool:
    if found.name == "EXEC":
        return any(one.may_write for one, _ in session.queued or ())
    return found.may_write
