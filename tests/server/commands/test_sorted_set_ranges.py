"""Ranges of sorted sets."""

from __future__ import annotations

import pytest
from serving import Client


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


def test_counting_and_removing_ranges(client: Client) -> None:
    client.plays(
        ("ZADD z 1 a 2 b 2 c 3 d 4 e", 5),
        ("ZCOUNT z 2 3", 3),
        ("ZCOUNT z (2 inf", 2),
        ("ZCOUNT none 0 1", 0),
        ("ZREMRANGEBYSCORE z (1 2", 2),
        ("ZREMRANGEBYRANK z -1 -1", 1),
        ("ZRANGE z 0 -1", [b"a", b"d"]),
        ("ZREMRANGEBYRANK z 5 9", 0),
        ("ZREMRANGEBYSCORE z -inf inf", 2),
        ("EXISTS z", 0),
        ("ZCOUNT z x 1", "ERR min or max is not a float"),
        ("ZRANGEBYLEX z a b", "ERR min or max not valid string range item"),
        ("ZLEXCOUNT z a +", "ERR min or max not valid string range item"),
        ("ZRANGE z 0 1 FOO", "ERR syntax error"),
        ("ZREVRANGE z 0 1 BYSCORE", "ERR syntax error"),
        ("ZRANGE z x 1", "ERR value is not an integer or out of range"),
    )
    assert client("ZRANGE z 0 1 LIMIT 0 1").startswith("ERR syntax error, LIMIT is only supported")
    assert "WITHSCORES not supported" in client("ZRANGE z - + BYLEX WITHSCORES")


def test_storing_a_range(client: Client) -> None:
    client.plays(
        ("ZADD z 1 a 2 b 3 c", 3),
        ("SET d v", b"OK"),
        ("ZRANGESTORE d z 1 -1", 2),
        ("ZRANGE d 0 -1 WITHSCORES", [b"b", b"2", b"c", b"3"]),
        ("ZRANGESTORE z z (1 2 BYSCORE", 1),
        ("ZRANGE z 0 -1", [b"b"]),
        ("ZRANGESTORE d none 0 -1", 0),
        ("EXISTS d", 0),
        ("ZRANGESTORE d z 0 1 WITHSCORES", "ERR syntax error"),
    )


def test_ranges_of_members_whose_scores_differ(client: Client) -> None:
    """As in Redis: from the first member that is in the range to the next one that is not."""
    client.plays(
        ("ZADD z 1 a 2 b 3 c 4 d", 4),
        ("ZRANGE z [b [c BYLEX", [b"b", b"c"]),
        ("ZRANGE z [c [b BYLEX REV", [b"c", b"b"]),
        ("ZRANGE z (a + BYLEX LIMIT 1 1", [b"c"]),
        ("ZRANGE z - + BYLEX", [b"a", b"b", b"c", b"d"]),
        ("ZLEXCOUNT z (b [d", 2),
        ("ZRANGE z [x + BYLEX", []),
        ("ZRANGE z - (a BYLEX", []),
        ("ZRANGESTORE y z [b [c BYLEX", 2),
        ("ZRANGE y 0 -1", [b"b", b"c"]),
        ("ZADD z 0 m 5 c", 1),
        ("ZRANGE z [b [c BYLEX", []),
        ("ZREMRANGEBYLEX z [c +", 5),
    )
