"""The measured tables of docs/guides/processes.md: ``python processes.py PAGE``.

Four processes have one store open: lsmkv's ``SharedDB``, SQLite with its write-ahead log, LMDB,
diskcache, and Redis over a Unix socket.  Each engine does each kind of work for some seconds, all
engines in turn, round after round; a figure is the median of the rounds.  The second table compares
what one process has of a shared store with what it would have of a ``DB``.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import socket
import sqlite3
import statistics
import subprocess
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import diskcache
import lmdb
import redis
import typer
from page_parts import table, write_measured

import lsmkv
from lsmkv.tools.bench.machine import machine
from lsmkv.tools.console import guarded, say

_WIDTH = 100
_ENTRIES = 100_000
_BATCH = 100
_IDLE_SECONDS = 60
SPAWN = multiprocessing.get_context("spawn")

Pairs = list[tuple[bytes, bytes]]


class Engine:
    """A store, as one process has it open; ``synced``: every write of it is durable."""

    def __init__(self, path: str, synced: bool) -> None:
        raise NotImplementedError

    def put(self, key: bytes, value: bytes) -> None:
        """Write one entry."""
        self.write([(key, value)])

    def write(self, pairs: Pairs) -> None:
        """Write entries together."""
        raise NotImplementedError

    def get(self, key: bytes) -> object:
        """Read one entry."""
        raise NotImplementedError


class Lsmkv(Engine):
    """``SharedDB``; a process that does nothing else owns the store."""

    def __init__(self, path: str, synced: bool) -> None:
        self._db = lsmkv.SharedDB(path, create_if_missing=True, owner="process")
        self._synced = synced

    def put(self, key: bytes, value: bytes) -> None:
        self._db.put(key, value, sync=self._synced)

    def write(self, pairs: Pairs) -> None:
        with self._db.write_batch(sync=self._synced) as batch:
            for key, value in pairs:
                batch.put(key, value)

    def get(self, key: bytes) -> object:
        return self._db.get(key)


class Sqlite(Engine):
    """A table of two columns; a write that is not synced survives a killed process."""

    def __init__(self, path: str, synced: bool) -> None:
        os.makedirs(path, exist_ok=True)
        self._db = sqlite3.connect(f"{path}/db", timeout=60, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
        self._db.execute("CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID")

    def write(self, pairs: Pairs) -> None:
        if len(pairs) == 1:
            self._db.execute("INSERT OR REPLACE INTO kv VALUES (?, ?)", pairs[0])
            return
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT OR REPLACE INTO kv VALUES (?, ?)", pairs)
        self._db.execute("COMMIT")

    def get(self, key: bytes) -> object:
        return self._db.execute("SELECT v FROM kv WHERE k = ?", (key,)).fetchone()


class Lmdb(Engine):
    """A map that is large enough."""

    def __init__(self, path: str, synced: bool) -> None:
        self._env = lmdb.open(path, map_size=1 << 34, sync=synced)

    def write(self, pairs: Pairs) -> None:
        with self._env.begin(write=True) as transaction:
            for key, value in pairs:
                transaction.put(key, value)

    def get(self, key: bytes) -> object:
        with self._env.begin() as transaction:
            return transaction.get(key)


class Diskcache(Engine):
    """A cache that never evicts."""

    def __init__(self, path: str, synced: bool) -> None:
        self._cache = diskcache.Cache(
            path,
            timeout=60,
            eviction_policy="none",
            size_limit=1 << 40,
            sqlite_synchronous=2 if synced else 1,
        )

    def write(self, pairs: Pairs) -> None:
        if len(pairs) == 1:
            self._cache.set(*pairs[0], retry=True)
            return
        with self._cache.transact(retry=True):
            for key, value in pairs:
                self._cache.set(key, value)

    def get(self, key: bytes) -> object:
        return self._cache.get(key, retry=True)


class Redis(Engine):
    """A client of a server that :func:`served` has started."""

    def __init__(self, path: str, synced: bool) -> None:
        self._client = redis.Redis(unix_socket_path=f"{path}/socket")

    def write(self, pairs: Pairs) -> None:
        if len(pairs) == 1:
            self._client.set(*pairs[0])
        else:
            self._client.mset(dict(pairs))

    def get(self, key: bytes) -> object:
        return self._client.get(key)


ENGINES: dict[str, type[Engine]] = {
    "lsmkv": Lsmkv,
    "SQLite": Sqlite,
    "LMDB": Lmdb,
    "diskcache": Diskcache,
    "Redis": Redis,
}


class Work(NamedTuple):
    """What the four processes do."""

    says: str
    writers: int
    readers: int
    batch: int
    synced: bool
    counts: str
    """Whose entries are counted: ``put`` or ``get``."""


WORK = (
    Work("puts by 2, beside 2 that read", 2, 2, 1, False, "put"),
    Work(f"puts in batches of {_BATCH} by 2, beside 2 that read", 2, 2, _BATCH, False, "put"),
    Work("synced puts by 4", 4, 0, 1, True, "put"),
    Work("Gets by 2, beside 2 that put", 2, 2, 1, False, "get"),
    Work("Gets by 4", 0, 4, 1, False, "get"),
)


def key_of(number: int) -> bytes:
    """A key of 16 bytes."""
    return b"%016d" % number


def work(
    engine: str, path: str, synced: bool, batch: int, seed: int, seconds: float, start: Any
) -> tuple[str, float]:
    """One process: what it does, and how many entries a second.  ``batch`` is 0 for a reader."""
    store = ENGINES[engine](path, synced)
    rng = random.Random(seed)
    value = rng.randbytes(50) + bytes(50)
    keys = [key_of(rng.randrange(_ENTRIES)) for _ in range(20_000)]
    store.get(keys[0])
    start.wait()
    done = 0
    begun = time.perf_counter()
    end = begun + seconds
    while time.perf_counter() < end:
        for at in range(0, len(keys), batch or 10):
            if batch == 0:
                for key in keys[at : at + 10]:
                    store.get(key)
                done += 10
            elif batch == 1:
                store.put(keys[at], value)
                done += 1
            else:
                store.write([(key, value) for key in keys[at : at + batch]])
                done += batch
            if time.perf_counter() >= end:
                break
    took = time.perf_counter() - begun
    start.wait()  # nobody leaves while others work
    return "get" if batch == 0 else "put", done / took


def _child(pipe: Any, *arguments: Any) -> None:
    pipe.send(work(*arguments))
    pipe.close()


@contextmanager
def served(path: str, synced: bool) -> Iterator[None]:
    """A Redis server with its log of commands."""
    os.makedirs(path)
    address = f"{path}/socket"
    settings = {
        "port": "0",
        "unixsocket": address,
        "dir": path,
        "save": "",
        "appendonly": "yes",
        "appendfsync": "always" if synced else "everysec",
    }
    words = [word for name, text in settings.items() for word in (f"--{name}", text)]
    with subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL) as server:
        for _ in range(200):
            if os.path.exists(address):
                break
            time.sleep(0.05)
        try:
            yield
        finally:
            server.terminate()


def measure(engine: str, what: Work, place: str, seconds: float) -> float:
    """Entries a second of all processes that do what is counted."""
    path = f"{place}/store"
    with served(path, what.synced) if engine == "Redis" else nullcontext():
        fill(engine, path, what.synced)
        rates = in_processes(engine, path, what, seconds)
    if engine == "lsmkv":
        lsmkv.DB(path, lock_timeout=30).close()  # its owner has ended
    shutil.rmtree(path)
    return sum(rate for kind, rate in rates if kind == what.counts)


def fill(engine: str, path: str, synced: bool) -> None:
    """Every key once, by a process that ends then."""
    rng = random.Random(7)
    program = SPAWN.Process(target=_fill, args=(engine, path, synced, rng.random()))
    program.start()
    program.join()
    if program.exitcode != 0:
        raise OSError(f"{engine} could not be filled")


def _fill(engine: str, path: str, synced: bool, seed: float) -> None:
    store = ENGINES[engine](path, synced)
    rng = random.Random(seed)
    numbers = list(range(_ENTRIES))
    rng.shuffle(numbers)
    for at in range(0, _ENTRIES, 1000):
        store.write([(key_of(n), rng.randbytes(50) + bytes(50)) for n in numbers[at : at + 1000]])


def in_processes(engine: str, path: str, what: Work, seconds: float) -> list[tuple[str, float]]:
    """What each process has done."""
    batches = [what.batch] * what.writers + [0] * what.readers
    start = SPAWN.Barrier(len(batches))
    running = []
    for seed, batch in enumerate(batches):
        receiving, sending = SPAWN.Pipe(False)
        arguments = (sending, engine, path, what.synced, batch, seed, seconds, start)
        program = SPAWN.Process(target=_child, args=arguments)
        program.start()
        sending.close()
        running.append((program, receiving))
    rates = [receiving.recv() for _, receiving in running]
    for program, _ in running:
        program.join()
    return rates


# One process of a shared store, and one with a store of its own


def nanoseconds(call: Callable[[], object], times: int) -> float:
    """Of one call, on average."""
    begun = time.perf_counter()
    for _ in range(times):
        call()
    return 1e9 * (time.perf_counter() - begun) / times


def _own(path: str, stop: Any) -> None:
    with lsmkv.SharedDB(path, create_if_missing=True):
        stop.wait()
        stop.wait()


def _echo(end: socket.socket, other: socket.socket) -> None:
    other.close()
    while data := end.recv(4096):
        end.sendall(data[:21])


def beside_db(rounds: int, place: str) -> dict[str, list[tuple[float, float]]]:
    """By what is done: nanoseconds of a member, and of what it is compared with."""
    fill("lsmkv", f"{place}/shared", False)
    lsmkv.DB(f"{place}/shared", lock_timeout=30).close()  # its owner has ended
    shutil.copytree(f"{place}/shared", f"{place}/own")
    stop = SPAWN.Barrier(2)
    owner = SPAWN.Process(target=_own, args=(f"{place}/shared", stop))
    owner.start()
    stop.wait()
    here, there = socket.socketpair()
    echo = multiprocessing.get_context("fork").Process(target=_echo, args=(there, here))
    echo.start()
    there.close()
    found: dict[str, list[tuple[float, float]]] = {}
    with (
        here,
        lsmkv.SharedDB(f"{place}/shared") as member,
        lsmkv.DB(f"{place}/own") as own,
    ):
        for _ in range(rounds):
            for name, times, one, other in _comparisons(member, own, here):
                pair = nanoseconds(one, times), nanoseconds(other, times)
                found.setdefault(name, []).append(pair)
    echo.join()
    stop.wait()
    owner.join()
    return found


def _comparisons(
    member: lsmkv.DB, own: lsmkv.DB, end: socket.socket
) -> Iterator[tuple[str, int, Callable[[], object], Callable[[], object]]]:
    """What is compared: its name, how often, the member's call, and the other one."""
    hot, value = key_of(77), bytes(100)
    pairs = [(key_of(number), b"%100d" % number) for number in range(1000)]
    message = bytes(150)

    def round_trip() -> None:
        end.sendall(message)
        end.recv(64)

    def batch_of(db: lsmkv.DB) -> Callable[[], None]:
        def write() -> None:
            with db.write_batch() as batch:
                for key, content in pairs:
                    batch.put(key, content)

        return write

    def scan_of(db: lsmkv.DB) -> Callable[[], int]:
        return lambda: sum(1 for _ in db)

    cold = iter(random.Random(len(message)).choices(range(_ENTRIES), k=10_000))
    again = iter(random.Random(len(message)).choices(range(_ENTRIES), k=10_000))
    yield "a Get of the same key", 30_000, lambda: member.get(hot), lambda: own.get(hot)
    yield (
        "a Get of a random key",
        10_000,
        lambda: member.get(key_of(next(cold))),
        lambda: own.get(key_of(next(again))),
    )
    yield f"a scan of {_ENTRIES:,} entries", 1, scan_of(member), scan_of(own)
    yield (
        "a put, beside a bare round trip of the same bytes",
        3000,
        lambda: member.put(hot, value),
        round_trip,
    )
    yield "a batch of 1,000 puts", 5, batch_of(member), batch_of(own)


