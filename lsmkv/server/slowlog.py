"""SLOWLOG: the slow commands, newest first."""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from lsmkv.server.settings import Settings

_MOST_ARGUMENTS = 32
_LONGEST_ARGUMENT = 128


class SlowCommand(NamedTuple):
    """An entry of the slow log."""

    number: int
    time: int
    """Seconds since 1970."""
    microseconds: int
    request: list[bytes]
    """Truncated to 32 arguments of 128 bytes."""
    address: str
    client: bytes


class SlowLog:
    """The last commands that took at least ``slowlog-log-slower-than`` microseconds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._count = 0
        self.commands: deque[SlowCommand] = deque()

    @property
    def threshold(self) -> int:
        """Microseconds; negative to keep nothing."""
        return self._settings.slowlog_slower_than

    def add(self, request: list[bytes], seconds: float, address: str, client: bytes) -> None:
        """Keep a command if it took long enough."""
        shortened = [_shortened(argument) for argument in request[:_MOST_ARGUMENTS]]
        if len(request) > _MOST_ARGUMENTS:
            left = len(request) - _MOST_ARGUMENTS + 1
            shortened[-1] = b"... (%d more arguments)" % left
        entry = SlowCommand(
            self._count, int(time.time()), int(seconds * 1e6), shortened, address, client
        )
        self._count += 1
        self.commands.appendleft(entry)
        while len(self.commands) > self._settings.slowlog_length:
            self.commands.pop()


def _shortened(argument: bytes) -> bytes:
    left = len(argument) - _LONGEST_ARGUMENT
    if left <= 0:
        return argument
    return argument[:_LONGEST_ARGUMENT] + b"... (%d more bytes)" % left


def without_secrets(request: list[bytes]) -> list[bytes]:
    """A request with its secrets redacted, for display.

    >>> without_secrets([b"AUTH", b"secret"]), without_secrets([b"GET", b"k"])
    ([b'AUTH', b'(redacted)'], [b'GET', b'k'])
    """
    name = request[0].upper()
    if name == b"AUTH":
        places = set(range(1, len(request)))
    elif name == b"HELLO":
        named = [at for at, word in enumerate(request) if word.upper() == b"AUTH"]
        places = {at + behind for at in named for behind in (1, 2)}
    elif name == b"CONFIG":
        places = {at + 1 for at, word in enumerate(request) if word.lower() == b"requirepass"}
    elif name == b"ACL" and request[1:] and request[1].upper() == b"SETUSER":
        places = set(range(2, len(request)))
    else:
        return request
    return [b"(redacted)" if at in places else word for at, word in enumerate(request)]
