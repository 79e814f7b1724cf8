"""Subscriptions.  Messages go to the current subscribers and are not stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lsmkv.server.globs import matcher
from lsmkv.server.resp import Reply


class Subscriber(Protocol):
    """The part of a session that messages need."""

    channels: set[bytes]
    patterns: set[bytes]

    def push(self, message: list[Reply], /) -> None:
        """Send a message."""


class Channels:
    """The subscribers of channels and of patterns, in the order of their subscriptions."""

    def __init__(self) -> None:
        self.channels: dict[bytes, dict[Subscriber, None]] = {}
        self.patterns: dict[bytes, dict[Subscriber, None]] = {}
        self._matchers: dict[bytes, Callable[[bytes], bool]] = {}
        """The patterns as functions: compiling one costs far more than calling it."""

    def join(self, session: Subscriber, name: bytes, pattern: bool) -> None:
        """Subscribe; no effect if subscribed.  ``CommandError`` for too long a pattern."""
        if pattern and name not in self._matchers:
            self._matchers[name] = matcher(name)
        (session.patterns if pattern else session.channels).add(name)
        (self.patterns if pattern else self.channels).setdefault(name, {})[session] = None

    def leave(self, session: Subscriber, name: bytes, pattern: bool) -> None:
        """End a subscription; no effect if there is none."""
        (session.patterns if pattern else session.channels).discard(name)
        table = self.patterns if pattern else self.channels
        members = table.get(name)
        if members is not None:
            members.pop(session, None)
            if not members:
                del table[name]
                if pattern:
                    del self._matchers[name]

    def leave_all(self, session: Subscriber) -> None:
        """End all subscriptions of a session."""
        for name in list(session.channels):
            self.leave(session, name, pattern=False)
        for name in list(session.patterns):
            self.leave(session, name, pattern=True)

    def publish(self, channel: bytes, message: bytes) -> int:
        """Send a message.  Returns the number of recipients.  O(subscribers + patterns).

        A script may call this in a thread, while subscribers leave.
        """
        count = 0
        for session in list(self.channels.get(channel, ())):
            session.push([b"message", channel, message])
            count += 1
        for pattern, members in list(self.patterns.items()):
            matches = self._matchers.get(pattern)
            if matches is not None and matches(channel):
                for session in list(members):
                    session.push([b"pmessage", pattern, channel, message])
                    count += 1
        return count
