"""Caches that are full: each is held at its limit while ten times as much is stored.

Each cache has processes of its own, and a directory.  They take turns, a few hundred of them, and
are stopped while another cache has its turn, with the processes that they have started: what a
cache does in the background happens in its own time, and noise of the machine hits all caches.  In
a turn each process stores values, and reads keys that were stored lately.  After each turn the
directory is measured.  Linux only.
"""

from __future__ import annotations

import importlib.util
import math
import multiprocessing
import os
import random
import signal
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import lsmkv

SPAWN = multiprocessing.get_context("spawn")
OWN, PEER, COMMUNITY = "lsmkv", "diskcache", "diskcache-community"
TURNS = 200
TIMES = 10
"""How often the limit is stored.  The first time fills the cache, and is not in the times."""
_GETS = 100
"""Keys that a process reads in a turn."""
_LAST_GETS = 2_000
"""Keys that are read after the last turn, in ten turns."""
_RECENT = 0.25
"""The share of the limit whose keys are read: those that were stored last."""
_OVERHEAD = 400
"""Bytes that an entry takes besides its value, or fewer."""
_POOL = 16 << 20
"""Random bytes, of which each value is a part."""
_BLOCK = 512
"""What ``st_blocks`` counts."""
_STOPPED = "TZX"
"""States of a process that is stopped, or has ended."""


@dataclass(frozen=True)
class Row:
    """What is stored; ``small`` is a limit at which a run takes minutes."""

    sizes: tuple[int, ...]
    limit: int = 64 << 20


ROWS = {
    "full-100": Row((100,), 8 << 20),
    "full-4k": Row((4_000,)),
    "full-8k": Row((8_000,)),
    "full-20k": Row((20_000,)),
    "full-200k": Row((200_000,)),
    "full-mixed": Row((300, 2_000, 4_000, 20_000)),
}


class Look(NamedTuple):
    """A directory after a turn; all but ``seconds`` are multiples of the limit."""

    seconds: float
    stored: float
    size: float
    blocks: float


@dataclass(frozen=True)
class Figures:
    """What a cache was measured at."""

    milliseconds: float
    """A set, as its caller waits."""
    processor: float
    """Milliseconds a set, of all threads and processes."""
    worst: float
    """Milliseconds of the slowest set."""
    gets_during: float
    """Gets per second of one process while the cache is written."""
    gets_after: float
    """Gets per second of one process when nothing is written any more."""
    found: float
    """The share of Gets that found their key."""
    written: float
    """Bytes that went to the disk, as a multiple of those stored: ``write_bytes`` of
    ``/proc/PID/io`` of all its processes, which counts pages when they become dirty."""
    looks: Sequence[Look]

    @property
    def size(self) -> float:
        """The largest directory, by ``st_size``, as a multiple of the limit."""
        return max(look.size for look in self.looks)

    @property
    def blocks(self) -> float:
        """The largest directory, by ``st_blocks``, as a multiple of the limit."""
        return max(look.blocks for look in self.looks)


COLUMNS = {
    "milliseconds": "ms a set",
    "processor": "processor",
    "worst": "worst",
    "gets_during": "Gets/s",
    "gets_after": "Gets/s after",
    "size": "directory",
    "blocks": "on disk",
    "written": "written",
}
"""The columns of the table."""


def opened(engine: str, path: str, limit: int, **settings: Any) -> Any:
    """A cache as it opens by default, but for its limit and what is given."""
    module = lsmkv if engine == OWN else importlib.import_module(engine.replace("-", "_"))
    return module.Cache(path, size_limit=limit, **settings)


def peers() -> list[str]:
    """lsmkv, and those of the others that are installed."""
    names = [OWN, PEER, COMMUNITY]
    return [name for name in names if name == OWN or _is_installed(name.replace("-", "_"))]


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


# A process of a cache


