"""The measured part of docs/guides/caching.md: ``python cache.py PAGE``.

``lsmkv.Cache`` beside diskcache, a table of SQLite's, Redis over a Unix socket, and what memory
alone would take (``functools.lru_cache``).  One process, and four that do the same at once.  All
engines take turns, round after round; a figure is the median of the rounds.  Then each cache is
held at its limit while ten times as much is stored, and the directory is measured meanwhile.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import sqlite3
import statistics
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import diskcache
import redis
import typer
from page_parts import table, write_measured
from plots import space_plot
from processes import SPAWN, served

import lsmkv
from lsmkv.tools.bench.machine import machine
from lsmkv.tools.console import guarded, say
from lsmkv.tools.output import open_output

_WIDTH = 100
_SIZES = (100, 4096)
_MOST = 4 << 30
"""The limit of each cache, which the first tables do not reach."""
KINDS = ("get", "miss", "set, new", "set, again")
OWN, ALONE, PEER, LIMIT = "lsmkv", "lsmkv, shared=False", "diskcache", "lru_cache"


class Engine:
    """A cache as one process has it open."""

    get: Callable[[str], object]
    set: Callable[[str, bytes], object]
    close: Callable[[], object]

    def __init__(self, path: str) -> None:
        raise NotImplementedError


class Lsmkv(Engine):
    """A cache that processes share: the first one owns it."""

    def __init__(self, path: str) -> None:
        cache = lsmkv.Cache(path, size_limit=_MOST)
        self.get, self.set, self.close = cache.get, cache.set, cache.close


class Alone(Engine):
    """A cache of one process."""

    def __init__(self, path: str) -> None:
        cache = lsmkv.Cache(path, size_limit=_MOST, shared=False)
        self.get, self.set, self.close = cache.get, cache.set, cache.close


class Diskcache(Engine):
    """As it opens by default."""

    def __init__(self, path: str) -> None:
        cache = diskcache.Cache(path, size_limit=_MOST)
        self.get = functools.partial(cache.get, retry=True)
        self.set = functools.partial(cache.set, retry=True)
        self.close = cache.close


class Sqlite(Engine):
    """A table of keys and values, without expiry, limit or order."""

    def __init__(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)
        db = sqlite3.connect(f"{path}/db", timeout=60, isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("CREATE TABLE IF NOT EXISTS kv (k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID")
        self.close = db.close
        self.get = lambda key: db.execute("SELECT v FROM kv WHERE k = ?", (key,)).fetchone()
        self.set = lambda key, value: db.execute(
            "INSERT OR REPLACE INTO kv VALUES (?, ?)", (key, value)
        )


class Redis(Engine):
    """A client of a server with a log of its commands."""

    def __init__(self, path: str) -> None:
        client = redis.Redis(unix_socket_path=f"{path}/socket")
        self.get, self.set, self.close = client.get, client.set, client.close


class Lru(Engine):
    """A hit in memory.  There is no way to store but to compute."""

    def __init__(self, path: str) -> None:
        self.get = functools.lru_cache(maxsize=None)(lambda key: b"")
        self.close = lambda: None


ENGINES: dict[str, type[Engine]] = {
    OWN: Lsmkv,
    ALONE: Alone,
    PEER: Diskcache,
    "SQLite": Sqlite,
    "Redis": Redis,
    LIMIT: Lru,
}
_ONE_PROCESS = (ALONE, LIMIT)


def key_of(number: int) -> str:
    """A key of an entry."""
    return f"key:{number:08d}"


def kinds_of(engine: str) -> tuple[str, ...]:
    """What the engine can be measured at."""
    return KINDS[:1] if engine == LIMIT else KINDS


def fill(engine: str, path: str, size: int, entries: int) -> None:
    """Store every entry once."""
    if engine == LIMIT:
        return
    cache = ENGINES[engine](path)
    rng = random.Random(size)
    values = [rng.randbytes(size) for _ in range(64)]
    for number in range(entries):
        cache.set(key_of(number), values[number % 64])
    cache.close()


def work(
    pipe: Any,
    engine: str,
    path: str,
    size: int,
    entries: int,
    calls: int,
    seed: int,
    start: Any,
) -> None:
    """One process: sends the microseconds that a call of each kind takes it."""
    cache = ENGINES[engine](path)
    rng = random.Random(seed)
    value = rng.randbytes(size)
    there = [key_of(rng.randrange(entries)) for _ in range(calls)]
    absent = [f"{key}x" for key in there]
    new = [f"new:{rng.randrange(1 << 60)}" for _ in range(calls)]
    keys = dict(zip(KINDS, (there, absent, new, there), strict=True))
    if engine == LIMIT:
        for key in there:
            cache.get(key)
    for kind in kinds_of(engine):
        start.wait()
        begun = time.perf_counter()
        if kind.startswith("set"):
            for key in keys[kind]:
                cache.set(key, value)
        else:
            for key in keys[kind]:
                cache.get(key)
        pipe.send(1e6 * (time.perf_counter() - begun) / calls)
    start.wait()  # nobody leaves while others work
    cache.close()
    pipe.close()


def in_processes(
    engine: str, path: str, size: int, entries: int, calls: int, processes: int, seed: int
) -> dict[str, float]:
    """Microseconds that pass from one call of all processes to the next, by the kind of work."""
    start = SPAWN.Barrier(processes)
    running = []
    for number in range(processes):
        receiving, sending = SPAWN.Pipe(False)
        numbers = (size, entries, calls, seed * 100 + number)
        arguments = (sending, engine, path, *numbers, start)
        program = SPAWN.Process(target=work, args=arguments)
        program.start()
        sending.close()
        running.append((program, receiving))
    found = {}
    for kind in kinds_of(engine):
        rates = [1 / receiving.recv() for _, receiving in running]
        found[kind] = 1 / sum(rates)
    for program, _ in running:
        program.join()
    return found


def measure(
    size: int, processes: int, entries: int, rounds: int, calls: int, place: str
) -> dict[tuple[str, str], float]:
    """The medians, by the kind of work and the engine."""
    names = [name for name in ENGINES if processes == 1 or name not in _ONE_PROCESS]
    found: dict[tuple[str, str], list[float]] = {}
    with served(f"{place}/Redis", False):
        for name in names:
            fill(name, f"{place}/{name}", size, entries)
        for seed in range(rounds):
            for name in names:
                path = f"{place}/{name}"
                took = in_processes(name, path, size, entries, calls, processes, seed)
                for kind, micro in took.items():
                    found.setdefault((kind, name), []).append(micro)
    for name in names:
        shutil.rmtree(f"{place}/{name}", ignore_errors=True)
    return {place: statistics.median(times) for place, times in found.items()}


def rows_of(found: dict[tuple[str, str], float], size: int, processes: int) -> list[list[str]]:
    """A row for each kind of work."""
    who = "one process" if processes == 1 else f"{processes} processes"
    rows = []
    for kind in KINDS:
        cells = [f"{found[kind, name]:.1f}" if (kind, name) in found else "" for name in ENGINES]
        ratio = found[kind, PEER] / found[kind, OWN]
        rows.append([f"{kind}, {size:,} bytes, {who}", *cells, f"{ratio:.1f}"])
    return rows


# The space on disk


def space_of(path: str) -> int:
    """Bytes of all files below a directory."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.stat(f"{folder}/{name}").st_size
            except FileNotFoundError:
                pass  # removed meanwhile
    return total


