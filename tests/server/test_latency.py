"""The longest delays by event, for LATENCY."""

from __future__ import annotations

import time

import pytest

from lsmkv.server.latency import Latencies


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def test_the_longest_of_a_second_is_kept(clock: list[float]) -> None:
    latencies = Latencies()
    for milliseconds in (5, 9, 7):
        latencies.add("command", milliseconds * 1_000_000)
    clock[0] += 1
    latencies.add("command", 6_999_999)
    assert latencies.history("command") == [(1000, 9), (1001, 6)]
    assert latencies.latest() == [("command", (1001, 6), 9)]
    assert latencies.history("other") == []


def test_the_last_samples_are_kept(clock: list[float]) -> None:
    latencies = Latencies()
    for _ in range(200):
        clock[0] += 1
        latencies.add("command", 2_000_000)
    history = latencies.history("command")
    assert (len(history), history[-1].time) == (160, 1200)


def test_events_are_forgotten() -> None:
    latencies = Latencies()
    for event in ("command", "aof-write", "expire-cycle"):
        latencies.add(event, 1_000_000)
    assert latencies.reset(["command", "nothing", "command"]) == 1
    assert [event for event, _, _ in latencies.latest()] == ["aof-write", "expire-cycle"]
    assert latencies.reset([]) == 2
    assert latencies.latest() == []


def test_advice() -> None:
    latencies = Latencies()
    assert "off" in latencies.advice(0)
    assert latencies.advice(5) == "No event took 5 ms or longer.\n"
    latencies.add("aof-write", 8_000_000)
    latencies.add("another", 6_000_000)
    advice = latencies.advice(5)
    assert "aof-write: 1 samples, mean 8 ms, longest 8 ms" in advice
    assert "write_stalls" in advice
    assert "another: 1 samples" in advice