class _Worker:
    """Stores and reads as it is asked to.  Its keys are its number, and how many it had stored."""

    def __init__(self, engine: str, path: str, limit: int, sizes: tuple[int, ...], number: int):
        self._cache = opened(engine, path, limit)
        self._again = {} if engine == OWN else {"retry": True}
        self._sizes = sizes
        self._number = number
        self._rng = random.Random(number)
        self._pool = self._rng.randbytes(_POOL)
        self.stored = 0

    def set(self, count: int) -> tuple[int, float, float]:
        """Store entries: their bytes, the seconds that it took, and those of the slowest."""
        rng, pool, cache, again = self._rng, self._pool, self._cache, self._again
        total, taken, worst = 0, 0.0, 0.0
        for _ in range(count):
            size = rng.choice(self._sizes)
            at = rng.randrange(_POOL - size)
            key, value = f"{self._number}:{self.stored:010d}", pool[at : at + size]
            begun = time.perf_counter()
            cache.set(key, value, **again)
            seconds = time.perf_counter() - begun
            self.stored += 1
            total += size + len(key)
            taken += seconds
            worst = max(worst, seconds)
        return total, taken, worst

    def get(self, count: int, begin: int, end: int, processes: int) -> tuple[float, int]:
        """Read entries of all processes that were stored between two numbers: the seconds that it
        took, and how many were found."""
        rng, cache, again = self._rng, self._cache, self._again
        keys = [
            f"{rng.randrange(processes)}:{rng.randrange(begin, end):010d}" for _ in range(count)
        ]
        begun = time.perf_counter()
        found = sum(cache.get(key, **again) is not None for key in keys)
        return time.perf_counter() - begun, found

    def close(self) -> None:
        """Close the cache."""
        self._cache.close()


def _serve(pipe: Connection, *arguments: Any) -> None:
    """A process: calls methods of a worker, and sends what they return."""
    os.setpgid(0, 0)  # an interrupt from the terminal goes to the measuring process alone
    worker = _Worker(*arguments)
    pipe.send(None)
    while True:
        name, *values = pipe.recv()
        pipe.send(getattr(worker, name)(*values))
        if name == "close":
            return


# All processes of a cache


