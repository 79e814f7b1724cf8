"""The measured parts of docs/guides/caching.md and docs/reference/cache-figures.md:
``python cache.py docs/guides/caching.md``.

Caches that are full come first (full_cache.py), and their hit ratios (cache_hits.py).  Then single
calls: ``lsmkv.Cache`` beside diskcache, a table of SQLite's, Redis over a Unix socket, and what
memory alone would take (``functools.lru_cache``).  One process, and four that do the same at once.
All engines take turns, round after round; a figure is the median of the rounds.

One row, printed in a minute: ``python cache.py --only full-8k --limit 8MiB --short``.
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
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import cache_hits
import diskcache
import full_cache
import redis
import typer
from full_cache import OWN, PEER
from page_parts import table, write_measured
from plots import space_plot
from processes import SPAWN, served

import lsmkv
from lsmkv.tools.bench.machine import machine
from lsmkv.tools.console import guarded, say
from lsmkv.tools.output import open_output
from lsmkv.tools.text import from_size

_WIDTH = 100
_SIZES = (100, 4096)
_MOST = 4 << 30
"""The limit of each cache, which the first tables do not reach."""
KINDS = ("get", "miss", "set, new", "set, again")
MANY = ("push", "pull", "evict")
"""What only the caches have.  ``evict`` is an entry of a tag that all entries of a round have."""
ALONE, LIMIT = "lsmkv, shared=False", "lru_cache"
CALLS = "calls"
_SKEWED, _SCANNED, _REAL = "hits-zipf", "hits-scan", "hits-trace"
_HITS = (_SKEWED, _SCANNED, _REAL)
ROWS = (*full_cache.ROWS, *_HITS, CALLS)
_TIMES_SHORT = 3
_REQUESTS, _REQUESTS_SHORT = 100_000, 20_000


class Engine:
    """A cache as one process has it open."""

    get: Callable[[str], object]
    set: Callable[[str, bytes], object]
    close: Callable[[], object]
    cache: Any
    """What has queues and tags."""

    def __init__(self, path: str) -> None:
        raise NotImplementedError


class Lsmkv(Engine):
    """A cache that processes share: the first one owns it."""

    def __init__(self, path: str) -> None:
        cache = lsmkv.Cache(path, size_limit=_MOST)
        self.get, self.set, self.close, self.cache = cache.get, cache.set, cache.close, cache


class Alone(Engine):
    """A cache of one process."""

    def __init__(self, path: str) -> None:
        cache = lsmkv.Cache(path, size_limit=_MOST, shared=False)
        self.get, self.set, self.close, self.cache = cache.get, cache.set, cache.close, cache


class Diskcache(Engine):
    """As it opens by default."""

    def __init__(self, path: str) -> None:
        cache = diskcache.Cache(path, size_limit=_MOST)
        self.get = functools.partial(cache.get, retry=True)
        self.set = functools.partial(cache.set, retry=True)
        self.close, self.cache = cache.close, cache


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
    if engine == LIMIT:
        return KINDS[:1]
    return (*KINDS, *MANY) if engine in (OWN, ALONE, PEER) else KINDS


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
        if kind == "evict":
            for key in new:
                cache.cache.set(key, value, tag=seed, retry=True)
        start.wait()
        begun = time.perf_counter()
        if kind == "evict":
            cache.cache.evict(seed, retry=True)
        elif kind == "push":
            for _ in range(calls):
                cache.cache.push(value, retry=True)
        elif kind == "pull":
            for _ in range(calls):
                cache.cache.pull(retry=True)
        elif kind.startswith("set"):
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
    """The medians, by the kind of work and the engine; Redis is left out where it is missing."""
    names = [name for name in ENGINES if processes == 1 or name not in _ONE_PROCESS]
    if shutil.which("redis-server") is None:
        names.remove("Redis")
    found: dict[tuple[str, str], list[float]] = {}
    with served(f"{place}/Redis", False) if "Redis" in names else nullcontext():
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
    for kind in (*KINDS, *MANY):
        cells = [f"{found[kind, name]:.1f}" if (kind, name) in found else "" for name in ENGINES]
        ratio = found[kind, PEER] / found[kind, OWN]
        rows.append([f"{kind}, {size:,} bytes, {who}", *cells, f"{ratio:.1f}"])
    return rows


# Caches that are full


def full(
    names: Iterable[str], processes: Iterable[int], limit: int | None, short: bool, place: str
) -> tuple[list[list[str]], dict[str, dict[str, full_cache.Figures]]]:
    """The rows of the table, and the figures of one process by the name of the row."""
    rows: list[list[str]] = []
    drawn = {}
    for name in names:
        row = full_cache.ROWS[name]
        row = replace(row, limit=limit or row.limit)
        for many in processes:
            title = f"{name}, {row.limit >> 20} MiB, {many} process{'es' if many > 1 else ''}"
            turns, times = full_cache.TURNS, float(full_cache.TIMES)
            if short:
                turns, times = turns * _TIMES_SHORT // full_cache.TIMES, _TIMES_SHORT
            found = full_cache.measure(row, many, place, full_cache.peers(), turns, times)
            rows += (new := list(full_cache.rows_of(title, found)))
            typer.echo("\n".join(map("  ".join, new)))
            for aim in full_cache.missed(row, found):
                typer.echo(f"missed: {aim}")
            if many == 1:
                drawn[name] = found
    return rows, drawn


def hits(
    names: Iterable[str], limit: int, short: bool, trace: Path | None, place: str
) -> list[list[str]]:
    """The rows of the table."""
    requests = _REQUESTS_SHORT if short else _REQUESTS
    skewed = cache_hits.zipf(requests, requests)
    rows: list[list[str]] = []
    for name in names:
        asked: cache_hits.Trace = skewed
        if name == _SCANNED:
            asked = cache_hits.with_scan(skewed, requests // 5)
        elif name == _REAL:
            if trace is None:
                say(f"{name} needs --trace: cache_hits.py has the address of one")
                continue
            asked = cache_hits.from_file(trace)
        found = cache_hits.measure(asked, limit, f"{place}/{name}")
        rows += (new := [[name, engine, *one.cells()] for engine, one in found.items()])
        typer.echo("\n".join(map("  ".join, new)))
        for aim in cache_hits.missed(found):
            typer.echo(f"missed: {aim}")
    return rows


_SHORT = ("milliseconds", "worst", "gets_after", "size", "written")
"""The columns of the guide's table, of those of ``full_cache.COLUMNS``."""