def held_at_limit(engine: str, limit: int, place: str) -> list[tuple[float, float]]:
    """Store ten times the limit: how much was stored, and the space then, as multiples of it."""
    path = f"{place}/held-{engine}"
    rng = random.Random(limit)
    cache: Any = (
        lsmkv.Cache(path, size_limit=limit)
        if engine == OWN
        else diskcache.Cache(path, size_limit=limit)
    )
    stored = 0
    points = []
    for percent in range(1, 1001):
        while stored < limit * percent // 100:
            value = rng.randbytes(rng.choice((300, 2000, 4096, 20_000)))
            cache.set(f"{rng.randrange(10**12)}", value)
            stored += len(value)
        points.append((stored / limit, space_of(path) / limit))
    cache.close()
    shutil.rmtree(path)
    return points


def opening(place: str, entries: int) -> float:
    """Milliseconds to open a cache, the median of 20."""
    path = f"{place}/opening"
    fill(OWN, path, 100, entries)
    taken = []
    for _ in range(20):
        begun = time.perf_counter()
        cache = lsmkv.Cache(path)
        taken.append(1e3 * (time.perf_counter() - begun))
        cache.close()
    return statistics.median(taken)


@guarded
def main(
    page: Annotated[Path, typer.Argument(metavar="PAGE", help="docs/guides/caching.md.")],
    entries: Annotated[int, typer.Option(help="Entries of each cache.")] = 20_000,
    rounds: Annotated[int, typer.Option(help="Rounds.")] = 5,
    calls: Annotated[int, typer.Option(help="Calls of each kind in a round.")] = 2_000,
    limit: Annotated[int, typer.Option(help="MiB of the caches that are held at it.")] = 64,
) -> None:
    """Measure, and write the page's tables and its plot."""
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        for processes in (1, 4):
            for size in _SIZES:
                found = measure(size, processes, entries, rounds, calls, place)
                rows += rows_of(found, size, processes)
                say("\n".join("  ".join(row) for row in rows[-len(KINDS) :]))
        opens = opening(place, entries)
        held = {name: held_at_limit(name, limit << 20, place) for name in (OWN, PEER)}
        where = machine(place)
    most = {name: max(space for _, space in points) for name, points in held.items()}
    mode = "compiled" if lsmkv.COMPILED else "pure Python"
    about = (
        f"Measured by `make bench-cache` ({where['processor']}, {where['cores']} cores,"
        f" {where['python']}, lsmkv {mode}): microseconds from one call to the next, those of four"
        " processes counted together, and how many times faster lsmkv is than diskcache. Each"
        f" cache has {entries:,} entries. All took turns, {rounds} times; these are medians. Each"
        " engine has its defaults. SQLite has `journal_mode=WAL` and `synchronous=NORMAL`, Redis"
        " has `appendfsync everysec`."
        " `functools.lru_cache` stands for what memory alone would take."
    )
    text = "\n\n".join(
        [
            textwrap.fill(about, _WIDTH, break_on_hyphens=False),
            table(["", *ENGINES, "lsmkv / diskcache"], rows, numbers=True),
            f"Opening a cache of {entries:,} entries takes {opens:.1f} ms.",
            textwrap.fill(
                f"A cache with a limit of {limit} MiB, in which ten times as much is stored: its"
                f" directory has at most {most[OWN]:.2f} times the limit, diskcache's"
                f" {most[PEER]:.2f} times.",
                _WIDTH,
            ),
            "![The space on disk while ten times the limit is stored](../pictures/cache-space.svg)",
        ]
    )
    with open_output(str(page.parent.parent / "pictures" / "cache-space.svg"), force=True) as out:
        out.write(space_plot(held))
    write_measured(page, f"\n{text}\n")
    say(text)


if __name__ == "__main__":
    typer.run(main)
