"""Keyspace notifications."""

from __future__ import annotations

import pytest
from serving import Client
from ticks import FULL, Clients, engine_of, open_store, refused

from lsmkv.server.events import Events, parse_classes, shown_classes
from lsmkv.server.resp import CommandError
from lsmkv.testing import FaultyEnv


def heard(listener: Client) -> list[tuple[str, str]]:
    """What has come since it was asked last: channels without their start, and messages."""
    received = listener.received()
    messages = [received] if isinstance(received, list) else received or ()
    return [(one[2].decode().removeprefix("__key"), one[3].decode()) for one in messages]


def listening(client: Client, classes: str) -> Client:
    client(f"CONFIG SET notify-keyspace-events {classes}")
    listener = Client(client.engine)
    listener("PSUBSCRIBE __key*")
    return listener


def test_classes() -> None:
    assert parse_classes("") == ""
    assert parse_classes("AKE") == "g$lshzxetdKE"
    assert shown_classes(parse_classes("EKnm")) == "nKEm"
    with pytest.raises(CommandError, match="Invalid event class character"):
        parse_classes("Kq")


def test_the_setting(client: Client) -> None:
    client.plays(
        ("CONFIG GET notify-keyspace-events", [b"notify-keyspace-events", b""]),
        ("CONFIG SET notify-keyspace-events KEA", b"OK"),
        ("CONFIG GET notify-keyspace-events", [b"notify-keyspace-events", b"AKE"]),
        (
            "CONFIG SET notify-keyspace-events !",
            "ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - "
            "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.",
        ),
    )


def test_both_channels(client: Client) -> None:
    listener = listening(client, "KEA")
    client("SELECT 2")
    client("SET k v EX 100")
    assert heard(listener) == [
        ("space@2__:k", "set"),
        ("event@2__:set", "k"),
        ("space@2__:k", "expire"),
        ("event@2__:expire", "k"),
    ]


def test_only_the_classes_that_are_set(client: Client) -> None:
    listener = listening(client, "El")
    client("SET k v")
    client("RPUSH l a")
    client("LPOP l")
    assert heard(listener) == [("event@0__:rpush", "l"), ("event@0__:lpop", "l")]


def test_without_a_kind_of_channel_there_are_none(client: Client) -> None:
    listener = listening(client, "A")
    client("SET k v")
    assert heard(listener) == []


def test_expired_keys(client: Client) -> None:
    listener = listening(client, "Kx")
    client("SET other v PX 1")  # is over when k is
    client("SET k v PX 1")
    while client("GET k") is not None:
        pass
    client.engine.tidy_once()
    # The server's own tidying may have come to the other one first.
    assert sorted(heard(listener)) == [("space@0__:k", "expired"), ("space@0__:other", "expired")]


def test_new_and_missed_keys(client: Client) -> None:
    listener = listening(client, "Knm")
    client("SET k v")
    client("SET k w")
    client("LPUSH l a")
    client("GET none")
    client("MGET k none")
    client("OBJECT ENCODING none")
    client("INCR number")
    assert heard(listener) == [
        ("space@0__:k", "new"),
        ("space@0__:l", "new"),
        ("space@0__:none", "keymiss"),
        ("space@0__:none", "keymiss"),
        ("space@0__:number", "new"),
    ]


def test_a_command_that_fails_causes_none(client: Client) -> None:
    listener = listening(client, "KEA")
    client("SET s v")
    heard(listener)
    client("MSETNX a 1 s 2")
    client("RPUSH s a")
    client("MSET a 1 b")
    assert heard(listener) == []


def test_events_of_a_transaction(client: Client) -> None:
    listener = listening(client, "Eg$")
    for request in ("MULTI", "SET a 1", "RPUSH a x", "DEL a", "EXEC"):
        client(request)
    assert heard(listener) == [("event@0__:set", "a"), ("event@0__:del", "a")]


def test_what_is_undone_is_forgotten() -> None:
    events = Events()
    sent: list[tuple[bytes, bytes]] = []
    events.send = lambda channel, message: sent.append((channel, message))
    events.select("K$g")
    events.add("$", "set", 0, b"a", 1)
    events.add("g", "del", 0, b"b", 2)
    events.add("l", "lpush", 0, b"c", 2)
    events.undo(1)
    events.publish()
    events.publish()
    assert sent == [(b"__keyspace@0__:a", b"set")]


def test_events_of_writes_that_fail_are_not_sent() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        clients = Clients(engine_of(db), 2)
        clients.tick((0, "CONFIG SET notify-keyspace-events KEA"), (1, "PSUBSCRIBE __key*"))
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        writer, listener = clients.tick((0, "SET k v"), (0, "GET k"))
        assert refused(writer[0])
        assert writer[1] is None
        assert listener == []
        env.heal()
        _, listener = clients.tick((0, "SET k v"))
        assert [message[3] for message in listener] == [b"set", b"k"]
