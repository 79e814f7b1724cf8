"""Ranges of sorted sets."""

from __future__ import annotations

import pytest
from serving import Client
from transcripts import Section, transcript


@pytest.mark.parametrize(
    ("request_", "members"),
    [
        ("ZRANGE z 0 -1", "abcde"),
        ("ZRANGE z 1 2", "bc"),
        ("ZRANGE z -2 -1", "de"),
        ("ZRANGE z 3 1", ""),
        ("ZRANGE z 0 1 REV", "ed"),
        ("ZREVRANGE z 1 3", "dcb"),
        ("ZRANGEBYSCORE z 2 3", "bcd"),
        ("ZRANGEBYSCORE z (2 3", "d"),
        ("ZRANGEBYSCORE z -inf (2", "a"),
        ("ZRANGEBYSCORE z -inf +inf LIMIT 1 2", "bc"),
        ("ZRANGEBYSCORE z -inf +inf LIMIT 2 -1", "cde"),
        ("ZRANGEBYSCORE z -inf +inf LIMIT -1 2", ""),
        ("ZREVRANGEBYSCORE z 3 2", "dcb"),
        ("ZREVRANGEBYSCORE z 2 3", ""),
        ("ZRANGE z 2 +inf BYSCORE", "bcde"),
        ("ZRANGE z 3 (1 BYSCORE REV LIMIT 0 2", "dc"),
        ("ZRANGE none 0 -1", ""),
    ],
)
def test_ranges(client: Client, request_: str, members: str) -> None:
    client("ZADD z 1 a 2 b 2 c 3 d inf e")
    assert client(request_) == [one.encode() for one in members]


@pytest.mark.parametrize(
    ("low", "high", "members"),
    [
        ("-", "+", "a b ba c"),
        ("[b", "+", "b ba c"),
        ("(b", "+", "ba c"),
        ("-", "[b", "a b"),
        ("-", "(b", "a"),
        ("[aa", "(c", "b ba"),
        ("+", "-", ""),
        ("[c", "[a", ""),
    ],
)
def test_ranges_of_members(client: Client, low: str, high: str, members: str) -> None:
    client("ZADD z 0 a 0 b 0 ba 0 c")
    expected = members.encode().split()
    assert client(f"ZRANGEBYLEX z {low} {high}") == expected
    assert client(f"ZREVRANGEBYLEX z {high} {low}") == expected[::-1]
    assert client(f"ZRANGE z {low} {high} BYLEX LIMIT 0 2") == expected[:2]
    assert client(f"ZLEXCOUNT z {low} {high}") == len(expected)
    assert client(f"ZREMRANGEBYLEX z {low} {high}") == len(expected)
    assert client("ZCARD z") == 4 - len(expected)


@transcript("sorted_set_ranges.txt")
def test_the_transcript(section: Section) -> None:
    section.play()
