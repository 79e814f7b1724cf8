"""The connection itself."""

from __future__ import annotations

from serving import Client
from transcripts import Section, transcript


def test_the_time(client: Client) -> None:
    seconds, microseconds = client("TIME")
    assert int(seconds) > 1_700_000_000
    assert 0 <= int(microseconds) < 10**6


def test_hello(client: Client) -> None:
    shown = dict(zip(*[iter(client("HELLO"))] * 2, strict=True))
    assert (shown[b"proto"], shown[b"role"], shown[b"modules"]) == (2, b"master", [])
    shown = client("HELLO 3 SETNAME me")
    assert (shown[b"proto"], shown[b"id"]) == (3, client.session.id)
    assert client("CLIENT GETNAME") == b"me"
    assert client("HELLO 4").startswith("NOPROTO")
    assert client.session.resp3  # an error changes nothing
    assert isinstance(client("HELLO 2"), list)


def test_quit(client: Client) -> None:
    assert client("QUIT") == b"OK"
    assert client.session.closing


@transcript("connection.txt")
def test_the_transcript(section: Section) -> None:
    section.play()
