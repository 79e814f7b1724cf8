"""The slow log."""

from __future__ import annotations

from lsmkv.server.settings import Settings
from lsmkv.server.slowlog import SlowLog


def test_the_newest_are_kept() -> None:
    settings = Settings(slowlog_length=2)
    slow = SlowLog(settings)
    for number in range(3):
        slow.add([b"GET", b"%d" % number], 0.25, "address", b"name")
    assert [(one.number, one.request) for one in slow.commands] == [
        (2, [b"GET", b"2"]),
        (1, [b"GET", b"1"]),
    ]
    assert slow.commands[0][2:] == (250_000, [b"GET", b"2"], "address", b"name")
    settings.slowlog_length = 0
    slow.add([b"GET"], 1, "", b"")
    assert not slow.commands


def test_long_requests_are_shortened() -> None:
    slow = SlowLog(Settings())
    slow.add([b"a" * 128, b"b" * 130, *[b"c"] * 40], 1, "", b"")
    shown = slow.commands[0].request
    assert len(shown) == 32
    assert shown[:3] == [b"a" * 128, b"b" * 128 + b"... (2 more bytes)", b"c"]
    assert shown[-1] == b"... (11 more arguments)"
    slow.add([b"c"] * 32, 1, "", b"")
    assert slow.commands[0].request == [b"c"] * 32


def test_the_threshold_is_the_setting() -> None:
    settings = Settings(slowlog_slower_than=5)
    slow = SlowLog(settings)
    assert slow.threshold == 5
    settings.change([("slowlog-log-slower-than", "-1")])
    assert slow.threshold == -1
