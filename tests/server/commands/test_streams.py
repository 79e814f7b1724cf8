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


def test_ranges(client: Client) -> None:
    for number in range(1, 6):
        client(f"XADD x {number}-1 f v")
    assert ids(client, "XRANGE x - +") == [b"%d-1" % number for number in range(1, 6)]
    assert ids(client, "XRANGE x 2 4") == [b"2-1", b"3-1", b"4-1"]
    assert ids(client, "XRANGE x (2-1 (4-1") == [b"3-1"]
    assert ids(client, "XREVRANGE x + - COUNT 2") == [b"5-1", b"4-1"]
    assert ids(client, "XREVRANGE x 3 2") == [b"3-1", b"2-1"]
    client.plays(
        ("XRANGE x 4 2", []),
        ("XRANGE none - +", []),
        ("XRANGE x - + COUNT 0", None),
        ("XRANGE x - + COUNT", "ERR syntax error"),
        ("XRANGE x a +", INVALID),
        (f"XRANGE x ({HIGHEST}-{HIGHEST} +", "ERR invalid start ID for the interval"),
        ("XRANGE x - (0-0", "ERR invalid end ID for the interval"),
    )


def test_removing_and_trimming(client: Client) -> None:
    for number in range(1, 11):
        client(f"XADD x {number} f v")
    client.plays(
        ("XDEL x 1-0 5-0 77-0", 2),
        ("XDEL x 2-0 abc", INVALID),
        ("XDEL none 1-0", 0),
        ("XLEN x", 8),
        ("XTRIM x MAXLEN 6", 2),
        ("XTRIM x MAXLEN = 6", 0),
        ("XTRIM x MINID 7", 2),
        ("XTRIM x MAXLEN ~ 1", 0),  # fewer than a hundred
        ("XADD x MAXLEN 2 20 f v", b"20-0"),
        ("XADD x MINID 20 21 f v", b"21-0"),
    )
    assert ids(client, "XRANGE x - +") == [b"20-0", b"21-0"]
    client.plays(
        ("XTRIM x MAXLEN 0", 2),
        ("EXISTS x", 1),  # an empty stream stays
        ("XADD x 21 f v", SMALLER),
        ("XTRIM none MAXLEN 0", 0),
        ("XTRIM x MAXLEN -1", "ERR The MAXLEN argument must be >= 0."),
        ("XTRIM x MAXLEN a", "ERR value is not an integer or out of range"),
        ("XTRIM x MAXLEN 1 MINID 1", "ERR syntax error, MAXLEN and MINID options at the same time"
         " are not compatible"),
        ("XTRIM x MAXLEN 1 LIMIT 5", "ERR syntax error, LIMIT cannot be used without the special ~"
         " option"),
        ("XTRIM x FOO 1", "ERR syntax error"),
    )  # fmt: skip


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
