"""Sorted sets."""

from __future__ import annotations

from serving import Client
from transcripts import Section, transcript

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"


def test_random_members_and_scan(client: Client) -> None:
    client("ZADD", b"z", *(word for n in range(15) for word in (b"%d" % n, b"m%02d" % n)))
    assert client("ZRANDMEMBER z").startswith(b"m")
    assert len(set(client("ZRANDMEMBER z 10"))) == 10
    assert len(client("ZRANDMEMBER z -40")) == 40
    items = client("ZRANDMEMBER z 3 WITHSCORES")
    assert all(
        int(member[1:]) == int(items[at + 1]) for at, member in enumerate(items) if at % 2 == 0
    )
    client.plays(
        ("ZRANDMEMBER none", None),
        ("ZRANDMEMBER none 2", []),
        ("ZRANDMEMBER z 0", []),
        ("ZRANDMEMBER z 1 FOO", "ERR syntax error"),
    )


def test_scans_of_small_and_large_sets(client: Client) -> None:
    """A small set comes whole and in the order of its scores, as in Redis."""
    client("ZADD small 3 a 1 b 2 c")
    client.plays(
        ("ZSCAN small 0 COUNT 1", [b"0", [b"b", b"1", b"c", b"2", b"a", b"3"]]),
        ("ZSCAN small 0 MATCH [ab]", [b"0", [b"b", b"1", b"a", b"3"]]),
        ("ZSCAN small 0 COUNT 0", "ERR syntax error"),
        ("ZSCAN none 0", [b"0", []]),
    )
    pairs = [(b"m%03d" % number, b"%d" % number) for number in range(200)]
    client("ZADD", "z", *(word for member, score in pairs for word in (score, member)))
    found, cursor = [], b"0"
    while True:
        cursor, page = client("ZSCAN", "z", cursor, "COUNT", "70")
        assert len(page) <= 140
        found += zip(page[::2], page[1::2], strict=True)
        if cursor == b"0":
            break
    assert found == pairs


@transcript("sorted_sets.txt")
def test_the_transcript(section: Section) -> None:
    section.play()
