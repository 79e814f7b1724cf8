"""Who gets which message."""

from __future__ import annotations

from typing import Any

from lsmkv.server.pubsub import Channels


class Listener:
    def __init__(self) -> None:
        self.channels: set[bytes] = set()
        self.patterns: set[bytes] = set()
        self.heard: list[Any] = []

    def push(self, message: list[Any], /) -> None:
        self.heard.append(message)


def test_messages_go_to_channels_and_patterns() -> None:
    channels, one, other = Channels(), Listener(), Listener()
    channels.join(one, b"news", pattern=False)
    channels.join(one, b"n*", pattern=True)
    channels.join(other, b"n?ws", pattern=True)
    channels.join(other, b"other", pattern=False)
    assert channels.publish(b"news", b"hi") == 3
    assert one.heard == [[b"message", b"news", b"hi"], [b"pmessage", b"n*", b"news", b"hi"]]
    assert other.heard == [[b"pmessage", b"n?ws", b"news", b"hi"]]
    assert channels.publish(b"none", b"hi") == 1
    assert channels.publish(b"else", b"hi") == 0


def test_joining_twice_is_joining_once() -> None:
    channels, one = Channels(), Listener()
    for _ in range(2):
        channels.join(one, b"a", pattern=False)
    assert channels.publish(b"a", b"") == 1
    channels.leave(one, b"a", pattern=False)
    assert channels.publish(b"a", b"") == 0
    channels.leave(one, b"a", pattern=False)
    assert one.channels == set()


def test_nothing_is_left_of_those_who_leave() -> None:
    channels, one, other = Channels(), Listener(), Listener()
    for listener in (one, other):
        channels.join(listener, b"a", pattern=False)
        channels.join(listener, b"a", pattern=True)
    channels.leave_all(one)
    assert (one.channels, one.patterns) == (set(), set())
    assert channels.publish(b"a", b"") == 2
    channels.leave_all(other)
    assert (channels.channels, channels.patterns) == ({}, {})
    assert one.heard == []
