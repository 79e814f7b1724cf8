"""What INFO counts: the same hits and misses, and keymiss events, as in Redis 7.0."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lookups import LOOKUPS, PREPARED
from redis_pair import Pair, Side
from resp_wire import Client


@pytest.fixture
def missed(pair: Pair) -> Iterator[list[Client]]:
    """A client of each server that listens to which keys were missed."""
    clients = []
    for side in (pair.redis, pair.lsmkv):
        side.control.ask("CONFIG", "SET", "notify-keyspace-events", "Km")
        clients.append(Client(side.server.address))
        clients[-1].ask("PSUBSCRIBE", "__key*__:*")
    yield clients
    for side, client in zip((pair.redis, pair.lsmkv), clients, strict=True):
        client.close()
        side.control.ask("CONFIG", "SET", "notify-keyspace-events", "")


def counted(side: Side, listener: Client, request: str) -> tuple[list[int], int]:
    """Hits and misses of a request, and how many events came."""
    ask = side.control.ask
    for line in ["FLUSHALL", *PREPARED, "CONFIG RESETSTAT"]:
        ask(*line.split(" "))
    ask(*request.split(" "))
    text = ask("INFO", "stats").value
    assert isinstance(text, bytes)
    fields = dict(line.split(b":") for line in text.splitlines() if b":" in line)
    found = [int(fields[name]) for name in (b"keyspace_hits", b"keyspace_misses")]
    listener.send([b"PING", b"now"])
    events = 0
    while listener.receive().parts[0].value != b"pong":
        events += 1
    return found, events


def test_lookups_count_alike(pair: Pair, missed: list[Client]) -> None:
    for expected, request in LOOKUPS:
        redis = counted(pair.redis, missed[0], request)
        lsmkv = counted(pair.lsmkv, missed[1], request)
        assert redis[0] == expected, request
        assert redis == lsmkv, request