def moments(place: str) -> list[list[str]]:
    """What happens seldom, or not at all: a row for each."""
    path = f"{place}/moments"
    stop = SPAWN.Barrier(2)
    owner = SPAWN.Process(target=_own, args=(path, stop))
    owner.start()
    stop.wait()
    joining = [nanoseconds(lambda: lsmkv.SharedDB(path).close(), 1) for _ in range(20)]
    with lsmkv.SharedDB(path, may_own=False) as member:
        followed = []
        for _ in range(10):
            with member.write_batch() as batch:
                for number in range(10_000):
                    batch.put(key_of(number), b"%100d" % number)
            followed.append(nanoseconds(lambda: member.get(b"-"), 1) / 10_000)
        before = time.process_time_ns()
        time.sleep(_IDLE_SECONDS)
        idle = time.process_time_ns() - before
    stop.wait()
    owner.join()
    alone, together = (
        statistics.median(_synced(writers, place) for _ in range(5)) for writers in (1, 8)
    )
    reading = statistics.median(two_readers(5, 2.0, place))
    return [
        ["joining, while the log is empty", _time(statistics.median(joining))],
        ["reading an entry that another process has written", _time(statistics.median(followed))],
        [f"processor time of a member that is idle for {_IDLE_SECONDS} seconds", _time(idle)],
        ["from the kill of the owner to a member's next write", _time(_kill(place))],
        ["synced puts of 8 members together, beside those of one", f"{together / alone:.1f} times"],
        ["Gets of 2 members together, beside those of one", f"{reading:.2f} times"],
    ]


