"""Studies: runs that answer one question each, besides db_bench's workloads."""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lsmkv.tools.bench import loops
from lsmkv.tools.bench.memory import of_process
from lsmkv.tools.bench.settings import MIB
from lsmkv.tools.bench.store import Store
from lsmkv.tools.bench.workbench import Bench
from lsmkv.tools.bench.workloads import BATCH

_GETS = 100_000
_PASSES = 5
_SMALL_CACHE = MIB
_MANY = 10_000_000
_SLOW_MICROSECONDS = 50_000
_GIB = 1024**3


def sustained(bench: Bench) -> dict[str, Any]:
    """Random puts without a pause: the time of all of them, and of the slowest."""
    recording = Bench(bench.engine, bench.directory, replace(bench.settings, histogram=True))
    with recording.fresh() as store:
        outcome = recording.fill(store, recording.data.shuffled("sustained"), settle=True)
    require_right(outcome.seen, outcome.expected)
    plain = outcome.to_dict()
    assert outcome.latencies is not None
    slow = sum(latency > 1000 * _SLOW_MICROSECONDS for latency in outcome.latencies)
    return {
        "ops": outcome.ops,
        "seconds": outcome.seconds,
        "settle_seconds": plain["settle_seconds"],
        "over_50_ms": slow,
        "histogram": plain["histogram"],
    }


def growth(bench: Bench) -> dict[str, Any]:
    """Gets of random keys in stores of a tenth and of all entries, and of a hundredth from 10^7
    on."""
    points = []
    parts = (100, 10, 1) if bench.settings.num >= _MANY else (10, 1)
    for num in sorted({max(1, bench.settings.num // part) for part in parts}):
        smaller = Bench(bench.engine, bench.directory, replace(bench.settings, num=num))
        path = os.path.join(bench.directory, f"growth-{num}")
        with smaller.opened(path) as store:
            _load(smaller, store)
            store.settle()
        with smaller.opened(path) as store:
            keys = smaller.data.keys(smaller.data.drawn("growth", min(_GETS, 10 * num)))
            outcome = smaller.look_up(store, keys, len(keys))
            require_right(outcome.seen, outcome.expected)
            levels = store.levels()
        points.append(
            {
                "entries": num,
                "micros_per_get": 1e6 * outcome.seconds / outcome.ops,
                "levels": levels,
            }
        )
    return {"points": points}


def incompressible(bench: Bench) -> dict[str, Any]:
    """Gets of random keys among values that do not compress, in a block cache of 1 MiB, and the
    memory of the process afterwards.

    Each Get reads a block that no cache of the engine has; the system's cache has them all.
    """
    settings = replace(bench.settings, compressible=False, cache_size=_SMALL_CACHE)
    larger = Bench(bench.engine, bench.directory, settings)
    path = os.path.join(bench.directory, "incompressible")
    with larger.opened(path) as store:
        _load(larger, store)
        store.settle()
    with larger.opened(path) as store:
        count = min(_GETS, 10 * settings.num)
        keys = larger.data.keys(larger.data.drawn("incompressible", count))
        seconds = []
        for _ in range(_PASSES):
            outcome = larger.look_up(store, keys, len(keys))
            require_right(outcome.seen, outcome.expected)
            seconds.append(outcome.seconds)
        return {
            "entries": settings.num,
            "micros_per_get": 1e6 * statistics.median(seconds) / len(keys),
            "resident_bytes": of_process("VmRSS"),
            "levels": store.levels(),
        }


def footprint(bench: Bench) -> dict[str, Any]:
    """Bytes on disk after random puts, as they are and compacted; bytes that tables cost to write.

    The engine reports the bytes written, in whole MiB a level.
    """
    path = os.path.join(bench.directory, "footprint")
    with bench.opened(path) as store:
        outcome = bench.fill(store, bench.data.shuffled("footprint"), settle=True)
        require_right(outcome.seen, outcome.expected)
        written = store.table_bytes_written()
        levels = store.levels()
    settled = bytes_in(path)
    with bench.opened(path) as store:
        store.compact()
    return {
        "entries": bench.settings.num,
        "table_bytes_written": written,
        "levels": levels,
        "disk_bytes": settled,
        "disk_bytes_compacted": bytes_in(path),
    }


def absent(bench: Bench) -> dict[str, Any]:
    """Bytes that Gets of absent keys write, where three overlapping tables cover each key.

    They are on levels 0, 1 and 2 up to about 250,000 entries.  Where level 2 is larger than the
    grandparents that LevelDB lets a table overlap, two of them are on level 0.
    """
    order = bench.data.shuffled("absent")
    path = os.path.join(bench.directory, "absent")
    with bench.opened(path, replace(bench.settings, write_buffer_size=_GIB)) as store:
        for part in (order, order[::3], order[1::3]):
            bench.put_all(store, part)
            store.flush()
    with bench.opened(path) as store:
        levels = store.levels()
        keys = bench.data.absent_keys(bench.data.shuffled("readmissing"))
        get = store.getter(False)
        before = bytes_written_by_process()
        _, hits = loops.run([lambda: loops.lookups(get, keys, None)])
        store.settle()
        after = bytes_written_by_process()
        levels_after = store.levels()
    require_right({"hits": hits}, {"hits": 0})
    written = None if before is None or after is None else after - before
    return {
        "gets": len(keys),
        "bytes_written": written,
        "levels": levels,
        "levels_after": levels_after,
    }


STUDIES: dict[str, Callable[[Bench], dict[str, Any]]] = {
    study.__name__: study for study in (sustained, growth, incompressible, footprint, absent)
}


class WrongAnswerError(Exception):
    """An engine did not return the entries that were written."""


def require_right(seen: dict[str, int], expected: dict[str, int]) -> None:
    """``WrongAnswerError`` unless they are the same."""
    if seen != expected:
        raise WrongAnswerError(f"wrong answers: {seen}, where {expected} was right")


def bytes_in(directory: str) -> int:
    """Bytes of all files in a directory that has no subdirectories."""
    with os.scandir(directory) as entries:
        return sum(entry.stat().st_size for entry in entries)


def bytes_written_by_process() -> int | None:
    """Bytes that this process has written to any file so far; None if the system has no count."""
    try:
        with open("/proc/self/io", encoding="ascii") as lines:
            fields = dict(line.split(":") for line in lines)
    except OSError:
        return None
    return int(fields["wchar"])


def _load(bench: Bench, store: Store) -> None:
    """Write all entries in random order, in batches if the engine has them."""
    order = list(range(bench.data.num))
    random.Random(bench.settings.seed).shuffle(order)
    if "fillbatch" in bench.engine.cannot:
        bench.put_all(store, order)
        return
    write = store.batch_writer()
    for at in range(0, len(order), BATCH):
        piece = order[at : at + BATCH]
        write(list(zip(bench.data.keys(piece), bench.data.values_of(piece), strict=True)))
