"""lsmkv's server answers as Redis 7.0 does: random requests go to both.

By default a few thousand; ``LSMKV_REDIS_COMMANDS=100000`` says how many.  A failing run is shown
as the fewest of its requests after which the servers disagree, and its seed.  What differs on
purpose, and what Redis itself leaves open, is named in ``tests/helpers/redis_pair.py``.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from redis_pair import LOOSELY, Difference, Pair, fails, shrunk
from redis_requests import NAMES, Step, feeding_request, random_steps, waiting_request
from resp_wire import Reply

from lsmkv.server.commands import COMMANDS

COUNT = int(os.environ.get("LSMKV_REDIS_COMMANDS", "6000"))
SEED = int(os.environ.get("LSMKV_REDIS_SEED", "0"))
_A_RUN = 200
"""Requests from empty databases on: few, so that a failing run is soon made small."""
_UNCOMPARED = {
    "about the process": "BGREWRITEAOF BGSAVE LASTSAVE QUIT SAVE SHUTDOWN TIME",
    "compared in test_acl.py": "ACL",
    "compared in test_dumping.py": "DUMP RESTORE",
    "of Redis 7.4": "HEXPIRE HEXPIREAT HEXPIRETIME HPERSIST HPEXPIRE HPEXPIREAT HPEXPIRETIME HPTTL"
    " HTTL",
    "compared in test_scripts.py": "EVALSHA EVALSHA_RO EVAL_RO SCRIPT",
    "compared in test_transcripts.py": "FCALL FCALL_RO FUNCTION",
    "compared in test_connections.py": "COMMAND CONFIG INFO MODULE MONITOR PSUBSCRIBE PUBSUB"
    " LATENCY PUNSUBSCRIBE ROLE SLOWLOG SPUBLISH SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE UNSUBSCRIBE",
}
"""Commands of lsmkv that random requests leave out."""
_OF_A_MODULE = ("BF.",)


def _shown(steps: list[Step]) -> str:
    return "\n".join(f"client {client}: {request}" for client, request in steps)


def _compare(pair: Pair, count: int, streams: bool) -> None:
    for seed in range(SEED, SEED + max(1, count // _A_RUN)):
        steps = list(random_steps(random.Random(seed), _A_RUN, streams))
        if fails(pair, steps):
            fewest = shrunk(pair, steps)
            pytest.fail(f"seed {seed}:\n{_shown(fewest)}\n{fails(pair, fewest)}", pytrace=False)


def test_random_requests_get_the_same_replies(
    pair: Pair, record_testsuite_property: Callable[[str, object], None]
) -> None:
    _compare(pair, COUNT, streams=False)
    if COUNT >= 6000:
        unseen = {name for name in NAMES if not pair.seen[name]}
        assert not unseen
    record_testsuite_property("requests", sum(pair.seen.values()))
    record_testsuite_property("errors", pair.errors)
    record_testsuite_property("differences on purpose", dict(pair.deliberate))


def test_random_requests_about_streams_get_the_same_replies(pair: Pair) -> None:
    """Groups with deliveries need many requests about the same few streams."""
    _compare(pair, COUNT // 2, streams=True)


def test_a_long_run_goes_on_after_restarts_of_the_server(pair: Pair) -> None:
    """The data of thousands of requests is the same before and after, and goes on to be."""
    choices = random.Random(SEED)
    parts = 3
    for _ in range(parts):
        steps = list(random_steps(choices, COUNT // parts // 3))
        for at, (client, request) in enumerate(steps):
            if not request[0].upper().startswith(b"FLUSH"):
                pair.run(client, request)
            if at % 100 == 99:
                pair.check_contents()
        pair.restart()
    assert pair.lsmkv.contents()


def test_ranks_in_a_large_sorted_set_are_the_same(pair: Pair) -> None:
    """Of thousands of members the server counts blocks, which every change must follow."""
    choices = random.Random(SEED)

    def number() -> bytes:
        return b"%d" % choices.randrange(1500)

    def member() -> bytes:
        return b"m%d" % choices.randrange(6000)

    def bound() -> bytes:
        return choices.choice([b"-inf", b"+inf", number(), b"(" + number()])

    def place() -> bytes:
        return b"%d" % choices.randrange(-5000, 5000)

    def change() -> list[bytes]:
        start = choices.randrange(4000)
        return choices.choice(
            [
                [b"ZADD", b"z", number(), member(), number(), member()],
                [b"ZADD", b"z", number(), member(), b"wrong", member()],
                [b"ZREM", b"z", *(member() for _ in range(8))],
                [b"ZINCRBY", b"z", number(), member()],
                [b"ZREMRANGEBYRANK", b"z", b"%d" % start, b"%d" % (start + 20)],
                [b"ZPOPMIN", b"z", b"3"],
                [b"EVAL", _FAILS_LATE, b"1", b"z", member()],
                [b"RENAME", b"z", b"y"],
                [b"RENAME", b"y", b"z"],
                [b"COPY", b"z", b"y", b"REPLACE"],
                [b"MULTI"],
                [b"EXEC"],
            ]
        )

    def question() -> list[bytes]:
        return choices.choice(
            [
                [b"ZRANK", b"z", member()],
                [b"ZREVRANK", b"z", member()],
                [b"ZCOUNT", b"z", bound(), bound()],
                [b"ZRANGE", b"z", (start := place()), b"%d" % (int(start) + 30)],
                [b"ZREVRANGE", b"z", (start := place()), b"%d" % (int(start) + 30)],
                [b"ZCARD", b"z"],
            ]
        )

    for at in range(0, 6000, 500):
        pairs = [word for n in range(at, at + 500) for word in (number(), b"m%d" % n)]
        pair.run(0, [b"ZADD", b"z", *pairs])
    for step in range(COUNT // 4):
        pair.run(0, change() if step % 3 == 0 else question())
    pair.run(0, [b"DISCARD"])
    pair.check_contents()


_FAILS_LATE = b"""
redis.call('ZADD', KEYS[1], 7, ARGV[1])
redis.call('ZREM', KEYS[1], 'm1', 'm2')
local rank = redis.call('ZRANK', KEYS[1], ARGV[1])
redis.pcall('ZADD', KEYS[1], 1, 'other', 'x', 'y')
return {rank, redis.call('ZCOUNT', KEYS[1], 0, 700)}
"""


def test_clients_that_wait_are_served_alike(pair: Pair) -> None:
    """Two clients wait while a third one makes what they wait for: they get the same, or nothing,
    and go without it in the same order."""
    served = pair.served
    for seed in range(SEED, SEED + max(200, COUNT // 100)):
        choices = random.Random(seed)
        pair.clear()
        for _ in range(choices.randrange(4)):
            pair.run(0, feeding_request(choices))
        waiting = [waiting_request(choices) for _ in range(2)]
        steps = [(0, feeding_request(choices)) for _ in range(choices.randrange(1, 6))]
        try:
            pair.run_while_waiting(waiting, steps)
            pair.check_contents()
        except Difference as difference:
            shown = _shown([(1, waiting[0]), (2, waiting[1]), *steps])
            pytest.fail(f"seed {seed}:\n{shown}\n{difference}", pytrace=False)
    assert pair.served > served + 50


def test_requests_name_every_command_but_a_few() -> None:
    named = NAMES | {word for words in _UNCOMPARED.values() for word in words.split()}
    commands = {name.decode() for name in COMMANDS}
    assert {name for name in commands if not name.startswith(_OF_A_MODULE)} - named == set()
    assert {name for name in named if name != "NOSUCH"} <= commands
    assert set(LOOSELY) <= named


def test_a_difference_is_found_and_made_small(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison compares: with a server that forgets one key it fails, and says why."""
    real = Pair._ask

    def forgets(self: Pair, number: int, request: list[bytes]) -> tuple[Reply, Reply]:
        if request[:2] == [b"RPUSH", b"l1"]:
            self.redis.clients[number].ask("DEL", "h1")
        return real(self, number, request)

    monkeypatch.setattr(Pair, "_ask", forgets)
    noise: list[Step] = [(0, [b"SET", b"s%d" % number, b"x"]) for number in range(30)]
    steps = [*noise, (0, [b"HSET", b"h1", b"f", b"v"]), *noise, (1, [b"RPUSH", b"l1", b"a"])]
    assert "h1" in fails(pair, steps)
    assert shrunk(pair, steps) == [(0, [b"HSET", b"h1", b"f", b"v"]), (1, [b"RPUSH", b"l1", b"a"])]


