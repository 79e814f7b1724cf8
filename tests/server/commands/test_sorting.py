"""SORT."""

from __future__ import annotations

from serving import Client


def test_sort(client: Client) -> None:
    client.plays(
        ("RPUSH l 3 10 -1 2.5", 4),
        ("SORT l", [b"-1", b"2.5", b"3", b"10"]),
        ("SORT l DESC LIMIT 1 2", [b"3", b"2.5"]),
        ("SORT l ALPHA", [b"-1", b"10", b"2.5", b"3"]),
        ("SORT l LIMIT 2 -1", [b"3", b"10"]),
        ("SORT l LIMIT 9 2", []),
        ("SORT none", []),
        ("SADD s b a c", 3),
        ("SORT s", "ERR One or more scores can't be converted into double"),
        ("SORT_RO s ALPHA DESC", [b"c", b"b", b"a"]),
        ("ZADD z 2 a 1 b", 2),
        ("SORT z ALPHA", [b"a", b"b"]),
        ("SORT z BY nosort", [b"b", b"a"]),
        ("SORT z BY nosort DESC", [b"a", b"b"]),
        ("SORT l FOO", "ERR syntax error"),
        ("SORT l LIMIT 1", "ERR syntax error"),
        ("SORT_RO l STORE d", "ERR syntax error"),
        ("SET k v", b"OK"),
        ("SORT k", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    )


def test_by_and_get(client: Client) -> None:
    client.plays(
        ("RPUSH l a b c", 3),
        ("MSET weight_a 3 weight_b 1 name_a Anna name_b Bert", b"OK"),
        ("HSET h_a w 1 n x", 2),
        ("HSET h_b w 5", 1),
        ("SORT l BY weight_*", [b"c", b"b", b"a"]),
        ("SORT l BY h_*->w DESC", [b"b", b"a", b"c"]),
        ("SORT l BY weight_* GET name_* GET #", [None, b"c", b"Bert", b"b", b"Anna", b"a"]),
        ("SORT l BY nosort GET h_*->n", [b"x", None, None]),
        ("SORT l ALPHA GET none", [None, None, None]),
        ("SORT l BY weight_* GET name_* STORE d", 3),
        ("LRANGE d 0 -1", [b"", b"Bert", b"Anna"]),
        ("SORT none STORE d", 0),
        ("EXISTS d", 0),
    )
