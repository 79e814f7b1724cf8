"""DUMP of Redis is read by RESTORE of lsmkv, and the other way round, for keys of all kinds."""

from __future__ import annotations

import os
import random

import pytest
from redis_pair import Pair
from redis_requests import random_steps

COUNT = int(os.environ.get("LSMKV_REDIS_COMMANDS", "6000"))
SEED = int(os.environ.get("LSMKV_REDIS_SEED", "0"))


def _exchange(pair: Pair) -> int:
    """Restore each key of one server with the bytes of the other.  Returns how many there are."""
    keys = pair.redis.contents()
    for (database, key), (_, expires, _) in keys.items():
        dumped = []
        for side in (pair.redis, pair.lsmkv):
            side.control.ask("SELECT", database)
            dumped.append(side.control.ask("DUMP", key).value)
        for side, payload in zip((pair.redis, pair.lsmkv), reversed(dumped), strict=True):
            assert isinstance(payload, bytes)
            words = ("RESTORE", key, max(0, expires), payload, "REPLACE", "ABSTTL")
            assert side.control.ask(*words).value == b"OK", (key, payload)
    return len(keys)


@pytest.mark.parametrize("streams", [False, True], ids=["all kinds", "streams"])
def test_random_keys_are_exchanged(pair: Pair, streams: bool) -> None:
    exchanged = 0
    for seed in range(SEED, SEED + max(2, COUNT // 1000)):
        pair.clear()
        for client, request in random_steps(random.Random(seed), 200, streams):
            if request[0].upper() not in (b"EXEC", b"FLUSHALL", b"FLUSHDB"):
                pair.run(client, request)
        exchanged += _exchange(pair)
        pair.check_contents()
    assert exchanged > 0


def test_libraries_are_exchanged(pair: Pair) -> None:
    for name, returned in (("one", "x" * 5000), ("two", "a short one")):
        source = f"#!lua name={name}\nredis.register_function('{name}', function()"
        source += f" return '{returned}' end)"
        pair.run(0, [b"FUNCTION", b"LOAD", source.encode()])
    sides = (pair.redis, pair.lsmkv)
    payloads = [side.control.ask("FUNCTION", "DUMP").value for side in sides]
    for side, payload in zip(sides, reversed(payloads), strict=True):
        assert isinstance(payload, bytes)
        assert side.control.ask("FUNCTION", "RESTORE", payload, "FLUSH").value == b"OK"
    for name in (b"one", b"two"):
        pair.run(0, [b"FCALL", name, b"0"])
        pair.run(0, [b"FUNCTION", b"LIST", b"LIBRARYNAME", name, b"WITHCODE"])


def test_large_keys_are_exchanged(pair: Pair) -> None:
    """Those that Redis stores in many pieces."""
    for at in range(0, 3000, 100):
        numbers = range(at, at + 100)
        pair.run(0, [b"RPUSH", b"l", *(b"%d" % n + b"x" * (n % 90) for n in numbers)])
        pair.run(0, [b"SADD", b"t", *(b"m%d" % n for n in numbers)])
        pair.run(0, [b"SADD", b"i", *(b"%d" % (n << at // 100) for n in numbers)])
        pairs = [word for n in numbers for word in (b"%d" % n, b"v%d" % n)]
        pair.run(0, [b"HSET", b"h", *pairs])
        pair.run(0, [b"ZADD", b"z", *pairs])
        pair.run(0, [b"APPEND", b"s", b"%d" % at * 99])
        for n in numbers:
            value = b"y" * (n % 300)
            pair.run(
                0, [b"XADD", b"x", b"%d-%d" % (n + 1, at), b"f%d" % (n % 3), b"a", b"g", value]
            )
    pair.run(0, [b"RPUSH", b"plain", b"z" * 70_000, b"a"])
    pair.run(0, [b"XDEL", b"x", b"17-0", b"18-0"])
    assert _exchange(pair) == 8
    pair.check_contents()
