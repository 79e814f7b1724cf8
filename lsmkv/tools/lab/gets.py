"""The keys that the lab looks up: the user's list, or a sample of the store's own keys.

All choices depend on a seed, so that the same store and seed give the same keys.  Memory: the
keys chosen, however many there are to choose from.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import lsmkv
from lsmkv.tools.sample_keys import Misspeller
from lsmkv.tools.text import count

T = TypeVar("T")

_REPORT_EVERY = 10_000


class Gets(NamedTuple):
    """The keys to look up, and a description of their source."""

    keys: list[bytes]
    absent: list[bytes]
    """Those of them that are known to be absent: the near misses."""
    source: str


def given_gets(keys: Iterable[bytes], most: int, seed: int, source: str) -> Gets:
    """The keys of a list or of a trace, in their order, repeats included.

    If there are more than ``most``, that many of them, chosen evenly.  ``ValueError`` if there is
    none.
    """
    chosen = sample(keys, most, random.Random(seed))
    if not chosen:
        raise ValueError(f"{source}: no keys in it")
    return Gets(chosen, [], f"{count(len(chosen), 'key')} of {source}")


def sampled_gets(
    db: lsmkv.DB, most: int, seed: int, advance: Callable[[int], None] = lambda _: None
) -> Gets:
    """Keys of the store, and as many near misses: keys altered by a letter, which are absent.

    At most ``most`` in all, in random order.  ``advance`` is called with the number of keys gone
    through since the last call.  ``ValueError`` for an empty store.  Cost: a scan of all keys, and
    some Gets for each near miss.
    """
    rng = random.Random(seed)
    with db.iterator(include_value=False, fill_cache=False) as keys:
        present = sample(_reported(keys, advance), max(1, most // 2), rng)
    if not present:
        raise ValueError("the store is empty: there is no key to look up")
    absent = Misspeller(present, lambda key: key in db, rng).absent_keys(len(present))
    chosen = present + absent
    rng.shuffle(chosen)
    source = f"{count(len(present), 'key')} of the store, and as many near misses"
    return Gets(chosen, absent, source)


def sample(items: Iterable[T], most: int, rng: random.Random) -> list[T]:
    """At most ``most`` of the items, in their order, each with the same chance.

    One pass, a few random numbers for each item that is taken (K.-H. Li, *Reservoir-sampling
    algorithms of time complexity O(n(1 + log(N/n)))*, 1994).

    >>> sample(range(3), 5, random.Random(1)), len(sample(range(1000), 5, random.Random(1)))
    ([0, 1, 2], 5)
    """
    numbered = enumerate(items)
    held = list(itertools.islice(numbered, most))
    if len(held) < most:
        return [item for _, item in held]
    weight = 1.0
    while True:
        weight *= math.exp(math.log(1.0 - rng.random()) / most)
        # The distance to the next item that is taken.
        gap = math.log(1.0 - rng.random()) / math.log1p(-weight) if weight < 1.0 else 0.0
        skipped = int(min(gap, 1 << 60))
        found = next(itertools.islice(numbered, skipped, None), None)
        if found is None:
            return [item for _, item in sorted(held, key=lambda pair: pair[0])]
        held[rng.randrange(most)] = found


def _reported(keys: Iterable[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    for number, key in enumerate(keys, 1):
        if number % _REPORT_EVERY == 0:
            advance(_REPORT_EVERY)
        yield key
