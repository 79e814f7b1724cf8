"""Entries of streams: adding, reading, removing."""

from __future__ import annotations

from serving import Client
from transcripts import Section, transcript

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"
INVALID = "ERR Invalid stream ID specified as stream command argument"
SMALLER = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
HIGHEST = "18446744073709551615"


def ids(client: Client, request: str) -> list[bytes]:
    return [id_ for id_, _ in client(request)]


def test_ids_of_the_time_grow_even_if_the_clock_does_not(client: Client) -> None:
    made = [client("XADD x * f v") for _ in range(50)]
    parts = [tuple(map(int, id_.split(b"-"))) for id_ in made]
    assert parts == sorted(set(parts))
    client.plays(
        ("XADD y 99999999999999-5 f v", b"99999999999999-5"),
        ("XADD y * f v", b"99999999999999-6"),
        (f"XADD y 99999999999999-{HIGHEST} f v", f"99999999999999-{HIGHEST}".encode()),
        ("XADD y 99999999999999-* f v", SMALLER),
        ("XADD y * f v", b"100000000000000-0"),
        (f"XADD y {HIGHEST}-{HIGHEST} f v", f"{HIGHEST}-{HIGHEST}".encode()),
        (
            "XADD y * f v",
            "ERR The stream has exhausted the last possible ID, unable to add more items",
        ),
    )


def test_a_stream_is_copied_renamed_and_expires_with_its_groups(client: Client) -> None:
    client.plays(
        ("XADD x 1 f v", b"1-0"),
        ("XGROUP CREATE x g 0", b"OK"),
        ("XREADGROUP GROUP g c STREAMS x >", [[b"x", [[b"1-0", [b"f", b"v"]]]]]),
        ("COPY x y", 1),
        ("XACK x g 1-0", 1),
        ("RENAME x z", b"OK"),
        ("XPENDING y g", [1, b"1-0", b"1-0", [[b"c", b"1"]]]),
        ("XPENDING z g", [0, None, None, None]),
        ("SCAN 0 TYPE stream", [b"0", [b"y", b"z"]]),
        ("EXPIRE y 100", 1),
        ("XADD y 2 f v", b"2-0"),
        ("TTL y", 100),
        ("MOVE y 1", 1),
        ("SELECT 1", b"OK"),
        ("XPENDING y g", [1, b"1-0", b"1-0", [[b"c", b"1"]]]),
        ("DBSIZE", 1),
        ("DEL y", 1),
    )
    assert client("SELECT 0") == b"OK"
    assert client("MEMORY USAGE z") > 0


def test_watched_streams(client: Client) -> None:
    """Reading for a group, and acknowledging, do not change a stream, as in Redis."""
    other = Client(client.engine)
    other("XADD x 1 f v")
    other("XGROUP CREATE x g 0")
    for request, stays in (
        ("XREADGROUP GROUP g c STREAMS x >", True),
        ("XACK x g 1-0", True),
        ("XADD x 2 f v", False),
        ("XDEL x 2-0", False),
        ("XDEL x 2-0", True),
        ("XTRIM x MAXLEN 0", False),
    ):
        client.plays(("WATCH x", b"OK"), ("MULTI", b"OK"), ("PING", b"QUEUED"))
        other(request)
        assert client("EXEC") == ([b"PONG"] if stays else None), request


@transcript("streams.txt")
def test_the_transcript(section: Section) -> None:
    section.play()