class Running:
    """The processes of one cache; between two calls they are stopped."""

    def __init__(self, engine: str, place: str, limit: int, sizes: tuple[int, ...], processes: int):
        self._path = f"{place}/{engine}"
        self._limit = limit
        self._processes: list[tuple[Any, Connection]] = []
        self._stored = 0
        self._each = 0
        self._sets: list[tuple[int, float, float]] = []
        self._processor = 0.0
        self._gets: dict[str, list[float]] = {"during": [], "after": []}
        self._found: list[float] = []
        self._looks: list[Look] = []
        self._seconds = 0.0
        for number in range(processes):
            here, there = SPAWN.Pipe()
            arguments = (there, engine, self._path, limit, sizes, number)
            process = SPAWN.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            there.close()
            self._processes.append((process, here))
            here.recv()  # the first one owns a store of lsmkv
        self.pids = [process.pid for process, _ in self._processes]
        self._stop()

    def _stop(self) -> None:
        """Stop the processes, and then those that they have started."""
        left = set(self.pids)
        while left:
            for pid in left:
                _send(pid, signal.SIGSTOP)
            left = {pid for pid, fields in tree(self.pids).items() if fields[0] not in _STOPPED}

    def _continue(self) -> None:
        for pid in tree(self.pids):
            _send(pid, signal.SIGCONT)

    def _call(self, *message: Any) -> list[Any]:
        """Have all processes do something at the same time; their results."""
        begun = time.perf_counter()
        self._continue()
        for _, pipe in self._processes:
            pipe.send(message)
        results = [pipe.recv() for _, pipe in self._processes]
        self._stop()
        self._seconds += time.perf_counter() - begun
        return results

    def turn(self, sets: int, recent: int, counts: bool) -> None:
        """Store so many entries in each process, and read; the times are noted if ``counts``."""
        before = self._used().processor
        results = self._call("set", sets)
        self._each += sets
        self._stored += sum(size for size, *_ in results)
        if counts:
            self._processor += self._used().processor - before
            self._sets += [(sets, taken, worst) for _, taken, worst in results]
            self._read("during", _GETS, recent)
        size, blocks = space_of(self._path)
        limit = self._limit
        self._looks.append(Look(self._seconds, self._stored / limit, size / limit, blocks / limit))

    def read_at_last(self, recent: int) -> None:
        """Read when nothing is written any more."""
        self._read("after", _LAST_GETS // 10, recent)

    def _read(self, when: str, count: int, recent: int) -> None:
        begin = max(0, self._each - recent)
        for seconds, found in self._call("get", count, begin, self._each, len(self._processes)):
            self._gets[when].append(count / seconds)
            self._found.append(found / count)

    def figures(self) -> Figures:
        """Close the cache, and return what was measured."""
        written = self._used().written
        self._continue()
        for process, pipe in reversed(self._processes):
            pipe.send(("close",))
            pipe.recv()
            process.join()
        sets = sum(count for count, *_ in self._sets)
        return Figures(
            1e3 * sum(taken for _, taken, _ in self._sets) / sets,
            1e3 * self._processor / sets,
            1e3 * max(worst for *_, worst in self._sets),
            statistics.harmonic_mean(self._gets["during"]),
            statistics.harmonic_mean(self._gets["after"]),
            statistics.mean(self._found),
            written / self._stored,
            self._looks,
        )

    def kill(self) -> None:
        """End what still runs."""
        own = [process for process, _ in self._processes if process.is_alive()]
        for pid in tree(process.pid for process in own):
            _send(pid, signal.SIGKILL)
        for process in own:
            process.join()

    def _used(self) -> Used:
        return used_by(tree(self.pids))


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has ended


def tree(roots: Iterable[int]) -> dict[int, list[str]]:
    """Processes and all that they have started, with the fields of ``/proc/PID/stat`` that are
    behind the program's name."""
    children: dict[int, list[int]] = {}
    fields: dict[int, list[str]] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields[int(name)] = file.read().rpartition(") ")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        children.setdefault(int(fields[int(name)][1]), []).append(int(name))
    found: dict[int, list[str]] = {}
    left = list(roots)
    while left:
        pid = left.pop()
        if pid in fields:
            found[pid] = fields[pid]
            left += children.get(pid, [])
    return found


class Used(NamedTuple):
    """Seconds of processors, and bytes that went to disks."""

    processor: float
    written: int


def used_by(processes: dict[int, list[str]]) -> Used:
    """What processes have used, and those that they have waited for."""
    ticks = sum(int(number) for fields in processes.values() for number in fields[11:15])
    written = 0
    for pid in processes:
        try:
            with open(f"/proc/{pid}/io", encoding="ascii") as file:
                counters = dict(line.split(": ") for line in file)
            written += int(counters["write_bytes"])
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has just ended
    return Used(ticks / os.sysconf("SC_CLK_TCK"), written)


def space_of(path: str) -> tuple[int, int]:
    """Bytes of all files below a directory: their sizes, and what they take on the disk."""
    size = blocks = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                found = os.stat(f"{folder}/{name}")
            except FileNotFoundError:
                continue  # removed meanwhile
            size += found.st_size
            blocks += found.st_blocks * _BLOCK
    return size, blocks


def measure(
    row: Row, processes: int, place: str, engines: Iterable[str], turns: int, times: float
) -> dict[str, Figures]:
    """What each cache was measured at while ``times`` the limit was stored in so many turns."""
    size = statistics.mean(row.sizes)
    sets = math.ceil(times * row.limit / turns / size / processes)
    recent = max(1, int(_RECENT * row.limit / (size + _OVERHEAD) / processes))
    running: dict[str, Running] = {}
    try:
        for engine in engines:
            running[engine] = Running(engine, place, row.limit, row.sizes, processes)
        names = list(running)
        for turn in range(turns):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                running[name].turn(sets, recent, turn >= turns / times)
        for _ in range(10):
            for name in names:
                running[name].read_at_last(recent)
        return {name: cache.figures() for name, cache in running.items()}
    finally:
        for cache in running.values():
            cache.kill()


# Its tables


def ratio(found: dict[str, Figures], column: str, engine: str = PEER) -> float:
    """lsmkv's figure as a multiple of another cache's."""
    return float(getattr(found[OWN], column) / getattr(found[engine], column))


def rows_of(title: str, found: dict[str, Figures]) -> Iterator[list[str]]:
    """A row for each cache, and one for the ratio to diskcache."""
    for name, figures in found.items():
        yield [title, name, *(number(getattr(figures, column)) for column in COLUMNS)]
    if PEER in found:
        yield [title, "ratio", *(number(ratio(found, column)) for column in COLUMNS)]


def number(value: float) -> str:
    """A figure in three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def missed(row: Row, found: dict[str, Figures]) -> list[str]:
    """The aims that lsmkv misses, and by how much."""
    own = found[OWN]
    small = max(row.sizes) <= 100
    least = []
    most = [
        ("worst set, ms", own.worst, 100.0),
        ("directory / limit", max(own.size, own.blocks), 1.15),
        ("written / stored", own.written, 3.0),
    ]
    for peer in sorted(found.keys() - {OWN}):
        most.append((f"set / {peer}", ratio(found, "milliseconds", peer), 0.25 if small else 1.0))
        if not small:
            least.append((f"Gets/s / {peer}", ratio(found, "gets_during", peer), 2.0))
            least.append((f"Gets/s after / {peer}", ratio(found, "gets_after", peer), 2.0))
    return [
        *(f"{name}: {number(is_)}, aim at most {aim:g}" for name, is_, aim in most if is_ > aim),
        *(f"{name}: {number(is_)}, aim at least {aim:g}" for name, is_, aim in least if is_ < aim),
    ]
