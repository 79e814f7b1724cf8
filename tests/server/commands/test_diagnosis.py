"""LATENCY and MEMORY."""

from __future__ import annotations

import pytest
from serving import Client, an_engine


def test_delays_are_noted_from_a_threshold_on(client: Client) -> None:
    client.engine.note_latency("command", 50_000_000)
    assert client("LATENCY LATEST") == []
    client("CONFIG SET latency-monitor-threshold 10")
    client.engine.note_latency("command", 50_000_000)
    client.engine.note_latency("aof-write", 9_000_000)
    ((event, time, last, longest),) = client("LATENCY LATEST")
    assert (event, last, longest) == (b"command", 50, 50)
    assert client("LATENCY HISTORY command") == [[time, 50]]
    assert client("LATENCY HISTORY none") == []
    assert b"longest 50 ms" in client("LATENCY DOCTOR")
    assert client("LATENCY RESET none") == 0
    assert client("LATENCY RESET command") == 1
    assert client("LATENCY LATEST") == []


def test_a_slow_command_is_noted_with_its_kind() -> None:
    with an_engine(latency_threshold=1, slowlog_slower_than=-1) as engine:
        client = Client(engine)
        engine.settings.notable = 0
        engine.settings.latency_threshold = 1
        client("PING")
        assert client("LATENCY LATEST") == []  # it took less than a millisecond
        engine.call(client.session, engine.table[b"PING"], [b"PING"])
        engine._note_slow(client.session, engine.table[b"PING"], [b"PING"], 2_000_000)
        engine._note_slow(client.session, engine.table[b"SORT"], [b"SORT"], 3_000_000)
        assert [one[::2] for one in client("LATENCY LATEST")] == [
            [b"command", 3],
            [b"fast-command", 2],
        ]
        assert client("SLOWLOG LEN") == 0


def test_histograms_count_up_to_each_power_of_two(client: Client) -> None:
    client("CONFIG RESETSTAT")
    found = client.engine.table[b"GET"]
    for microseconds in (0.5, 1.5, 1.9, 3, 100):
        found.note_call(int(microseconds * 1000))
    reply = client("LATENCY HISTOGRAM get nothing set")
    assert reply == [
        *(b"get", [b"calls", 5, b"histogram_usec", [1, 1, 2, 3, 4, 4, 128, 5]]),
    ]
    client("CONFIG GET maxclients")
    every = client("LATENCY HISTOGRAM")
    assert {b"get", b"config|get", b"config|resetstat"} <= set(every[::2])
    assert client("LATENCY HISTOGRAM config|get")[0] == b"config|get"
    assert client("LATENCY HISTOGRAM config")[::2] == [b"config|get", b"config|resetstat"]


@pytest.mark.parametrize("section", ["DOCTOR", "MALLOC-STATS"])
def test_reports_of_memory(client: Client, section: str) -> None:
    assert client(f"MEMORY {section}").endswith(b".\n")


def test_figures_of_memory(client: Client) -> None:
    client("MSET a 1 b 2")
    stats = client("MEMORY STATS")
    found = dict(zip(stats[::2], stats[1::2], strict=True))
    assert found[b"keys.count"] == 2
    assert found[b"peak.allocated"] >= found[b"startup.allocated"] > 0
    assert found[b"total.allocated"] >= found[b"dataset.bytes"] > 0
    assert client("MEMORY PURGE") == "OK" or client("MEMORY PURGE") == b"OK"