def in_short(rows: list[list[str]]) -> str:
    """The guide's table: lsmkv and diskcache beside each other, a line for each kind of cache."""
    engines = (OWN, PEER)
    by_title: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        by_title.setdefault(row[0], {})[row[1]] = row
    places = [2 + list(full_cache.COLUMNS).index(name) for name in _SHORT]
    lines = [
        [title, *(found[engine][at] for at in places for engine in engines)]
        for title, found in by_title.items()
    ]
    titles = [full_cache.COLUMNS[name] for name in _SHORT]
    head = ["", *(f"{title}, {engine}" for title in titles for engine in engines)]
    return table(head, lines, numbers=True)


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


def single(entries: int, rounds: int, calls: int, processes: Iterable[int], place: str) -> str:
    """The table of single calls, and what stands below it."""
    rows: list[list[str]] = []
    for many in processes:
        for size in _SIZES:
            found = measure(size, many, entries, rounds, calls, place)
            rows += (new := rows_of(found, size, many))
            typer.echo("\n".join(map("  ".join, new)))
    opens = opening(place, entries)
    about = (
        "Single calls: microseconds from one call to the next, those of four"
        " processes counted together, and how many times faster lsmkv is than diskcache. Each"
        f" cache has {entries:,} entries. All took turns, {rounds} times; these are medians. Each"
        " engine has its defaults. SQLite has `journal_mode=WAL` and `synchronous=NORMAL`, Redis"
        " has `appendfsync everysec`."
        " `functools.lru_cache` stands for what memory alone would take."
    )
    return "\n\n".join(
        [
            textwrap.fill(about, _WIDTH, break_on_hyphens=False),
            table(["", *ENGINES, "lsmkv / diskcache"], rows, numbers=True),
            f"Opening a cache of {entries:,} entries takes {opens:.1f} ms.",
        ]
    )