def _synced(writers: int, place: str) -> float:
    """Synced puts a second of so many processes."""
    what = Work("", writers, 0, 1, True, "put")
    return sum(rate for _, rate in in_processes("lsmkv", f"{place}/synced", what, 1.0))


def two_readers(pairs: int, seconds: float, place: str) -> list[float]:
    """How often as much two processes read as one, in turn with it; a third one owns the store.

    Each reads its own random keys, whose blocks are in the cache.
    """
    path = f"{place}/reading"
    fill("lsmkv", path, False)
    ratios = []
    for _ in range(pairs):
        one, two = (
            sum(rate for _, rate in in_processes("lsmkv", path, _reading(readers), seconds))
            for readers in (1, 2)
        )
        ratios.append(two / one)
    lsmkv.DB(path, lock_timeout=30).close()  # its owner has ended
    shutil.rmtree(path)
    return ratios


def _reading(readers: int) -> Work:
    return Work("", 0, readers, 1, False, "get")


def _kill(place: str) -> float:
    """The median time, in nanoseconds, in which a write finds its way to the next owner."""
    taken = []
    for number in range(10):
        path = f"{place}/killed-{number}"
        stop = SPAWN.Barrier(2)
        owner = SPAWN.Process(target=_own, args=(path, stop))
        owner.start()
        stop.wait()
        with lsmkv.SharedDB(path) as member:
            member.put(b"k", b"v")
            owner.kill()
            taken.append(nanoseconds(lambda: member.put(b"k", b"w"), 1))
        owner.join()
    return statistics.median(taken)


