"""Writes that take long run in a thread, and others see their keys before or after, never half."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from serving import Client, an_engine, parsed
from ticks import FULL, refused

from lsmkv import MemoryEnv
from lsmkv.server import Server
from lsmkv.server.check import check
from lsmkv.server.encoding import STAGED
from lsmkv.server.engine import Engine
from lsmkv.testing import FaultyEnv

MANY = 1000
NUMBERS = [b"%04d" % number for number in range(MANY)]
SOME = [b"%04d" % number for number in range(0, MANY, 2)]


def fill(engine: Engine) -> None:
    client = Client(engine)
    engine.reads.in_loop = 100.0
    engine.space.chunk_size = 256
    pairs = [word for number in NUMBERS for word in (number, number)]
    client(b"HSET", b"hash", *pairs)
    client(b"SADD", b"set", *NUMBERS)
    client(b"SADD", b"set2", *SOME)
    client(b"RPUSH", b"list", *NUMBERS)
    client(b"ZADD", b"sorted", *pairs)
    client(b"ZADD", b"sorted2", *[word for number in SOME for word in (number, number)])
    for number in NUMBERS:
        longitude = b"%d" % (int(number) % 360 - 180)
        client(b"GEOADD", b"geo", longitude, b"%d" % (int(number) % 80), number)
        client(b"XADD", b"stream", b"%d-1" % (int(number) + 1), b"field", number)
    client("XGROUP CREATE stream group 0")
    client("XREADGROUP GROUP group consumer COUNT 5 STREAMS stream >")
    client("SET old value PXAT 2000000000000")
    client(b"SET", b"long", b"x" * 300_000)
    client("SET", "dump", client("DUMP set"))
    for key in ("hash", "list", "sorted"):
        client(f"PEXPIREAT {key} 2000000000000")
    engine.commit()


@asynccontextmanager
async def hurried_engine(env: MemoryEnv | None = None, **settings: Any) -> AsyncIterator[Engine]:
    """An engine that lets commands leave the loop after some hundred records."""
    with an_engine(env, **settings) as engine:
        engine.schedule = asyncio.get_running_loop().call_soon
        fill(engine)
        engine.reads.in_loop = -1.0
        yield engine
        await engine.writes.drain()
        engine.commit()
        while engine.tidy_once():
            engine.commit()
        engine.commit()
        assert check(engine.db) == []
        assert list(engine.db.iterator(prefix=STAGED)) == []


def client_of(engine: Engine) -> tuple[Client, list[bytes]]:
    client = Client(engine)
    sent: list[bytes] = []
    client.session.send = sent.append
    return client, sent


async def ended(client: Client, sent: list[bytes]) -> Any:
    """What a client gets once its command has ended."""
    while client.session.postponed or client.session.evaluating:
        await asyncio.sleep(0)
    client.engine.commit()
    replies = parsed(b"".join(sent))
    sent.clear()
    return replies[0] if len(replies) == 1 else replies


def state(engine: Engine) -> dict[bytes, Any]:
    """All keys with their contents and expiry."""
    client = Client(engine)
    reads = {
        "hash": ("HGETALL {}", "HPEXPIRETIME {} FIELDS 1 0001"),
        "set": ("SMEMBERS {}",),
        "list": ("LRANGE {} 0 -1", "LLEN {}", "LINDEX {} 0", "LINDEX {} -1"),
        "zset": ("ZRANGE {} 0 -1 WITHSCORES", "ZCARD {}", "ZCOUNT {} -inf +inf"),
        "stream": ("XRANGE {} - +", "XINFO STREAM {} FULL COUNT 0", "XPENDING {} group"),
        "string": ("GET {}",),
    }
    sizes = [(one.size, one.expiring, one.times) for one in engine.space.databases]
    found: dict[bytes, Any] = {b"sizes": sizes}
    for key in client("KEYS *"):
        kind = client(f"TYPE {key.decode()}").decode()
        lines = (*reads[kind], "PEXPIRETIME {}")
        found[key] = [kind, *(client(line.format(key.decode())) for line in lines)]
        if kind == "stream":  # when its consumer was seen last
            found[key][2] = [one for one in found[key][2] if not isinstance(one, list)]
    return found


LINES = [
    "SUNIONSTORE old set set2",
    "SINTERSTORE old set set2",
    "SDIFFSTORE old set set2",
    "SUNIONSTORE set set2 set",
    "ZUNIONSTORE new 2 sorted set WEIGHTS 2 3",
    "ZINTERSTORE sorted 2 sorted sorted2",
    "ZDIFFSTORE old 2 sorted sorted2",
    "ZRANGESTORE old sorted 100 900",
    "GEOSEARCHSTORE old geo FROMLONLAT 0 40 BYBOX 40000 20000 km",
    "GEORADIUS geo 0 40 20000 km STOREDIST new",
    "GEORADIUS geo 0 40 20000 km STORE old STOREDIST old",
    "SORT list ALPHA DESC STORE list",
    "COPY hash new",
    "COPY hash old DB 1 REPLACE",
    "COPY stream old REPLACE",
    "COPY long old REPLACE",
    "BITOP NOT long long",
    "ZREMRANGEBYRANK sorted 100 899",
    "ZREMRANGEBYSCORE sorted -inf +inf",
    "ZREMRANGEBYRANK sorted 0 599",
    "ZPOPMAX sorted 700",
    "SPOP set 1000",
    "LTRIM list 100 399",
    "LPOP list 700",
    "RPOP list 2000",
    "LREM list -1 0001",
    "LINSERT list BEFORE 0500 x",
    "XTRIM stream MAXLEN 10",
    "XTRIM stream MAXLEN 400",
    "LREM list 0 nothing",
]


@pytest.mark.parametrize("line", LINES)
def test_it_changes_and_answers_what_it_does_in_the_loop(line: str) -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            with an_engine() as other:
                fill(other)
                expected = Client(other)(line)
                other.commit()
                client, sent = client_of(engine)
                assert client(line) is None
                assert await ended(client, sent) == expected
                engine.reads.in_loop = 100.0
                assert state(engine) == state(other)

    asyncio.run(main())


def with_arguments(name: str) -> list[bytes]:
    """A command of many arguments, most of them new."""
    words = [b"%05d" % number for number in range(300, 1700)]
    pairs = [word for one in words for word in (one, one)]
    key, values = {
        "SADD": (b"set", words),
        "SREM": (b"set", words),
        "HSET": (b"hash", pairs),
        "HDEL": (b"hash", NUMBERS[:900]),
        "ZADD": (b"sorted", pairs),
        "ZREM": (b"sorted", NUMBERS[:900]),
        "LPUSH": (b"list", words),
        "XDEL": (b"stream", [b"%d-1" % (int(number) + 1) for number in SOME]),
    }[name]
    return [name.encode(), key, *values]


@pytest.mark.parametrize(
    "name", ["SADD", "SREM", "HSET", "HDEL", "ZADD", "ZREM", "LPUSH", "XDEL", "RESTORE"]
)
def test_many_arguments_leave_the_loop_too(name: str) -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            with an_engine() as other:
                fill(other)
                if name == "RESTORE":
                    words = [b"RESTORE", b"old", b"0", Client(other)("GET dump"), b"REPLACE"]
                else:
                    words = with_arguments(name)
                client, sent = client_of(engine)
                assert client(*words) is None
                assert await ended(client, sent) == Client(other)(*words)
                other.commit()
                engine.reads.in_loop = 100.0
                assert state(engine) == state(other)

    asyncio.run(main())


def test_a_long_payload_is_restored_in_a_thread_at_once() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            engine.reads.in_loop = 100.0
            client, sent = client_of(engine)
            client(b"SADD", b"large", *[b"%010d" % number for number in range(10_000)])
            payload = client("DUMP large")
            sent.clear()
            assert client("RESTORE", "new", "0", payload) is None
            assert client.session.postponed
            assert await ended(client, sent) == b"OK"
            assert client("SCARD new") == 10_000

    asyncio.run(main())


def test_others_go_on_and_see_the_keys_as_they_were() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            (client, sent), (other, _) = client_of(engine), client_of(engine)
            assert client("SUNIONSTORE old set set2") is None
            other.plays(
                ("PING", b"PONG"),
                ("INCR n", 1),
                ("SADD set later", 1),
                ("DEL set2", 1),
                ("DBSIZE", 11),
            )
            assert b"old" in other("SCAN 0 MATCH old COUNT 100")[1]
            assert await ended(client, sent) == MANY
            other.plays(("SISMEMBER old later", 0), ("SCARD old", MANY), ("TTL old", -1))

    asyncio.run(main())


@pytest.mark.parametrize(
    ("lines", "reply"),
    [
        (["SCARD old"], MANY),
        (["DEL old"], 1),
        (["SISMEMBER old 0001"], 1),
        (["MULTI", "PING", "SCARD old", "EXEC"], [b"PONG", MANY]),
        (["EVAL \"return redis.call('scard',KEYS[1])\" 1 old"], MANY),
        (["SUNIONSTORE other old"], MANY),
    ],
)
def test_who_names_a_key_that_is_written_waits(lines: list[str], reply: Any) -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            (client, sent), (other, others) = client_of(engine), client_of(engine)
            assert client("SUNIONSTORE old set set2") is None
            for line in lines[:-1]:
                assert other(line) in (b"OK", b"QUEUED")
            assert other(lines[-1]) is None
            assert other.session.postponed
            assert await ended(client, sent) == MANY
            assert await ended(other, others) == reply

    asyncio.run(main())


def test_clients_that_wait_and_leave_run_nothing() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            (client, sent), (other, _) = client_of(engine), client_of(engine)
            client("SUNIONSTORE old set set2")
            other("DEL old")
            engine.close_session(other.session)
            assert await ended(client, sent) == MANY
            assert Client(engine)("SCARD old") == MANY

    asyncio.run(main())


def test_a_write_of_a_client_that_leaves_is_done() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            client, _ = client_of(engine)
            client("SUNIONSTORE old set set2")
            engine.close_session(client.session)
            await engine.writes.drain()
            assert Client(engine)("SCARD old") == MANY

    asyncio.run(main())


@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_it_runs_again_if_something_else_has_changed_its_key(times: int) -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            space = engine.space
            (client, sent), (other, _) = client_of(engine), client_of(engine)
            client("SUNIONSTORE old set2 set")
            for number in range(times):
                if client.session.postponed:
                    space.set_string(space.databases[0], b"old", b"new")  # as a script may do
                    space.keep()
                    other(f"SADD set {number}")
                seen = space.watched.get((0, b"old"))
                while client.session.postponed and space.watched.get((0, b"old")) == seen:
                    await asyncio.sleep(0)
            assert await ended(client, sent) == MANY + min(times, 3)
            assert other("SCARD old") == MANY + min(times, 3)

    asyncio.run(main())


def test_a_script_that_does_not_name_a_key_may_change_it() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            (client, sent), (other, _) = client_of(engine), client_of(engine)
            client("SUNIONSTORE old set set2")
            other("EVAL \"return redis.call('set', 'old', 'value')\" 0")
            assert await ended(client, sent) == MANY
            while other.session.evaluating:
                await asyncio.sleep(0)

    asyncio.run(main())


@pytest.mark.parametrize("flush", ["FLUSHALL", "FLUSHDB", "SWAPDB 0 1"])
def test_after_a_flush_nothing_is_stored(flush: str) -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            (client, sent), (other, _) = client_of(engine), client_of(engine)
            client("SUNIONSTORE new set set2")
            assert other(flush) == b"OK"
            assert await ended(client, sent) == 0
            assert other("EXISTS new") == 0

    asyncio.run(main())


def test_a_key_that_expires_meanwhile_is_replaced() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            (client, sent), (other, _) = client_of(engine), client_of(engine)
            other("PEXPIRE old 1")
            client("SUNIONSTORE old set set2")
            await asyncio.sleep(0.002)
            engine.tidy_once()
            assert await ended(client, sent) == MANY
            other.plays(("SCARD old", MANY), ("TTL old", -1))

    asyncio.run(main())


def test_errors_and_events_are_those_of_the_command() -> None:
    async def main() -> None:
        async with hurried_engine(slowlog_slower_than=0) as engine:
            (client, sent), (other, others) = client_of(engine), client_of(engine)
            engine.reads.in_loop = 100.0
            other("RPUSH", "words", *[b"x" + number for number in NUMBERS])
            engine.reads.in_loop = -1.0
            other("CONFIG SET notify-keyspace-events KEA")
            other("PSUBSCRIBE __keyevent@0__:*")
            engine.commit()
            others.clear()
            assert client("SORT words STORE new") is None
            error = "ERR One or more scores can't be converted into double"
            assert await ended(client, sent) == error
            client("SUNIONSTORE new set set2")
            assert await ended(client, sent) == MANY
            (message,) = parsed(b"".join(others))
            assert message[2:] == [b"__keyevent@0__:sunionstore", b"new"]
            assert Client(engine)("SLOWLOG GET 1")[0][3][:2] == [b"SUNIONSTORE", b"new"]

    asyncio.run(main())


def test_a_client_that_watches_or_waits_for_the_key_is_noticed() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            (client, sent), (other, _) = client_of(engine), client_of(engine)
            waiting, got = client_of(engine)
            other("WATCH new")
            other("MULTI")
            other("PING")
            assert waiting("BLPOP new 0") is None
            client("SORT list STORE new")
            assert await ended(client, sent) == MANY
            assert parsed(b"".join(got)) == [[b"new", b"0000"]]
            assert other("EXEC") is None

    asyncio.run(main())


def test_a_store_that_takes_no_writes_refuses_it() -> None:
    async def main() -> None:
        env = FaultyEnv()
        async with hurried_engine(env) as engine:
            client, sent = client_of(engine)
            env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
            client("SUNIONSTORE old set set2")
            assert refused(await ended(client, sent))
            env.heal()
            assert client("GET old") == b"value"

    asyncio.run(main())


def test_undoing_what_the_loop_has_begun_takes_as_long_as_it_takes() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            client, sent = client_of(engine)
            for count in range(100):  # the time is looked at after any of its reads
                engine.reads.in_loop = 100.0
                assert client(b"EXISTS", *[b"key"] * (count % 7 + 1)) == 0
                engine.reads.in_loop = -1.0
                assert client(b"RPUSH", b"%d" % count, *NUMBERS[:300]) is None
                assert client.session.postponed
                assert await ended(client, sent) == 300

    asyncio.run(main())


def test_too_many_versions_end_in_one_go() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            client, sent = client_of(engine)
            engine.reads.in_loop = 100.0
            for number in range(MANY * 5):
                client(f"XGROUP CREATE stream g{number} 0")
            client.received()
            engine.commit()
            sent.clear()
            engine.reads.in_loop = -1.0
            assert client("COPY stream new") is None
            assert await ended(client, sent) == 1
            engine.reads.in_loop = 100.0
            assert len(client("XINFO GROUPS new")) == 5 * MANY + 1

    asyncio.run(main())


def test_transactions_and_sorting_by_other_keys_write_in_the_loop() -> None:
    async def main() -> None:
        async with hurried_engine() as engine:
            client, _ = client_of(engine)
            for line in ("MULTI", "SUNIONSTORE old set set2"):
                client(line)
            assert client("EXEC") == [MANY]
            assert client("SORT list BY nosort GET # STORE new") == MANY

    asyncio.run(main())


def test_replies_of_a_pipeline_keep_their_order(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        server.engine.reads.in_loop = -1.0
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        words = b" ".join(NUMBERS)
        writer.write(b"SADD set %b\r\nSUNIONSTORE new set\r\nSCARD new\r\nPING\r\n" % words)
        assert await reader.readexactly(28) == b":1000\r\n:1000\r\n:1000\r\n+PONG\r\n"
        writer.close()

    runner.run(main())


def test_a_server_that_ends_finishes_its_writes(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        server.engine.reads.in_loop = -1.0
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"SADD set %b\r\n" % b" ".join(NUMBERS))
        assert await reader.readexactly(7) == b":1000\r\n"
        writer.write(b"SUNIONSTORE new set\r\n")
        while not server.engine.writes.active:
            await asyncio.sleep(0)
        await server.stop()
        assert await reader.read() == b":1000\r\n"
        writer.close()

    runner.run(main())


def test_a_write_without_a_loop_runs_to_its_end() -> None:
    with an_engine() as engine:
        fill(engine)
        engine.reads.in_loop = -1.0
        client = Client(engine)
        assert client("SUNIONSTORE old set set2") == MANY
