"""What one call of a cache takes: ``python cache.py [--entries N]``, beside diskcache.

Each engine is filled with the same entries, then does each kind of work in turn, round after round.
A figure is the median of the rounds, in microseconds; the last column is how many times faster
``lsmkv.Cache`` is than diskcache.
"""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import diskcache
import typer

import lsmkv
from lsmkv.tools.console import guarded, say

_SIZES = (100, 4096)
_LIMIT = 4 << 30


def engines(place: str) -> dict[str, Any]:
    """The caches that are compared, each in a directory of its own."""
    return {
        "diskcache": diskcache.Cache(f"{place}/diskcache", size_limit=_LIMIT),
        "lsmkv": lsmkv.Cache(f"{place}/shared", size_limit=_LIMIT),
        "lsmkv, one process": lsmkv.Cache(f"{place}/alone", size_limit=_LIMIT, shared=False),
    }


def microseconds(call: Callable[[Any], object], keys: list[Any]) -> float:
    """What a call takes on average, in microseconds."""
    begun = time.perf_counter()
    for key in keys:
        call(key)
    return 1e6 * (time.perf_counter() - begun) / len(keys)


def measure(size: int, entries: int, rounds: int, calls: int) -> dict[str, dict[str, float]]:
    """The medians, by the kind of work and the engine."""
    rng = random.Random(size)
    values = [rng.randbytes(size) for _ in range(64)]
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        caches = engines(place)
        for cache in caches.values():
            for number in range(entries):
                cache.set(f"key:{number:08d}", values[number % 64])
        for _ in range(rounds):
            there = [f"key:{rng.randrange(entries):08d}" for _ in range(calls)]
            absent = [f"key:{rng.randrange(entries):08d}x" for _ in range(calls)]
            new = [f"new:{rng.randrange(10**9)}" for _ in range(calls)]
            for name, cache in caches.items():
                work: dict[str, tuple[Callable[[Any], object], list[str]]] = {
                    "get": (cache.get, there),
                    "miss": (cache.get, absent),
                    "set, new": (partial(cache.set, value=values[0]), new),
                    "set, again": (partial(cache.set, value=values[1]), there),
                }
                for kind, (call, keys) in work.items():
                    took = microseconds(call, keys)
                    found.setdefault(kind, {}).setdefault(name, []).append(took)
        for cache in caches.values():
            cache.close()
        shutil.rmtree(place, ignore_errors=True)
    return {
        kind: {name: statistics.median(times) for name, times in by_engine.items()}
        for kind, by_engine in found.items()
    }


@guarded
def main(
    entries: Annotated[int, typer.Option(help="Entries of each cache.")] = 20_000,
    rounds: Annotated[int, typer.Option(help="Rounds.")] = 5,
    calls: Annotated[int, typer.Option(help="Calls of each kind in a round.")] = 2_000,
) -> None:
    """Measure, and print a table."""
    say(f"lsmkv {'compiled' if lsmkv.COMPILED else 'pure'}, microseconds for one call")
    for size in _SIZES:
        for kind, by_engine in measure(size, entries, rounds, calls).items():
            base = by_engine["diskcache"]
            cells = [f"{name} {took:.1f} ({base / took:.1f} x)" for name, took in by_engine.items()]
            say(f"{size:>5} bytes, {kind:<11} " + "; ".join(cells))


if __name__ == "__main__":
    typer.run(main)
