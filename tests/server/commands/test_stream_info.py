"""XINFO."""

from __future__ import annotations

from typing import Any

from serving import Client


def fields(reply: list[Any]) -> dict[bytes, Any]:
    return dict(zip(reply[::2], reply[1::2], strict=True))


def test_streams(client: Client) -> None:
    for number in range(1, 251):
        client(f"XADD x {number} f v")
    client("XDEL x 7")
    found = fields(client("XINFO STREAM x"))
    assert found == {
        b"length": 249,
        b"radix-tree-keys": 3,
        b"radix-tree-nodes": 4,
        b"last-generated-id": b"250-0",
        b"max-deleted-entry-id": b"7-0",
        b"entries-added": 250,
        b"recorded-first-entry-id": b"1-0",
        b"groups": 0,
        b"first-entry": [b"1-0", [b"f", b"v"]],
        b"last-entry": [b"250-0", [b"f", b"v"]],
    }
    client("XTRIM x MAXLEN 0")
    found = fields(client("XINFO STREAM x"))
    assert (found[b"first-entry"], found[b"recorded-first-entry-id"]) == (None, b"0-0")
    unknown = "ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP."
    client.plays(
        ("XINFO STREAM x FULL COUNT", unknown),
        ("XINFO STREAM x HALF", unknown),
        ("XINFO STREAM none", "ERR no such key"),
        ("XINFO GROUPS x", []),
    )


def test_groups_and_consumers(client: Client) -> None:
    for number in range(1, 4):
        client(f"XADD x {number} f v")
    client("XGROUP CREATE x g 0 ENTRIESREAD 0")
    client("XGROUP CREATE x h 2")
    client("XREADGROUP GROUP g c COUNT 2 STREAMS x >")
    first, second = map(fields, client("XINFO GROUPS x"))
    assert first == {
        b"name": b"g",
        b"consumers": 1,
        b"pending": 2,
        b"last-delivered-id": b"2-0",
        b"entries-read": 2,
        b"lag": 1,
    }
    assert (second[b"entries-read"], second[b"lag"]) == (None, None)
    (consumer,) = map(fields, client("XINFO CONSUMERS x g"))
    assert 0 <= consumer.pop(b"idle") < 60_000
    assert consumer == {b"name": b"c", b"pending": 2}
    client.plays(
        ("XINFO CONSUMERS x h", []),
        ("XINFO CONSUMERS x none", "NOGROUP No such consumer group 'none' for key name 'x'"),
    )


def test_everything(client: Client) -> None:
    for number in range(1, 15):
        client(f"XADD x {number} f v")
    client("XGROUP CREATE x g 0")
    client("XREADGROUP GROUP g c STREAMS x >")
    found = fields(client("XINFO STREAM x FULL"))
    assert len(found[b"entries"]) == 10
    group = fields(found[b"groups"][0])
    consumer = fields(group[b"consumers"][0])
    assert (group[b"pel-count"], len(group[b"pending"])) == (14, 10)
    assert (consumer[b"pel-count"], len(consumer[b"pending"])) == (14, 10)
    id_, who, time, times = group[b"pending"][0]
    assert (id_, who, times) == (b"1-0", b"c", 1)
    assert consumer[b"pending"][0] == [b"1-0", time, 1]
    assert len(fields(client("XINFO STREAM x FULL COUNT 0"))[b"entries"]) == 14


def test_counters_overflow_as_those_of_redis(client: Client) -> None:
    most = 2**63 - 1
    client("XADD x 1 f v")
    client(f"XSETID x 1 ENTRIESADDED {most}")
    client("XADD x 2 f v")
    client(f"XGROUP CREATE x g 0 ENTRIESREAD {most}")
    client("XREADGROUP GROUP g c COUNT 1 STREAMS x >")
    (group,) = map(fields, client("XINFO GROUPS x"))
    assert fields(client("XINFO STREAM x"))[b"entries-added"] == -(2**63)
    assert (group[b"entries-read"], group[b"lag"]) == (-(2**63), 0)
