"""Subscriptions.  Messages go to the current subscribers and are not stored.

Redis spreads shard channels over a cluster.  Here they are channels with separate names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from lsmkv.server.globs import matcher
from lsmkv.server.resp import Reply

CHANNEL: Final = 0
PATTERN: Final = 1
SHARD: Final = 2


class Subscriber(Protocol):
    """The part of a session that messages need."""

    subscriptions: list[set[bytes]]
    """The names of channels, patterns and shard channels."""

    def push(self, message: list[Reply], /) -> None:
        """Send a message."""


class Channels:
    """The subscribers of channels and of patterns, in the order of their subscriptions."""

    def __init__(self) -> None:
        self.subscribers: list[dict[bytes, dict[Subscriber, None]]] = [{}, {}, {}]
        """Those of channels, of patterns and of shard channels."""
        self._matchers: dict[bytes, Callable[[bytes], bool]] = {}
        """The patterns as functions: compiling one costs far more than calling it."""

    def join(self, session: Subscriber, name: bytes, kind: int) -> None:
        """Subscribe; no effect if subscribed.  ``CommandError`` for too long a pattern."""
        if kind == PATTERN and name not in self._matchers:
            self._matchers[name] = matcher(name)
        session.subscriptions[kind].add(name)
        self.subscribers[kind].setdefault(name, {})[session] = None

    def leave(self, session: Subscriber, name: bytes, kind: int) -> None:
        """End a subscription; no effect if there is none."""
        session.subscriptions[kind].discard(name)
        members = self.subscribers[kind].get(name)
        if members is not None:
            members.pop(session, None)
            if not members:
                del self.subscribers[kind][name]
                if kind == PATTERN:
                    del self._matchers[name]

    def leave_all(self, session: Subscriber) -> None:
        """End all subscriptions of a session."""
        for kind in (CHANNEL, PATTERN, SHARD):
            for name in list(session.subscriptions[kind]):
                self.leave(session, name, kind)

    def publish_to_shard(self, channel: bytes, message: bytes) -> int:
        """Send a message to the subscribers of a shard channel.  Returns their number."""
        members = list(self.subscribers[SHARD].get(channel, ()))
        for session in members:
            session.push([b"smessage", channel, message])
        return len(members)

    def publish(self, channel: bytes, message: bytes) -> int:
        """Send a message.  Returns the number of recipients.  O(subscribers + patterns).

        A script may call this in a thread, while subscribers leave.
        """
        count = 0
        for session in list(self.subscribers[CHANNEL].get(channel, ())):
            session.push([b"message", channel, message])
            count += 1
        for pattern, members in list(self.subscribers[PATTERN].items()):
            matches = self._matchers.get(pattern)
            if matches is not None and matches(channel):
                for session in list(members):
                    session.push([b"pmessage", pattern, channel, message])
                    count += 1
        return count
