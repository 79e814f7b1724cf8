"""Lab 12: measuring.  ``lsmkv course show 12`` is the text, ``lsmkv course check 12`` checks.

Write the six functions.  Each can be checked as soon as it is written, ``experiment`` after
``alternate`` if it calls it.
"""

from __future__ import annotations

import random  # noqa: F401 - for you to use
from collections.abc import Callable, Sequence


def summarize(samples: Sequence[float]) -> tuple[float, float, float]:
    """The median, the lower quartile and the upper quartile.  ValueError if there is no sample."""
    raise NotImplementedError


def alternate(names: Sequence[str], rounds: int) -> list[str]:
    """The order of the runs: each name once in a round, every other round reversed."""
    raise NotImplementedError


def ratio_interval(
    a: Sequence[float], b: Sequence[float], resamples: int, seed: int
) -> tuple[float, float, float]:
    """(low, ratio, high): the median of a[i] / b[i], and its 95 % interval by the bootstrap.

    ValueError if a and b are empty or differ in length.
    """
    raise NotImplementedError


def conclude(low: float, high: float) -> str:
    """Return the verdict on a: "faster", "slower" or "no difference shown"."""
    raise NotImplementedError


def experiment(
    run: Callable[[str], float], names: Sequence[str], rounds: int, warmup: int
) -> dict[str, list[float]]:
    """Run each thing in alternating order; returns the samples by name, without those of the
    warm-up.

    ``run(name)`` runs a thing once and returns what the run cost.
    """
    raise NotImplementedError


def predict(tables: int, rate: float) -> float:
    """The average number of blocks that a Get reads for a key below some tables that lack it.

    ``rate`` is the share of absent keys for which a table's filter says maybe; 1 means no filter.
    """
    raise NotImplementedError
