"""Bits per key of the filters of each level.

A Get of an absent key asks one table of each level, so its wasted reads are the sum of the levels'
false-positive rates.  A level with few keys can lower its rate for little memory.  With n keys on a
level, the sum is smallest for a given amount of memory if each level's rate is proportional to its
keys: every level then has ln(n' / n) / (ln 2)^2 bits a key more than one of n' keys (source: Dayan,
Athanassoulis & Idreos, "Monkey: Optimal Navigable Key-Value Store", SIGMOD 2017).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from lsmkv.engine.filter.bloom import checked_bits

FEWEST_BITS = 1.0
"""A run that would get fewer bits a key than this gets no filter."""
MOST_BITS = 44.0
"""More bits would be useless with 30 probes, the most that a filter may have."""

_BITS_FOR_E = 1 / math.log(2) ** 2
_ROUNDING = 1e-9
"""Bits that a sum of logarithms may lose: without this margin a run of 1 bit a key might get no
filter."""


class LevelBits(NamedTuple):
    """Bits a key by level: what ``bloom_filter_bits`` says if it is not one number.

    >>> LevelBits.parse("auto:10"), LevelBits.parse([16, 12, 10])
    (LevelBits(average=10.0, levels=()), LevelBits(average=10.0, levels=(16.0, 12.0, 10.0)))
    """

    average: float
    """Bits a key over all levels, spread so that the fewest filters are wrong; if ``levels`` has
    the numbers, the last of these."""
    levels: tuple[float, ...]
    """Bits a key for levels 0, 1, ...; the last counts for those below, and 0 is no filter."""

    @staticmethod
    def parse(bits: str | Sequence[float]) -> LevelBits:
        """``"auto:10"``, or a number for each level; ``TypeError`` or ``ValueError`` for anything
        else."""
        if isinstance(bits, str):
            kind, _, number = bits.partition(":")
            try:
                average = float(number)
            except ValueError:
                average = math.nan
            if kind != "auto" or not average >= 1:
                raise ValueError(
                    f"bloom_filter_bits is a number, 'auto:<bits>' or one number a level, not"
                    f" {bits!r}"
                )
            return LevelBits(min(average, MOST_BITS), ())
        levels = tuple(float(one if one == 0 else checked_bits(one)) for one in bits)
        if not levels or not any(levels):
            raise ValueError(f"bloom_filter_bits has no bits for any level: {bits!r}")
        return LevelBits(levels[-1] or max(levels), levels)

    def bits_for(self, level: int, runs: Sequence[int], own: int) -> float:
        """Bits a key for a table of ``level``; 0 for no filter.

        ``runs`` are the sizes of the runs, in each of which a Get asks one table: each table of
        level 0, and each other level; ``runs[own]`` is where the table will be.
        """
        if self.levels:
            return self.levels[min(level, len(self.levels) - 1)]
        return spread(self.average, runs)[own]


def spread(average: float, runs: Sequence[int]) -> list[float]:
    """Bits a key for runs of these sizes, with the smallest sum of false-positive rates.

    The sizes are in any unit.  Together the runs take ``average`` bits a key.  A run of no keys
    takes the most.  O(runs^2).

    >>> [round(bits, 2) for bits in spread(10, [1, 10, 100])]
    [19.07, 14.27, 9.48]
    """
    result = [0.0] * len(runs)
    chosen = [at for at, size in enumerate(runs) if size > 0]
    while chosen:
        total = sum(runs[at] for at in chosen)
        # Every run's rate is the same share of its keys: bits = level - ln(size) / (ln 2)^2.
        memory = average * sum(runs)
        weighted = sum(runs[at] * math.log(runs[at]) for at in chosen) * _BITS_FOR_E
        level = (memory + weighted) / total
        given = {at: level - math.log(runs[at]) * _BITS_FOR_E for at in chosen}
        kept = [at for at in chosen if given[at] >= FEWEST_BITS - _ROUNDING]
        if len(kept) == len(chosen):
            for at, bits in given.items():
                result[at] = min(max(bits, FEWEST_BITS), MOST_BITS)
            break
        chosen = kept
    for at, size in enumerate(runs):
        if size <= 0:
            result[at] = max([average, *result])
    return result
