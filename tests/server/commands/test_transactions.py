"""MULTI, EXEC, WATCH."""

from __future__ import annotations

import pytest
from serving import Client
from transcripts import Section, transcript


@pytest.mark.parametrize(
    "wrong",
    ["NONE x", "GET", "SAVE", "CLIENT NONE", "SHUTDOWN", "DEBUG a b", "MIGRATE x 0", "CLIENT",
     "CLIENT KILL", "MODULE LOAD x"],
)  # fmt: skip
def test_what_cannot_be_queued_discards_all(client: Client, wrong: str) -> None:
    client.plays(("MULTI", b"OK"), ("SET a 1", b"QUEUED"))
    assert client(wrong).startswith("ERR ")
    client.plays(
        ("EXEC", "EXECABORT Transaction discarded because of previous errors."),
        ("EXISTS a", 0),
    )


@pytest.mark.parametrize(
    "change",
    ["SET k w", "DEL k", "APPEND k x", "EXPIRE k 100", "RENAME k x", "RENAME other k", "FLUSHDB",
     "FLUSHALL", "SWAPDB 0 1", "MOVE k 1", "SET k v", "COPY other k REPLACE", "GETDEL k",
     "SET k v PXAT 1"],
)  # fmt: skip
def test_a_watched_key_that_is_changed(client: Client, change: str) -> None:
    other = Client(client.engine)
    client.plays(("MSET k v other x", b"OK"), ("WATCH k", b"OK"))
    assert not isinstance(other(change), str)
    client.plays(("MULTI", b"OK"), ("SET done 1", b"QUEUED"), ("EXEC", None), ("EXISTS done", 0))
    assert not client.engine.space.watched
    client.plays(("MULTI", b"OK"), ("SET done 1", b"QUEUED"), ("EXEC", [b"OK"]))


@pytest.mark.parametrize(
    "harmless",
    ["GET k", "SET other w", "DEL none", "TTL k", "PERSIST k", "SETNX k w", "INCR k", "LPUSH k a",
     "RENAMENX other k", "SADD none a"],
)  # fmt: skip
def test_a_watched_key_that_is_not_changed(client: Client, harmless: str) -> None:
    other = Client(client.engine)
    client.plays(("MSET k v other x", b"OK"), ("WATCH k", b"OK"))
    other(harmless)
    client.plays(("MULTI", b"OK"), ("SET done 1", b"QUEUED"), ("EXEC", [b"OK"]))


def test_watching_twice_is_watching_once(client: Client) -> None:
    client.plays(("WATCH a b a", b"OK"), ("WATCH a", b"OK"))
    assert b" watch=2 " in client("CLIENT INFO")
    client.plays(("SET a 1", b"OK"), ("WATCH a", b"OK"), ("MULTI", b"OK"), ("EXEC", None))
    assert client.engine.space.watched == {}


def test_replies_that_are_turned_off_in_a_transaction(client: Client) -> None:
    """As in Redis: what is silenced is missing in EXEC's array; SKIP is for what follows it."""
    client.plays(
        ("MULTI", b"OK"),
        ("CLIENT REPLY ON", b"QUEUED"),
        ("MONITOR", b"QUEUED"),
        ("EXEC", [b"OK", "ERR MONITOR isn't allowed for DENY BLOCKING client"]),
        ("MULTI", b"OK"),
        ("CLIENT REPLY SKIP", b"QUEUED"),
        ("PING", b"QUEUED"),
    )
    client.engine.run(client.session, [b"EXEC"])
    assert client.session.take_output() == b"*2\r\n+PONG\r\n"
    client.plays(("ECHO skipped", None), ("ECHO heard", b"heard"), ("MULTI", b"OK"))
    client.plays(("ECHO x", b"QUEUED"), ("CLIENT REPLY OFF", b"QUEUED"), ("ECHO y", b"QUEUED"))
    client.engine.run(client.session, [b"EXEC"])
    assert client.session.take_output() == b"*3\r\n$1\r\nx\r\n"
    client.plays(("ECHO z", None), ("CLIENT REPLY ON", b"OK"))


def test_a_watched_key_whose_time_comes(client: Client) -> None:
    client.plays(("SET k v PX 2", b"OK"), ("WATCH k", b"OK"))
    while client("EXISTS other k") and not client.session.changed:
        pass
    client.plays(("MULTI", b"OK"), ("EXEC", None))


def test_a_connection_that_ends_leaves_nothing(client: Client) -> None:
    client.plays(("WATCH k", b"OK"), ("MULTI", b"OK"), ("SET k v", b"QUEUED"))
    client.engine.close_session(client.session)
    assert not client.engine.space.watched
    assert Client(client.engine)("EXISTS k") == 0


def test_who_ends_its_own_connection_hears_no_more(client: Client) -> None:
    client.plays(
        ("MULTI", b"OK"),
        (f"CLIENT KILL ID {client.session.id} SKIPME no", b"QUEUED"),
        ("SET k v", b"QUEUED"),
    )
    client.engine.run(client.session, [b"EXEC"])
    assert client.session.take_output() == b"*2\r\n:1\r\n"
    assert Client(client.engine)("GET k") == b"v"


@transcript("transactions.txt")
def test_the_transcript(section: Section) -> None:
    section.play()