THE_32 = """
PING FLUSHALL SAVE GET SET DEL INCR DECR EXPIRE TTL HSET HGET HDEL HKEYS LPUSH RPUSH LPOP RPOP LLEN
LRANGE ZADD ZREM ZRANGE ZCARD ZSCORE ZINCRBY ZRANK SADD SREM SISMEMBER SCARD SMEMBERS
"""
USES_OF_THE_32 = """
PING | SAVE
SET k v | GET k | DEL k | GET k
INCR n | INCR n | DECR n | SET s text | INCR s
EXPIRE n 1000 | TTL n | TTL s | TTL none
HSET h f 1 g 2 | HSET h f 3 | HGET h f | HGET h none | HKEYS h | HDEL h f g | HKEYS h
RPUSH l c d | LPUSH l b a | LLEN l | LRANGE l 0 -1 | LRANGE l 1 2 | LPOP l | RPOP l | LRANGE l 0 -1
ZADD z 1 one 2.5 two -1 three | ZCARD z | ZRANGE z 0 -1 WITHSCORES | ZSCORE z two | ZRANK z two
ZINCRBY z 0.25 one | ZRANGE z 0 -1 | ZREM z one none | ZRANK z one | ZSCORE z one
SADD t a b c a | SCARD t | SISMEMBER t a | SISMEMBER t z | SREM t a z | SMEMBERS t
HGET l f | LPOP h | SADD z a | ZADD t 1 a | GET l
FLUSHALL | GET n | HKEYS h | LLEN l | SCARD t | ZCARD z
"""


def test_each_of_32_commands_works(pair: Pair) -> None:
    names = set()
    for line in USES_OF_THE_32.strip().splitlines():
        for text in line.split("|"):
            request = text.strip().encode().split()
            names.add(text.split()[0])
            pair.run(0, request)
        pair.check_contents()
    assert names == set(THE_32.split())
