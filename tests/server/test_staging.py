"""Long strings are written in steps before their command runs, and others go on meanwhile."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from serving import Client, parsed
from ticks import FULL, engine_of, open_store, refused

from lsmkv import DB, Env, MemoryEnv, RecoveryWarning
from lsmkv.server.check import check
from lsmkv.server.encoding import ELEMENT, FORMAT, FORMAT_KEY, STAGED, Entry
from lsmkv.server.engine import Engine
from lsmkv.testing import CrashState, FaultyEnv, RecordingEnv, explore

LONG = b"0123456789abcdef" * (5 << 16)
"""5 MiB: more than is written at once."""
MEMBERS = 5


@asynccontextmanager
async def served(env: Env | None = None) -> AsyncIterator[Engine]:
    """An engine in a loop; the tests call the steps of its strings, which none else does."""
    with open_store(env or MemoryEnv(), write_buffer_size=64 << 20) as db:
        yield engine_of(db)


class Steps:
    """The steps that an engine has scheduled."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._scheduled: list[Callable[[], object]] = []
        engine.schedule = self._scheduled.append

    def run(self, most: int = 1000) -> None:
        """Run steps until none is left, or so many."""
        while self._scheduled and most:
            self._scheduled.pop(0)()
            most -= 1


def client_of(engine: Engine) -> tuple[Client, list[bytes]]:
    client = Client(engine)
    sent: list[bytes] = []
    client.session.send = sent.append
    return client, sent


def old_string(db: DB, value: bytes = LONG) -> None:
    """Store a string as a release without chunks does."""
    engine = engine_of(db)
    engine.space.longest_whole = 1 << 40
    client = Client(engine)
    client("SET", "s", value, "EX", "1000")
    engine.commit()
    assert db.get(FORMAT_KEY) == FORMAT


def elements(engine: Engine) -> int:
    return sum(1 for _ in engine.db.iterator(prefix=ELEMENT))


def swept(engine: Engine) -> None:
    while engine.tidy_once():
        engine.commit()
    engine.commit()
    assert check(engine.db) == []


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (("SET", "s", LONG), b"OK"),
        (("SET", "s", LONG, "EX", "100", "NX"), b"OK"),
        (("SETEX", "s", "100", LONG), b"OK"),
        (("SETNX", "s", LONG), 1),
        (("GETSET", "s", LONG), None),
        (("MSET", "s", LONG, "t", LONG[:-1]), b"OK"),
    ],
)
def test_others_go_on_while_a_long_argument_is_written(
    words: tuple[str | bytes, ...], reply: object
) -> None:
    async def main() -> None:
        async with served() as engine:
            steps = Steps(engine)
            (client, sent), (other, _) = client_of(engine), client_of(engine)
            client(*words)
            for number in range(MEMBERS):
                steps.run(1)
                assert sent == []
                assert check(engine.db) == []
                assert other("INCR n") == number + 1
                assert other("EXISTS s") == 0
            steps.run()
            assert parsed(b"".join(sent)) == [reply]
            client.session.send = lambda data: None
            assert engine.space.string(engine.space.databases[0], b"s") == LONG
            assert list(engine.db.iterator(prefix=STAGED)) == []
            assert check(engine.db) == []
            other("DEL s t")
            engine.commit()
            swept(engine)
            assert elements(engine) == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    "words",
    [("SETRANGE", "s", "7", "xyz"), ("APPEND", "s", "xyz"), ("SETBIT", "s", "2", "0")],
)
def test_an_old_string_is_converted_in_steps(words: tuple[str, ...]) -> None:
    async def main() -> None:
        async with served() as engine:
            old_string(engine.db)
            again = engine_of(engine.db)
            steps = Steps(again)
            (client, sent), (other, _) = client_of(again), client_of(again)
            client(*words)
            for _ in range(MEMBERS):
                steps.run(1)
                assert sent == []
                assert other("GETRANGE s 16 17") == b"01"
                assert check(again.db) == []
            steps.run()
            assert len(parsed(b"".join(sent))) == 1
            changed = bytearray(LONG)
            if words[0] == "SETRANGE":
                changed[7:10] = b"xyz"
            elif words[0] == "APPEND":
                changed += b"xyz"
            else:
                changed[0] &= 0xDF
            database = again.space.databases[0]
            entry = again.space.find(database, b"s")
            assert entry is not None
            assert entry.version > 0
            assert entry.expires > 0
            assert again.space.content(entry) == changed
            assert list(again.db.iterator(prefix=STAGED)) == []
            swept(again)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("meanwhile", "found"),
    [
        ("SET s brief", b"briefxyz"),
        ("DEL s", b"xyz"),
        ("FLUSHDB", b"xyz"),
        ("SWAPDB 0 1", b"xyz"),
        ("PERSIST s", LONG + b"xyz"),
        ("APPEND s !", LONG + b"xyz!"),
    ],
)
def test_a_key_that_changes_while_it_is_converted(meanwhile: str, found: bytes) -> None:
    async def main() -> None:
        async with served() as engine:
            old_string(engine.db)
            again = engine_of(engine.db)
            steps = Steps(again)
            (client, sent), (other, _) = client_of(again), client_of(again)
            client("APPEND", "s", "xyz")
            steps.run(2)
            other(meanwhile)
            steps.run()
            assert parsed(b"".join(sent)) == [len(found.removesuffix(b"!"))]
            assert again.space.string(again.space.databases[0], b"s") == found
            assert again.space.watched == {}
            again.commit()
            swept(again)

    asyncio.run(main())


