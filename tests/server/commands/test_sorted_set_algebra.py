"""Several sorted sets."""

from __future__ import annotations

from serving import Client

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"


def test_several_sorted_sets(client: Client) -> None:
    client.plays(
        ("ZADD a 1 x 2 y", 2),
        ("ZADD b 10 y 20 z", 2),
        ("SADD s x z", 2),
        ("ZUNION 2 a b WITHSCORES", [b"x", b"1", b"y", b"12", b"z", b"20"]),
        ("ZUNION 2 a s WITHSCORES", [b"z", b"1", b"x", b"2", b"y", b"2"]),
        ("ZINTER 2 a b WITHSCORES AGGREGATE MAX", [b"y", b"10"]),
        ("ZINTER 2 a b WEIGHTS 2 3 WITHSCORES", [b"y", b"34"]),
        ("ZINTER 3 a b none", []),
        ("ZDIFF 2 a b WITHSCORES", [b"x", b"1"]),
        ("ZDIFF 2 a none", [b"x", b"y"]),
        ("ZINTERCARD 2 a s", 1),
        ("ZINTERCARD 2 a a LIMIT 1", 1),
        ("ZUNIONSTORE d 2 a b AGGREGATE MIN", 3),
        ("ZRANGE d 0 -1 WITHSCORES", [b"x", b"1", b"y", b"2", b"z", b"20"]),
        ("ZINTERSTORE d 2 d s WEIGHTS 1 0", 2),
        ("ZDIFFSTORE d 2 a b", 1),
        ("ZRANGE d 0 -1 WITHSCORES", [b"x", b"1"]),
        ("ZINTERSTORE d 2 a none", 0),
        ("EXISTS d", 0),
        ("ZADD inf inf x -inf y", 2),
        ("ZADD fin -inf x inf y", 2),
        ("ZUNION 2 inf fin WITHSCORES", [b"x", b"0", b"y", b"0"]),
        ("ZUNION 1 inf WEIGHTS 0 WITHSCORES", [b"x", b"0", b"y", b"0"]),
        ("ZADD one 1 x 1 y", 2),
        ("ZINTER 2 one inf WEIGHTS -inf 0 WITHSCORES", [b"x", b"0", b"y", b"0"]),
        ("ZINTER 2 one inf WEIGHTS -1 0 AGGREGATE MAX WITHSCORES", [b"x", b"-1", b"y", b"-1"]),
        ("ZINTER 2 one inf WEIGHTS 1 0 AGGREGATE MIN WITHSCORES", [b"x", b"1", b"y", b"1"]),
        ("ZINTER 2 inf one WEIGHTS 0 -1 AGGREGATE MAX WITHSCORES", [b"x", b"0", b"y", b"0"]),
        ("ZUNION 2 one inf WEIGHTS -1 0 AGGREGATE MAX WITHSCORES", [b"x", b"0", b"y", b"0"]),
        ("ZUNION 0 a", "ERR at least 1 input key is needed for 'zunion' command"),
        ("ZUNION 2 a", "ERR syntax error"),
        ("ZUNION 1 a WEIGHTS x", "ERR weight value is not a float"),
        ("ZUNION 1 a AGGREGATE AVG", "ERR syntax error"),
        ("ZDIFF 1 a WEIGHTS 1", "ERR syntax error"),
        ("ZUNIONSTORE d 1 a WITHSCORES", "ERR syntax error"),
        ("ZINTERCARD 1 a LIMIT -1", "ERR LIMIT can't be negative"),
        ("SET k v", b"OK"),
        ("ZUNION 2 a k", WRONG),
    )
