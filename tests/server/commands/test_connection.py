"""The connection itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from serving import Client, an_engine

NO_AUTH = "NOAUTH Authentication required."
WRONG = "WRONGPASS invalid username-password pair or user is disabled."


@pytest.fixture
def stranger() -> Iterator[Client]:
    """A client that has not said the password, which is secret."""
    with an_engine(password="secret") as engine:
        yield Client(engine)


def test_ping_and_echo(client: Client) -> None:
    client.plays(
        ("PING", b"PONG"),
        ("ping hi", b"hi"),
        ("PING a b", "ERR wrong number of arguments for 'ping' command"),
        ("ECHO ''", b""),
        ("ECHO", "ERR wrong number of arguments for 'echo' command"),
        ("NONE a b", "ERR unknown command 'NONE', with args beginning with: 'a' 'b' "),
        ("AUTH x y z", "ERR syntax error"),
        ("AUTH default any", b"OK"),
    )
    seconds, microseconds = client("TIME")
    assert int(seconds) > 1_700_000_000
    assert 0 <= int(microseconds) < 10**6
    assert client("AUTH x").startswith("ERR AUTH <password> called without any password")


def test_hello(client: Client) -> None:
    shown = dict(zip(*[iter(client("HELLO"))] * 2, strict=True))
    assert (shown[b"proto"], shown[b"role"], shown[b"modules"]) == (2, b"master", [])
    shown = client("HELLO 3 SETNAME me")
    assert (shown[b"proto"], shown[b"id"]) == (3, client.session.id)
    client.plays(
        ("CLIENT GETNAME", b"me"),
        ("GET none", None),
        ("HELLO 4", "NOPROTO unsupported protocol version"),
        ("HELLO x", "ERR Protocol version is not an integer or out of range"),
        ("HELLO 2 FOO", "ERR Syntax error in HELLO option 'FOO'"),
    )
    assert client.session.resp3  # an error changes nothing
    assert isinstance(client("HELLO 2"), list)


def test_a_password(stranger: Client) -> None:
    stranger.plays(
        ("PING", NO_AUTH),
        ("GET k", NO_AUTH),
        ("CLIENT ID", NO_AUTH),
        ("CLIENT SETINFO LIB-NAME x", b"OK"),
        ("MULTI", NO_AUTH),
        ("AUTH wrong", WRONG),
        ("AUTH other secret", WRONG),
        ("HELLO 3 AUTH default wrong", WRONG),
        ("GET k", NO_AUTH),
    )
    assert stranger("HELLO 3").startswith("NOAUTH HELLO must be called with the client already")
    assert not stranger.session.resp3
    stranger.plays(
        ("AUTH secret", b"OK"), ("PING", b"PONG"), ("RESET", b"RESET"), ("PING", NO_AUTH)
    )
    assert stranger("HELLO 3 AUTH default secret")[b"proto"] == 3
    assert stranger("PING") == b"PONG"
    assert stranger("CONFIG SET requirepass ''") == b"OK"
    assert Client(stranger.engine)("PING") == b"PONG"


def test_reset(client: Client) -> None:
    client("HELLO 3 SETNAME me")
    client("SELECT 5")
    client("WATCH k")
    client("MULTI")
    client("SET k v")
    client.plays(("RESET", b"RESET"), ("EXEC", "ERR EXEC without MULTI"), ("CLIENT GETNAME", None))
    assert client("SET k v") == b"OK"
    client("SELECT 0")
    assert client("GET k") == b"v"
    assert not client.session.resp3


def test_quit(client: Client) -> None:
    assert client("QUIT") == b"OK"
    assert client.session.closing
