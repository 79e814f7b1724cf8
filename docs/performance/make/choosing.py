"""The measured table of docs/guides/choosing.md: ``python choosing.py PAGE``.

Seven stores do what programs ask of a store, each with its own defaults, through its own Python
API.  The workloads, their data and their checks are those of ``lsmkv bench``; diskcache and Redis,
which are no ordered stores of bytes, do those that they can.  Each engine has a process of its own,
and all take turns, round after round; a figure is the median of the rounds.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

import diskcache
import redis
import typer
from page_parts import table, write_measured
from processes import SPAWN

import lsmkv
from lsmkv.tools.bench.engines import make_engine
from lsmkv.tools.bench.machine import machine
from lsmkv.tools.bench.settings import Settings
from lsmkv.tools.bench.store import Engine, Put, Store
from lsmkv.tools.bench.studies import require_right
from lsmkv.tools.bench.workbench import Bench
from lsmkv.tools.bench.workloads import WORKLOADS
from lsmkv.tools.console import guarded, say

_WIDTH = 100
_MIB = 1024 * 1024
_IMPORTS = 11
_IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
NAMES = ("lsmkv", "plyvel", "rocksdict", "lmdb", "sqlite3", "diskcache", "redis")
ORDERED = NAMES[:5]
WORK: Final[dict[str, str]] = {
    "fillrandom": "put, random order, µs",
    "fillbatch": "put, 1,000 a batch, µs",
    "fillsync": "put, synced, µs",
    "readrandom": "Get, random order, µs",
    "readmissing": "Get, absent key, µs",
    "readseq": "scan, an entry, µs",
    "seek10": "seek, then ten entries, µs",
    "readwhilewriting": "Get beside a writing thread, µs",
    "open": "open, ms",
}
"""The rows of the table, by workload."""
_CACHE = dict.fromkeys(
    ("fillbatch", "readseq", "seek10", "readwhilewriting"), "it is no ordered store"
)


class DiskcacheEngine:
    """``diskcache.Cache``: values under keys in a table of SQLite."""

    threads = True
    version = version("diskcache")
    cannot = _CACHE

    def open(self, path: str, settings: Settings, sync: bool = False) -> DiskcacheStore:
        """As it opens by default, with room for all entries."""
        kind = {"sqlite_synchronous": 2} if sync else {}
        return DiskcacheStore(diskcache.Cache(path, size_limit=1 << 36, **kind))


class DiskcacheStore(Store):
    """An open one."""

    def __init__(self, cache: Any) -> None:
        super().__init__(cache)

    def putter(self) -> Put:
        put: Put = self._db.set
        return put


class RedisEngine:
    """A server beside the program, over a Unix socket, with a log of its commands."""

    threads = True
    version = version("redis")
    cannot = _CACHE | {"open": "a server is started instead"}

    def open(self, path: str, settings: Settings, sync: bool = False) -> RedisStore:
        """Start a server; a write survives its end."""
        return RedisStore(path, "always" if sync else "everysec")


class RedisStore(Store):
    """An open one."""

    def __init__(self, path: str, fsync: str) -> None:
        os.makedirs(path, exist_ok=True)
        # The name of a socket may be too short for where stores are.
        self._place = tempfile.mkdtemp(prefix="redis-")
        at = f"{self._place}/socket"
        settings = {"port": "0", "unixsocket": at, "dir": path, "appendonly": "yes"}
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        self._server = subprocess.Popen(
            ["redis-server", *words, "--appendfsync", fsync, "--save", ""],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        super().__init__(redis.Redis(unix_socket_path=at))
        for _ in range(600):
            try:
                self._db.ping()
                return
            except (OSError, redis.ConnectionError, redis.BusyLoadingError):
                time.sleep(0.05)
        raise OSError("redis-server does not answer")

    def putter(self) -> Put:
        put: Put = self._db.set
        return put

    def close(self) -> None:
        super().close()
        self._server.terminate()
        self._server.wait()
        shutil.rmtree(self._place)

    @property
    def memory(self) -> int:
        """What the server has in memory, in bytes."""
        return _resident(self._server.pid)


def engine_of(name: str) -> Engine:
    """The engine of a column."""
    own: dict[str, Callable[[], Engine]] = {"diskcache": DiskcacheEngine, "redis": RedisEngine}
    return own[name]() if name in own else make_engine(name)


def _resident(process: int) -> int:
    with open(f"/proc/{process}/status", encoding="ascii") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def on_disk(path: str) -> int:
    """Bytes that a store takes on disk, without the holes of its files."""
    return sum(
        512 * os.stat(f"{folder}/{name}").st_blocks
        for folder, _, names in os.walk(path)
        for name in names
    )


def fill(name: str, place: str, settings: Settings) -> None:
    """Make the store that :func:`space_and_memory` reads, in a process of its own."""
    bench = Bench(engine_of(name), place, settings)
    with bench.opened(f"{place}/space") as store:
        bench.fill(store, bench.data.shuffled("space"), settle=True)


def space_and_memory(name: str, place: str, settings: Settings) -> dict[str, float]:
    """MiB of a store on disk, and of a process that has read it all, beyond what it had before."""
    filling = SPAWN.Process(target=fill, args=(name, place, settings))
    filling.start()
    filling.join()
    taken = on_disk(f"{place}/space")
    bench = Bench(engine_of(name), place, settings)
    keys = bench.data.keys(bench.data.shuffled("memory"))
    before = _resident(os.getpid())
    with bench.opened(f"{place}/space") as store:
        get = store.getter(False)
        found = sum([get(key) is not None for key in keys])
        memory = _resident(os.getpid()) - before
        if isinstance(store, RedisStore):
            memory = store.memory
    require_right({"found": found}, {"found": len(keys)})
    return {"disk": taken / _MIB, "memory": memory / _MIB}


def work(pipe: Any, name: str, names: tuple[str, ...], settings: Settings, place: str) -> None:
    """One engine in a process of its own: microseconds an operation, by the workload."""
    engine = engine_of(name)
    bench = Bench(engine, place, settings)
    found: dict[str, float] = {}
    for one in names:
        if one in engine.cannot:
            continue
        if one == "space":
            found |= space_and_memory(name, place, settings)
            continue
        outcome = WORKLOADS[one](bench)
        require_right(outcome.seen, outcome.expected)
        found[one] = 1e6 * outcome.seconds / outcome.ops
    pipe.send((engine.version, found))
    pipe.close()


def in_a_process(name: str, names: tuple[str, ...], settings: Settings) -> tuple[str, Any]:
    """The version of an engine and what :func:`work` found."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        receiving, sending = SPAWN.Pipe(False)
        program = SPAWN.Process(target=work, args=(sending, name, names, settings, place))
        program.start()
        sending.close()
        answer: tuple[str, Any] = receiving.recv()
        program.join()
    return answer


