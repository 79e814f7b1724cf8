"""Simulated machines that mislead an experiment, for lab 12.  The true costs are known."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lsmkv.course.labs.experimenting import FASTER, SLOWER, UNDECIDED, Run, alternate

SEED = 12


class Machine:
    """Runs things and returns what each run costs: its own cost, changed by the machine.

    With ``cold``, the first runs of a thing, as many as stated, cost double.  With ``drift``, each
    run costs this share more than the previous run of anything.  ``noise`` is at most this share,
    up or down, from a seed.
    """

    def __init__(
        self, cost: Run, cold: Mapping[str, int] | None = None, drift: float = 0, noise: float = 0
    ) -> None:
        self.cost = cost
        self.cold = cold or {}
        self.drift = drift
        self.noise = noise
        self.dice = random.Random(SEED)
        self.runs: list[str] = []
        self.costs: dict[str, list[float]] = {}

    def __call__(self, name: str) -> float:
        """Run a thing once."""
        before = self.costs.setdefault(name, [])
        cost = self.cost(name) * (1 + self.drift * len(self.runs))
        if len(before) < self.cold.get(name, 0):
            cost *= 2
        if self.noise:
            cost *= 1 + self.dice.uniform(-self.noise, self.noise)
        self.runs.append(name)
        before.append(cost)
        return cost

    def trap(
        self, got: Mapping[str, Sequence[float]], names: Sequence[str], rounds: int, warmup: int
    ) -> str:
        """Describe the fault of an experiment that ran here; empty if there is none."""
        every = warmup + rounds
        if len(self.runs) == len(names) * every and len(names) > 1:
            if self.runs == [name for name in names for _ in range(every)]:
                return (
                    f"The drift: all runs of {names[0]!r} came before the first of {names[1]!r}, "
                    "so the machine's changes over time look like a difference between them. "
                    "Alternate."
                )
            if self.runs == list(names) * every:
                return (
                    f"The drift: {names[0]!r} was first in every round, so {names[1]!r} was "
                    "always a step later. Reverse the order in every other round: a b b a."
                )
        kept = {name: list(costs) for name, costs in got.items()}
        if warmup and kept == self.costs:
            if len(self.runs) == len(names) * rounds:
                return (
                    f"The cold start: there was no warm-up. Run {warmup} more rounds before the "
                    f"{rounds} that count, and drop their samples."
                )
            return (
                f"The cold start: the samples of the {warmup} warm-up rounds are kept. Drop them."
            )
        if warmup and kept == {name: costs[:rounds] for name, costs in self.costs.items()}:
            return "The cold start: the last rounds were dropped, not the first."
        if self.runs != alternate(names, every):
            return f"The order of the runs must be that of alternate(names, {warmup} + {rounds})."
        dropped = every - max(map(len, kept.values()))
        if dropped != warmup and kept == {n: costs[dropped:] for n, costs in self.costs.items()}:
            return (
                f"You dropped {counted(dropped)} of each, but must drop {warmup}: warm-up is "
                "counted in rounds, and each thing runs once in a round."
            )
        if kept != {name: costs[warmup:] for name, costs in self.costs.items()}:
            return "The samples of a thing are what run(name) returned for it, in the same order."
        return ""


def counted(samples: int) -> str:
    """Format a number of samples."""
    return f"{samples} sample{'' if samples == 1 else 's'}"


class Trap(NamedTuple):
    """A comparison whose true conclusion is known."""

    title: str
    a: float
    b: float
    truth: str
    rounds: int
    warmup: int = 0
    cold: int = 0
    drift: float = 0
    noise: float = 0


TRAPS = (
    Trap("Two equal things", 10, 10, UNDECIDED, rounds=20, noise=0.05),
    Trap(
        "Two equal things, on a machine on which each run costs 0.5 % of the first more than the"
        " one before",
        10, 10, UNDECIDED, rounds=20, drift=0.005, noise=0.001,
    ),
    Trap(
        "Two equal things, on a machine on which each run costs 0.2 % of the first less than the"
        " one before",
        10, 10, UNDECIDED, rounds=20, drift=-0.002, noise=0.0004,
    ),
    Trap(
        "'a' costs 0.8 of 'b', but its first 6 runs cost double, because its cache is cold",
        8, 10, FASTER, rounds=10, warmup=6, cold=6, noise=0.02,
    ),
    Trap(
        "'a' costs 1.04 of 'b'; it starts cold, the machine slows down, and there is noise",
        10.4, 10, SLOWER, rounds=20, warmup=4, cold=4, drift=0.002, noise=0.01,
    ),
)  # fmt: skip
