"""Hit ratios of caches on traces, beside those of an exact LRU and a FIFO.

A trace is the keys that are asked for, in their order; what is missing is stored.  It is replayed
as fast as it goes.  A trace with a license that others may use is

    https://github.com/1a1a11a/libCacheSim/blob/develop/data/cloudPhysicsIO.txt

(one key a line, 113,872 requests of a disk of a virtual machine; GPL-3.0; its repository says that
it is a small sample of the public traces of CloudPhysics).
"""

from __future__ import annotations

import random
import statistics
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import full_cache

VALUE = 1_000
"""Bytes of each value."""
_SHARE = 100
"""A cache is asked for its number of entries so many times, in the second half of a trace."""
MOST_BELOW = 0.01
"""How much lower than an exact LRU's lsmkv's hit ratio may be."""
EXACT = "lsmkv, recency=0"
_USED = ", least-recently-used"

Trace = Sequence[Hashable]


def zipf(requests: int, keys: int, skew: float = 0.9, seed: int = 1) -> list[int]:
    """Requests whose k-th most popular key has a probability like ``k ** -skew``."""
    rng = random.Random(seed)
    weights = list(accumulate((rank + 1) ** -skew for rank in range(keys)))
    return rng.choices(range(keys), cum_weights=weights, k=requests)


def with_scan(trace: list[int], length: int) -> list[int]:
    """The trace, and in the midst of it so many keys that are asked for once, one after another."""
    half = len(trace) // 2
    begin = max(trace) + 1
    return [*trace[:half], *range(begin, begin + length), *trace[half:]]


def from_file(path: Path) -> list[str]:
    """A trace with one key a line."""
    return path.read_text(encoding="ascii").split()


def simulated(trace: Trace, entries: int, moves: bool) -> float:
    """The hit ratio of an exact LRU of so many entries; of a FIFO if a hit moves nothing."""
    held: OrderedDict[Hashable, None] = OrderedDict()
    hits = 0
    for key in trace:
        if key in held:
            hits += 1
            if moves:
                held.move_to_end(key)
        else:
            held[key] = None
            if len(held) > entries:
                held.popitem(last=False)
    return hits / len(trace)


def replayed(trace: Trace, cache: Any) -> tuple[float, int]:
    """The hit ratio of a cache, and how many entries it had in the second half, on average."""
    value = random.Random(0).randbytes(VALUE)
    every = max(1, len(trace) // 2 // _SHARE)
    hits = 0
    entries = []
    for number, key in enumerate(trace):
        if cache.get(key) is not None:
            hits += 1
        else:
            cache.set(key, value)
        if number * 2 >= len(trace) and number % every == 0:
            entries.append(len(cache))
    return hits / len(trace), round(statistics.mean(entries))


@dataclass(frozen=True)
class Hits:
    """What a cache has reached on a trace, and others with as many entries."""

    entries: int
    own: float
    lru: float
    fifo: float
    by_bytes: float
    """The ratio of an exact LRU whose values fill the limit."""

    def cells(self) -> list[str]:
        """The figures, as a table has them."""
        ratios = (self.own, self.lru, self.fifo, self.by_bytes)
        return [f"{self.entries:,}", *(f"{100 * ratio:.1f}%" for ratio in ratios)]


TITLES = ("entries", "hits", "LRU of as many", "FIFO of as many", "LRU of as many bytes")


def caches() -> dict[str, tuple[str, dict[str, Any]]]:
    """What is measured, as an engine and its settings: each as it opens by default, and those that
    keep an exact order."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in full_cache.peers():
        found[name] = name, {}
        if name == full_cache.OWN:
            found[EXACT] = name, {"recency": 0}
        else:
            found[f"{name}{_USED}"] = name, {"eviction_policy": "least-recently-used"}
    return found


def measure(trace: Trace, limit: int, place: str) -> dict[str, Hits]:
    """What each cache reaches on a trace with a limit that the trace overflows."""
    by_bytes = simulated(trace, limit // VALUE, True)
    found = {}
    for name, (engine, settings) in caches().items():
        cache = full_cache.opened(engine, f"{place}/{name}", limit, **settings)
        own, entries = replayed(trace, cache)
        cache.close()
        lru, fifo = (simulated(trace, entries, moves) for moves in (True, False))
        found[name] = Hits(entries, own, lru, fifo, by_bytes)
    return found


def missed(found: dict[str, Hits]) -> list[str]:
    """The aim that lsmkv misses, and by how much."""
    own = found[full_cache.OWN]
    below = own.lru - own.own
    return [f"LRU's hits - own: {below:.1%}, aim {MOST_BELOW:.0%}"] if below > MOST_BELOW else []
