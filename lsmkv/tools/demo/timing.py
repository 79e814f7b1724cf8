"""Times Gets in several stores in turn, so that a disturbance affects all of them.

A machine is at times faster and at times slower: two runs that time one store after the other may
differ by a factor of two.  Here the stores take turns, batch by batch, for several rounds.  What
disturbs a batch only ever makes it slower, so the fastest of its rounds counts.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lsmkv import DB

ROUNDS = 7
BATCH = 100  # Gets that are timed together
MOST_TIMED = 1000  # keys of each kind


@dataclass(frozen=True)
class Times:
    """Durations of Gets of one kind in one store, in microseconds of wall-clock time a Get."""

    per_get: float
    """The median of the batches, each at its fastest."""
    fastest: float
    """The fastest round: the median of its batches."""
    slowest: float
    """The slowest round."""

    @property
    def spread(self) -> float:
        """The duration of the slowest round divided by the fastest; 1 if nothing was timed."""
        return self.slowest / self.fastest if self.fastest else 1.0


NOT_TIMED = Times(0.0, 0.0, 0.0)


def time_gets(
    stores: Sequence[DB],
    kinds: Sequence[Sequence[bytes]],
    advance: Callable[[int], None] = lambda _: None,
) -> list[list[Times]]:
    """The times of Gets in each store, for each kind of keys.  ``advance`` is called each round.

    Cost: ``ROUNDS`` Gets of at most ``MOST_TIMED`` keys of each kind in each store.  No garbage is
    collected during that time.
    """
    batches = [
        [keys[at : at + BATCH] for at in range(0, min(len(keys), MOST_TIMED), BATCH)]
        for keys in kinds
    ]
    # took[store][kind][round] has a time for each batch
    took = [[[[0.0] * len(of) for _ in range(ROUNDS)] for of in batches] for _ in stores]
    with _no_collection():
        for turn in range(ROUNDS):
            for kind, of in enumerate(batches):
                for number, batch in enumerate(of):
                    for place in range(len(stores)):
                        store = (place + turn) % len(stores)  # each is the first at times
                        took[store][kind][turn][number] = _time(stores[store], batch)
            advance(1)
    return [[_times(rounds) for rounds in of_store] for of_store in took]


def _time(store: DB, keys: Sequence[bytes]) -> float:
    """Microseconds a Get."""
    get = store.get
    started = time.perf_counter()
    for key in keys:
        get(key)
    return (time.perf_counter() - started) / len(keys) * 1e6


def _times(rounds: list[list[float]]) -> Times:
    medians = [statistics.median(batches) for batches in rounds]
    fastest = [min(batch) for batch in zip(*rounds, strict=True)]
    return Times(statistics.median(fastest), min(medians), max(medians))


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
