"""Who gets which message."""

from __future__ import annotations

from typing import Any

import pytest

from lsmkv.server.globs import _kept as kept
from lsmkv.server.pubsub import CHANNEL, PATTERN, SHARD, Channels
from lsmkv.server.resp import CommandError


class Listener:
    def __init__(self) -> None:
        self.subscriptions: list[set[bytes]] = [set(), set(), set()]
        self.heard: list[Any] = []

    def push(self, message: list[Any], /) -> None:
        self.heard.append(message)


def test_messages_go_to_channels_and_patterns() -> None:
    channels, one, other = Channels(), Listener(), Listener()
    channels.join(one, b"news", CHANNEL)
    channels.join(one, b"n*", PATTERN)
    channels.join(other, b"n?ws", PATTERN)
    channels.join(other, b"other", CHANNEL)
    assert channels.publish(b"news", b"hi") == 3
    assert one.heard == [[b"message", b"news", b"hi"], [b"pmessage", b"n*", b"news", b"hi"]]
    assert other.heard == [[b"pmessage", b"n?ws", b"news", b"hi"]]
    assert channels.publish(b"none", b"hi") == 1
    assert channels.publish(b"else", b"hi") == 0


def test_joining_twice_is_joining_once() -> None:
    channels, one = Channels(), Listener()
    for _ in range(2):
        channels.join(one, b"a", CHANNEL)
    assert channels.publish(b"a", b"") == 1
    channels.leave(one, b"a", CHANNEL)
    assert channels.publish(b"a", b"") == 0
    channels.leave(one, b"a", CHANNEL)
    assert one.subscriptions == [set(), set(), set()]


def test_nothing_is_left_of_those_who_leave() -> None:
    channels, one, other = Channels(), Listener(), Listener()
    for listener in (one, other):
        channels.join(listener, b"a", CHANNEL)
        channels.join(listener, b"a", PATTERN)
        channels.join(listener, b"a", SHARD)
    channels.leave_all(one)
    assert one.subscriptions == [set(), set(), set()]
    assert channels.publish(b"a", b"") == 2
    assert channels.publish_to_shard(b"a", b"") == 1
    channels.leave_all(other)
    assert channels.subscribers == [{}, {}, {}]
    assert one.heard == []


def test_too_long_a_pattern_is_not_joined() -> None:
    channels, one = Channels(), Listener()
    with pytest.raises(CommandError, match="pattern"):
        channels.join(one, b"*" * 70_000, PATTERN)
    assert one.subscriptions == [set(), set(), set()]
    assert channels.subscribers == [{}, {}, {}]
    assert channels.publish(b"a", b"") == 0


def test_a_pattern_is_made_a_function_once() -> None:
    channels, one = Channels(), Listener()
    for number in range(400):  # more than are kept of all patterns
        channels.join(one, b"%d?" % number, PATTERN)
    made = kept.cache_info().misses
    assert channels.publish(b"39x", b"") == 1
    assert kept.cache_info().misses == made
