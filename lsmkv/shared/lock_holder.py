"""State of ``LOCK`` of a shared store, and its holder: :func:`look_at_lock`.

A process looks when it can neither join an owner nor be one (``joining.py``, which says what
follows from each state).
"""

from __future__ import annotations

import math
import os
import time
from enum import Enum
from typing import NamedTuple

from lsmkv.engine.env.base import Directory, Env
from lsmkv.engine.errors import raise_typed
from lsmkv.engine.format.filenames import LOCK, SHARED
from lsmkv.shared.system.local import place_of
from lsmkv.shared.system.shared_file import Head


class LockState(Enum):
    """The state of ``LOCK``."""

    NOBODY = 0
    """It is free, except for the members' parts."""
    UNKNOWN = 1
    """Its holder has all of it, and has not said that it shares the store."""
    SHARING = 2
    """Its holder shares the store: it recovers it, answers, or is closing it."""
    ELSEWHERE = 3
    """Its holder answers, in a network namespace that is not this process's."""


class Look(NamedTuple):
    """A look at ``LOCK``."""

    state: LockState
    holder: int
    """The process that holds it; 0 if none is known."""


def look_at_lock(env: Env, path: str) -> Look:
    """Look who holds the ``LOCK`` in a directory.  Takes no lock.  Raises :class:`IOError`."""
    try:
        with env.open_directory(path) as directory:
            holder = directory.lock_holder(LOCK)
            if holder is None:
                return Look(LockState.NOBODY, 0)
            head = _last_head(directory)
            is_shared = place_of(directory).is_lock_shared(LOCK)
    except FileNotFoundError:
        return Look(LockState.NOBODY, 0)  # there is no directory yet
    except OSError as error:
        raise_typed(error)
    # In another pid namespace a process may have this one's number, which is unknown to the lock.
    if head is not None and head.pid == (holder or os.getpid()):
        if head.ready and head.is_elsewhere:
            return Look(LockState.ELSEWHERE, holder)
        return Look(LockState.SHARING, holder)
    return Look(LockState.SHARING if is_shared else LockState.UNKNOWN, holder)


def _last_head(directory: Directory) -> Head | None:
    """Return the last owner's head; that owner may be another process than the holder."""
    try:
        file = place_of(directory).shared_file(SHARED, False)
    except FileNotFoundError:
        return None
    try:
        return file.read_head()
    finally:
        file.close()


class Wait:
    """Time limits of a process that waits while ``LOCK`` does not change."""

    def __init__(self, for_owner: float, for_unknown: float, longest: float = math.inf) -> None:
        """Seconds: for an owner, for a holder that may not share the store, and for everything
        together."""
        self._for_owner = for_owner
        self._for_unknown = for_unknown
        self._until = time.monotonic() + longest
        self._last: Look | None = None
        self._since = 0.0

    @property
    def left(self) -> float:
        """Seconds that are left in any case; ``math.inf`` without a limit."""
        return max(0.0, self._until - time.monotonic())

    def is_over(self, look: Look) -> bool:
        """Return True if no time is left, or the last looks were all the same, for too long."""
        if self.left == 0.0:
            return True
        if look != self._last:
            self._last = look
            self._since = time.monotonic()
        longest = self._for_unknown if look.state is LockState.UNKNOWN else self._for_owner
        return time.monotonic() - self._since > longest