def import_milliseconds(name: str) -> float:
    """How long the import takes in a new interpreter, the median of eleven."""
    command = [sys.executable, "-P", "-c", _IMPORT.format(name)]
    times = [
        float(subprocess.run(command, capture_output=True, check=True).stdout)
        for _ in range(_IMPORTS)
    ]
    return 1000 * statistics.median(times)


def measure(
    settings: Settings, large: int, rounds: int
) -> tuple[dict[str, str], dict[str, dict[str, float]]]:
    """The versions of the engines, and the medians by row and engine."""
    versions: dict[str, str] = {}
    times: dict[tuple[str, str], list[float]] = {}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        for name in NAMES if number % 2 == 0 else NAMES[::-1]:
            versions[name], found = in_a_process(name, tuple(WORK), settings)
            found |= in_a_process(name, ("space",), settings)[1]
            for row, figure in found.items():
                times.setdefault((row, name), []).append(figure)
    medians: dict[str, dict[str, float]] = {}
    for (row, name), figures in times.items():
        medians.setdefault(row, {})[name] = statistics.median(figures)
    medians["import"] = {name: import_milliseconds(name) for name in NAMES}
    say(f"{large:,} entries")
    larger = Settings(num=large)  # the same caches and filters for all that have such
    medians["large"] = {
        name: in_a_process(name, ("readrandom",), larger)[1]["readrandom"] for name in ORDERED
    }
    return versions, medians


def shown(figure: float | None) -> str:
    """
    >>> shown(None), shown(0.16), shown(12.34), shown(140.2)
    ('-', '0.16', '12.3', '140')
    """
    if figure is None:
        return "-"
    return f"{figure:.2f}" if figure < 10 else f"{figure:.1f}" if figure < 100 else f"{figure:,.0f}"


def rows_of(medians: dict[str, dict[str, float]], large: int) -> list[list[str]]:
    """The table; the best figure of a row is in bold."""
    titles = WORK | {
        "large": f"Get from {large:,} entries, equal caches, µs",
        "import": "import, ms",
        "memory": "memory that reads take, MiB",
        "disk": "size on disk, MiB",
    }
    order = [*WORK]
    order.insert(order.index("readrandom") + 1, "large")
    rows = []
    for row in (*order, "import", "memory", "disk"):
        figures = medians[row]
        if row == "open":
            figures = {name: figure / 1000 for name, figure in figures.items()}
        best = min(figures.values())
        cells = [
            f"**{shown(figure)}**" if figure == best else shown(figure)
            for figure in map(figures.get, NAMES)
        ]
        rows.append([titles[row], *cells])
    return rows


@guarded
def main(
    page: Annotated[Path, typer.Argument(metavar="PAGE", help="docs/guides/choosing.md.")],
    entries: Annotated[int, typer.Option(help="Entries of each store.")] = 200_000,
    large: Annotated[int, typer.Option(help="Entries of the larger stores.")] = 2_000_000,
    rounds: Annotated[int, typer.Option(help="Rounds; the larger stores have one.")] = 3,
) -> None:
    """Measure, and write the page's table."""
    settings = Settings(num=entries, own_defaults=True)
    with tempfile.TemporaryDirectory() as place:
        where = machine(place)
    versions, medians = measure(settings, large, rounds)
    mode = "compiled" if lsmkv.COMPILED else "pure Python"
    named = ", ".join(f"{name} {versions[name]}" for name in NAMES[1:])
    about = (
        f"Measured by `make bench-choosing` ({where['processor']}, {where['cores']} cores,"
        f" {where['python']}): lsmkv {lsmkv.__version__}, {mode}; {named}. Stores have"
        f" {entries:,} entries: keys of 16 bytes, values of 100 that compress to half. Each engine"
        f" has its own defaults. All took turns, {rounds} times; these are medians, and the best"
        " of a row is in bold. SQLite has `journal_mode=WAL` and `synchronous=NORMAL`, and `FULL`"
        " where puts are synced. Redis has `appendfsync everysec` and a Unix socket; its memory"
        " is the server's. LMDB's memory is its map: the system's cache, which others get back."
    )
    text = "\n\n".join(
        [
            textwrap.fill(about, _WIDTH, break_on_hyphens=False),
            table(["", *NAMES], rows_of(medians, large), numbers=True),
        ]
    )
    write_measured(page, f"\n{text}\n")
    say(text)


if __name__ == "__main__":
    typer.run(main)
