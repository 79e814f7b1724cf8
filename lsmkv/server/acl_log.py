"""ACL LOG: the requests and logins that were refused, newest first."""

from __future__ import annotations

import time
from collections import deque

from lsmkv.server.settings import Settings

_TOGETHER = 60.0
"""Seconds within which equal refusals are counted in one entry."""
_LOOKED_AT = 10
"""The newest entries, among which an equal one is looked for."""

_LONGEST = 1024
"""Bytes of a name that are kept: a client chooses it."""


class Refusal:
    """An entry of the log."""

    def __init__(self, reason: str, context: str, name: bytes, user: bytes) -> None:
        self.reason = reason
        """``command``, ``key``, ``channel`` or ``auth``."""
        self.context = context
        """``toplevel``, ``multi`` or ``lua``."""
        self.name = name[:_LONGEST]
        """The refused name: a key, a channel or a command; for ``auth`` the command."""
        self.user = user[:_LONGEST]
        self.count = 0
        self.time = 0.0
        """Seconds since 1970, of the last one."""
        self.client = ""
        """Its line of CLIENT LIST."""

    def equals(self, other: Refusal) -> bool:
        """True if both are counted in one entry, provided that they are close enough in time."""
        return (self.reason, self.context, self.name, self.user) == (
            *(other.reason, other.context, other.name, other.user),
        )


class AclLog:
    """The last refusals."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.refusals: deque[Refusal] = deque()

    def add(self, made: Refusal, client: str) -> None:
        """Log a refusal of a client.  A script may call this in a thread."""
        now = time.time()
        for one in list(self.refusals)[:_LOOKED_AT]:
            if one.equals(made) and now - one.time <= _TOGETHER:
                self.refusals.remove(one)
                made = one
                break
        made.count += 1
        made.time = now
        made.client = client
        self.refusals.appendleft(made)
        while len(self.refusals) > self._settings.acl_log_length:
            self.refusals.pop()
