"""Sorted sets."""

from __future__ import annotations

import pytest
from serving import Client

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"


def test_adding(client: Client) -> None:
    client.plays(
        ("ZADD z 1 a 2 b 1 a", 2),
        ("ZADD z 1 a 3 b 4 c", 1),
        ("ZADD z CH 1 a 2 b 5 d", 2),
        ("ZADD z NX 9 a 6 e", 1),
        ("ZADD z XX CH 7 a 6 none", 1),
        ("ZADD z GT CH 6 a 8 b", 1),
        ("ZADD z LT CH 9 a 1 b 7 f", 2),
        ("ZRANGE z 0 -1 WITHSCORES", [
            b"b", b"1", b"c", b"4", b"d", b"5", b"e", b"6", b"a", b"7", b"f", b"7",
        ]),
        ("ZADD z INCR 2.5 b", b"3.5"),
        ("ZADD z NX INCR 1 b", None),
        ("ZADD z XX INCR 1 none", None),
        ("ZADD z GT INCR -1 b", None),
        ("ZADD none XX 1 a", 0),
        ("EXISTS none", 0),
        ("ZINCRBY z 1 b", b"4.5"),
        ("ZINCRBY new -inf a", b"-inf"),
        ("ZINCRBY new +inf a", "ERR resulting score is not a number (NaN)"),
        ("ZSCORE new a", b"-inf"),
        ("ZADD z 1", "ERR wrong number of arguments for 'zadd' command"),
        ("ZADD z 1 a 2", "ERR syntax error"),
        ("ZADD z NX XX 1 a", "ERR XX and NX options at the same time are not compatible"),
        ("ZADD z GT LT 1 a", "ERR GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD z INCR 1 a 2 b", "ERR INCR option supports a single increment-element pair"),
        ("ZADD z x a", "ERR value is not a valid float"),
        ("ZADD z nan a", "ERR value is not a valid float"),
        ("ZADD z 5 b x c", "ERR value is not a valid float"),
        ("ZSCORE z b", b"4.5"),  # all or nothing
    )  # fmt: skip


def test_members(client: Client) -> None:
    client.plays(
        ("ZADD z 1 a 2 b 2 c 3 d", 4),
        ("ZCARD z", 4),
        ("ZSCORE z a", b"1"),
        ("ZSCORE z none", None),
        ("ZMSCORE z a none d", [b"1", None, b"3"]),
        ("ZMSCORE none a", [None]),
        ("ZRANK z c", 2),
        ("ZREVRANK z c", 1),
        ("ZRANK z none", None),
        ("ZREVRANK none a", None),
        ("ZREM z b none b", 1),
        ("ZCARD z", 3),
        ("ZREM z a c d", 3),
        ("EXISTS z", 0),
        ("ZREM z a", 0),
        ("ZCARD z", 0),
    )


def test_taking(client: Client) -> None:
    client.plays(
        ("ZADD z 1 a 2 b 3 c 4 d 5 e", 5),
        ("ZPOPMIN z", [b"a", b"1"]),
        ("ZPOPMAX z 2", [b"e", b"5", b"d", b"4"]),
        ("ZMPOP 2 none z MIN", [b"z", [[b"b", b"2"]]]),
        ("ZPOPMIN z 0", []),
        ("ZMPOP 1 z MAX COUNT 9", [b"z", [[b"c", b"3"]]]),
        ("EXISTS z", 0),
        ("ZMPOP 1 z MAX", None),
        ("ZPOPMIN z", []),
        ("ZPOPMIN z 3", []),
        ("ZPOPMIN z -1", "ERR value is out of range, must be positive"),
        ("ZPOPMIN z 1 2", "ERR syntax error"),
        ("ZMPOP 1 z UP", "ERR syntax error"),
        ("ZMPOP 0 z MIN", "ERR numkeys should be greater than 0"),
    )


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


def test_resp3_has_doubles_in_pairs(client: Client) -> None:
    client("HELLO 3")
    client.plays(
        ("ZADD z 1.5 a 2 b", 2),
        ("ZSCORE z a", 1.5),
        ("ZRANGE z 0 -1 WITHSCORES", [[b"a", 1.5], [b"b", 2.0]]),
        ("ZINCRBY z 1 a", 2.5),
        ("ZPOPMIN z", [b"b", 2.0]),
        ("ZPOPMIN z 1", [[b"a", 2.5]]),
    )


@pytest.mark.parametrize(
    "request_",
    ["ZADD k 1 a", "ZINCRBY k 1 a", "ZREM k a", "ZCARD k", "ZSCORE k a", "ZMSCORE k a", "ZRANK k a",
     "ZREVRANK k a", "ZRANGE k 0 1", "ZRANGEBYSCORE k 0 1", "ZRANGEBYLEX k - +", "ZCOUNT k 0 1",
     "ZLEXCOUNT k - +", "ZREMRANGEBYRANK k 0 1", "ZREMRANGEBYSCORE k 0 1", "ZPOPMIN k", "ZSCAN k 0",
     "ZREMRANGEBYLEX k - +", "ZRANDMEMBER k", "ZMPOP 1 k MIN", "ZRANGESTORE d k 0 1", "ZDIFF 1 k"],
)  # fmt: skip
def test_another_type(client: Client, request_: str) -> None:
    client("SET k v")
    assert client(request_) == WRONG
    assert client("GET k") == b"v"