# The page


def engine_table(rounds: int, seconds: float, place: str) -> list[list[str]]:
    """A row for each kind of work."""
    found: dict[tuple[str, str], list[float]] = {}
    for number in range(rounds):
        for what in WORK:
            say(f"round {number + 1} of {rounds}: {what.says}")
            for engine in ENGINES:
                rate = measure(engine, what, place, seconds)
                found.setdefault((what.says, engine), []).append(rate)
    return [
        [what.says, *(f"{statistics.median(found[what.says, name]):,.0f}" for name in ENGINES)]
        for what in WORK
    ]


def member_table(rounds: int, place: str) -> list[list[str]]:
    """A row for each comparison."""
    rows = []
    for name, pairs in beside_db(rounds, place).items():
        one, other = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(mine / theirs for mine, theirs in pairs)
        rows.append([name, _time(one), _time(other), f"{ratio:.2f}"])
    return rows


def _time(nano: float) -> str:
    if nano < 1e3:
        return f"{nano:.0f} ns"
    return f"{nano / 1e3:.1f} us" if nano < 1e6 else f"{nano / 1e6:.2f} ms"


@guarded
def main(
    page: Annotated[Path, typer.Argument(metavar="PAGE", help="docs/guides/processes.md.")],
    rounds: Annotated[int, typer.Option(metavar="N", help="Rounds of each measurement.")] = 3,
    seconds: Annotated[
        float, typer.Option(metavar="S", help="Seconds of each kind of work.")
    ] = 3.0,
    only_reading: Annotated[
        bool, typer.Option("--only-reading", help="Two that read beside one; write no page.")
    ] = False,
) -> None:
    """Measure, and write the page's tables."""
    if only_reading:
        with tempfile.TemporaryDirectory() as place:
            ratios = two_readers(rounds, seconds, place)
        pairs = " ".join(f"{ratio:.3f}" for ratio in ratios)
        say(f"two that read, beside one: {statistics.median(ratios):.3f} ({pairs})")
        return
    with tempfile.TemporaryDirectory() as place:
        members = member_table(3 * rounds, place)
        seldom = moments(place)
        engines = engine_table(rounds, seconds, place)
        where = machine(place)
    mode = "compiled" if lsmkv.COMPILED else "pure Python"
    turns = "once" if rounds == 1 else f"and this is the median of {rounds} rounds"
    about = (
        f"Measured by `make bench-processes` ({where['processor']}, {where['cores']} cores,"
        f" {where['python']}, lsmkv {mode}): entries a second of four processes together. Each of"
        f" {_ENTRIES:,} entries has a key of 16 bytes and a value of 100. All engines took turns,"
        f' {turns}. lsmkv has `owner="process"`. SQLite {sqlite3.sqlite_version} has'
        " `journal_mode=WAL` and `synchronous=NORMAL`, with `FULL` for synced puts. Redis has"
        " `appendfsync everysec`, with `always` for synced puts."
    )
    parts = [
        textwrap.fill(about, _WIDTH, break_on_hyphens=False),
        table(["", *ENGINES], engines, numbers=True),
        "One process, not the owner, beside one that has the same entries in a `DB`:",
        table(["", "member", "compared with", "ratio"], members, numbers=True),
        "What happens seldom, and what several do together:",
        table(["", "measured"], seldom, numbers=True),
    ]
    text = "\n\n".join(parts)
    write_measured(page, f"\n{text}\n")
    say(text)


if __name__ == "__main__":
    typer.run(main)