def test_a_client_that_leaves_ends_the_writing() -> None:
    async def main() -> None:
        async with served() as engine:
            steps = Steps(engine)
            client, sent = client_of(engine)
            client("SET", "s", LONG)
            steps.run(3)
            engine.close_session(client.session)
            steps.run()
            assert sent == []
            assert Client(engine)("EXISTS s") == 0
            swept(engine)
            assert elements(engine) == 0

    asyncio.run(main())


def test_a_full_disk_refuses_the_command() -> None:
    async def main() -> None:
        env = FaultyEnv()
        async with served(env) as engine:
            steps = Steps(engine)
            client, sent = client_of(engine)
            client("SET", "s", LONG)
            steps.run(2)
            env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
            steps.run(2)
            env.heal()
            steps.run()
            (reply,) = parsed(b"".join(sent))
            assert refused(reply)
            client.session.send = lambda data: None
            assert client("SET n 1") == b"OK"
            steps.run()
            assert check(engine.db) == []
        with open_store(env) as db:
            swept(again := engine_of(db))
            assert elements(again) == 0

    asyncio.run(main())


def test_transactions_write_a_long_string_at_once() -> None:
    async def main() -> None:
        async with served() as engine:
            steps = Steps(engine)
            client, _ = client_of(engine)
            for words in (("MULTI",), ("SET", "s", LONG), ("STRLEN", "s")):
                client(*words)
            assert client("EXEC") == [b"OK", len(LONG)]
            steps.run()
            swept(engine)

    asyncio.run(main())


def test_a_server_that_ends_writes_what_it_has_begun() -> None:
    async def main() -> None:
        async with served() as engine:
            engine.schedule = asyncio.get_running_loop().call_soon
            client, sent = client_of(engine)
            client("SET", "s", LONG)
            await engine.staging.drain()
            engine.commit()
            assert sent == [b"+OK\r\n"]

    asyncio.run(main())


def test_every_crash_leaves_a_string_as_before_or_after_the_command() -> None:
    value = LONG[: 1 << 16] * 3

    def workload(env: RecordingEnv) -> None:
        async def main() -> None:
            async with served(env) as engine:
                old_string(engine.db, value)
                again = engine_of(engine.db)
                again.space.most_at_once = 1 << 16
                again.staging.step = 1 << 16
                steps = Steps(again)
                for words in (("SETRANGE", "s", "5", "xyz"), ("SET", "t", value)):
                    client, sent = client_of(again)
                    client(*words)
                    steps.run()
                    assert len(sent) == 1

        asyncio.run(main())

    def states() -> Iterator[bytes | None]:
        yield from (None, value, value[:5] + b"xyz" + value[8:])

    def look(state: CrashState) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecoveryWarning)
            opened = open_store(state.env)
        with opened as db:
            if db.get(FORMAT_KEY) is None:
                return
            engine = engine_of(db)
            assert check(db) == []
            database = engine.space.databases[0]
            assert engine.space.string(database, b"s") in states()
            assert engine.space.string(database, b"t") in (None, value)
            swept(engine)
            kept = [Entry.decode(record) for _, record in db.iterator(prefix=b"k")]
            assert elements(engine) == sum(entry.chunks for entry in kept)

    report = explore(workload, look, points=30)
    assert report.violations == [], str(report)
