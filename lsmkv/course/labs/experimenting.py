"""Experiments: their order, their samples, and the conclusion from an interval of ratios.

Lab 12 compares the student's functions with these.  They are not used elsewhere: the numbers of
``lsmkv bench`` cannot be repeated exactly.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Sequence

Run = Callable[[str], float]
"""Runs a thing once, and returns what the run cost."""

FASTER, SLOWER, UNDECIDED = "faster", "slower", "no difference shown"


def summarize(samples: Sequence[float]) -> tuple[float, float, float]:
    """The median, the lower quartile and the upper one: the medians of the two halves."""
    if not samples:
        raise ValueError("nothing was measured")
    ordered = sorted(samples)
    half = len(ordered) // 2
    lower, upper = ordered[:half], ordered[-half:]
    if not half:
        lower = upper = ordered
    return statistics.median(ordered), statistics.median(lower), statistics.median(upper)


def alternate(names: Sequence[str], rounds: int) -> list[str]:
    """The order of the runs: every other round is reversed."""
    order: list[str] = []
    for number in range(rounds):
        order += names if number % 2 == 0 else reversed(names)
    return order


def ratio_interval(
    a: Sequence[float], b: Sequence[float], resamples: int, seed: int
) -> tuple[float, float, float]:
    """The median ratio of a to b, round by round, between the ends of its interval."""
    if not a or len(a) != len(b):
        raise ValueError("a and b must have the same number of rounds, at least one")
    ratios = [one / other for one, other in zip(a, b, strict=True)]
    medians = sorted(
        statistics.median([ratios[number] for number in drawn])
        for drawn in draws(len(ratios), resamples, seed)
    )
    cut = resamples // 40
    return medians[cut], statistics.median(ratios), medians[resamples - 1 - cut]


def draws(rounds: int, resamples: int, seed: int) -> Iterator[list[int]]:
    """The rounds that each resample consists of."""
    dice = random.Random(seed)
    for _ in range(resamples):
        yield [dice.randrange(rounds) for _ in range(rounds)]


def conclude(low: float, high: float) -> str:
    """The conclusion about a from an interval of a's cost divided by b's."""
    if high < 1:
        return FASTER
    return SLOWER if low > 1 else UNDECIDED


def experiment(run: Run, names: Sequence[str], rounds: int, warmup: int) -> dict[str, list[float]]:
    """The samples of each name, without those of the warm-up rounds."""
    samples: dict[str, list[float]] = {name: [] for name in names}
    for name in alternate(names, warmup + rounds):
        samples[name].append(run(name))
    return {name: costs[warmup:] for name, costs in samples.items()}


def predict(tables: int, rate: float) -> float:
    """Blocks that a Get reads for a key below some tables that lack it."""
    return tables * rate + 1