@guarded
def main(
    page: Annotated[
        Path | None, typer.Argument(metavar="PAGE", help="docs/guides/caching.md; none: print.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help=f"A row, printed: {', '.join(ROWS)}.")
    ] = None,
    entries: Annotated[int, typer.Option(help="Entries of each cache.")] = 20_000,
    rounds: Annotated[int, typer.Option(help="Rounds.")] = 5,
    calls: Annotated[int, typer.Option(help="Calls of each kind in a round.")] = 2_000,
    limit: Annotated[
        str | None, typer.Option(help="Limit of each cache that is to be full, as 8MiB.")
    ] = None,
    processes: Annotated[list[int] | None, typer.Option(help="1 and 4 by default.")] = None,
    short: Annotated[bool, typer.Option("--short", help="A third of the work.")] = False,
    trace: Annotated[Path | None, typer.Option(help="A trace, one key a line.")] = None,
    directory: Annotated[str | None, typer.Option(help="Where the caches are made.")] = None,
) -> None:
    """Measure, print what each row has, and write the page's tables and its plot."""
    chosen = only or ROWS
    if wrong := set(chosen) - set(ROWS):
        raise typer.BadParameter(f"no such row: {', '.join(sorted(wrong))}")
    if page and (only or processes):
        raise typer.BadParameter("--only and --processes print, and write no page")
    many = processes or [1, 4]
    most = from_size(limit) if limit else None
    with tempfile.TemporaryDirectory(dir=directory, ignore_cleanup_errors=True) as place:
        rows, drawn = full(
            [name for name in full_cache.ROWS if name in chosen], many, most, short, place
        )
        small = most or (2 << 20 if short else 8 << 20)
        ratios = hits([name for name in _HITS if name in chosen], small, short, trace, place)
        calling = single(entries, rounds, calls, many, place) if CALLS in chosen else ""
        where = machine(place)
    if page is None:
        return
    times = _TIMES_SHORT if short else full_cache.TIMES
    mode = "compiled" if lsmkv.COMPILED else "pure Python"
    about = (
        f"Measured by `make bench-cache` ({where['processor']}, {where['cores']} cores,"
        f" {where['python']}, lsmkv {mode})."
        f" Caches are full: {times} times their limit is stored, in values that do not compress."
        " A set has its time in milliseconds, the time that it keeps processors busy, and the"
        " slowest. Gets are of keys that were stored lately, per second of one process, while the"
        " cache is written and afterwards. The directory is the largest one seen, as a multiple"
        " of the limit: by the sizes of its files, and on disk. Bytes written to"
        " the disk are a multiple of those stored. All caches take turns in one run."
    )
    replaying = (
        "Hit ratios on traces, replayed as fast as they go. Beside them stand an exact LRU and a"
        " FIFO with as many entries, and an LRU whose values fill the limit:"
    )
    text = "\n\n".join(
        [
            textwrap.fill(about, _WIDTH, break_on_hyphens=False),
            table(["", "", *full_cache.COLUMNS.values()], rows, numbers=True),
            textwrap.fill(replaying, _WIDTH, break_on_hyphens=False),
            table(["", "", *cache_hits.TITLES], ratios, numbers=True),
            calling,
        ]
    )
    with open_output(str(page.parent.parent / "pictures" / "cache-space.svg"), force=True) as out:
        out.write(space_plot(drawn))
    write_measured(page.parent.parent / "reference" / "cache-figures.md", f"\n{text}\n")
    guide = (
        "Measured by `make bench-cache`: full caches, at their limit while"
        f" {times} times as much is stored. Milliseconds a set, also the slowest one; Gets a second"
        " of keys that were stored lately; the largest directory, as a multiple of the limit; bytes"
        " written to the disk for each byte stored."
    )
    plot = "![The space on disk while the caches are full](../pictures/cache-space.svg)"
    filled = textwrap.fill(guide, _WIDTH, break_on_hyphens=False)
    write_measured(page, f"\n{filled}\n\n{in_short(rows)}\n\n{plot}\n")


if __name__ == "__main__":
    typer.run(main)
