"""Faults of lab 12: experiments."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import Any

from lsmkv.course.faults.fault import Fault, Function, Subject
from lsmkv.course.labs.experimenting import alternate, conclude, experiment, summarize
from lsmkv.course.labs.experimenting import predict as reads

Calls = list[tuple[str, tuple[Any, ...]]]

Samples = Sequence[float]


def _summarize(name: str, samples: Samples) -> tuple[float, float, float]:
    return summarize(list(samples))


def _order(names: Sequence[str], rounds: int) -> list[str]:
    return alternate(list(names), rounds)


def _ratio(name: str, a: Samples, b: Samples) -> float:
    return round(statistics.median([x / y for x, y in zip(a, b, strict=True)]), 6)


def _conclude(name: str, low: float, high: float) -> str:
    return conclude(low, high)


def _measured(names: Sequence[str], rounds: int, warmup: int) -> dict[str, list[float]]:
    """The samples of runs, of which each costs one more than the one before it."""
    runs = iter(range(1, 10_000))
    return experiment(lambda name: float(next(runs)), list(names), rounds, warmup)


def _predict(name: str, tables: int, rate: float) -> float:
    return reads(tables, rate)


def _quartiles_with_the_middle(name: str, samples: Samples) -> tuple[float, float, float]:
    ordered = sorted(samples)
    half = (len(ordered) + 1) // 2
    median = statistics.median
    return median(ordered), median(ordered[:half]), median(ordered[-half:])


def _with_median(median: Function) -> Function:
    return lambda name, samples: (median(samples), *summarize(list(samples))[1:])


def _measuring_scene(mark: bytes, dice: random.Random) -> Calls:
    name = mark.decode()
    calls: Calls = []
    for size in (3, 4, 7):
        samples = [float(dice.randrange(10, 99)) for _ in range(size)]
        others = [float(dice.randrange(10, 99)) for _ in range(size)]
        calls += [("summarize", (name, samples)), ("ratio", (name, samples, others))]
    names = [name, "b"]
    calls += [("alternate", (names, rounds)) for rounds in (1, 3)]
    calls += [("experiment", (names, rounds, warmup)) for rounds, warmup in ((2, 1), (3, 0))]
    pairs = ((0.8, 1.1), (0.8, 0.9), (1.0, 1.2), (1.1, 1.2), (0.9, 1.0))
    calls += [("conclude", (name, low, high)) for low, high in pairs]
    return calls + [("predict", (name, tables, 0.25)) for tables in (0, 3)]


MEASURING = Subject(
    {
        "summarize": _summarize,
        "alternate": _order,
        "ratio": _ratio,
        "conclude": _conclude,
        "experiment": _measured,
        "predict": _predict,
    },
    {
        "summarize": "name, [samples]",
        "alternate": "[names], rounds",
        "ratio": "name, [samples of a], [samples of b]; it returns the median ratio",
        "conclude": "name, low, high",
        "experiment": "[names], rounds, rounds of warm-up; the first run costs 1, the next one 2",
        "predict": "name, tables, rate",
    },
    (
        Fault(
            "The mean is taken for the median.",
            "summarize",
            _with_median(statistics.fmean),
            lambda m: (m.decode(), [0, 0, 1]),
        ),
        Fault(
            "Of an even number of samples, the upper middle is the median.",
            "summarize",
            _with_median(statistics.median_high),
            lambda m: (m.decode(), [0, 1]),
        ),
        Fault(
            "The middle sample belongs to both halves.",
            "summarize",
            _quartiles_with_the_middle,
            lambda m: (m.decode(), [0, 1, 2]),
        ),
        Fault(
            "The order of the names is never reversed.",
            "alternate",
            lambda names, rounds: list(names) * rounds,
            lambda m: ([m.decode(), ""], 2),
        ),
        Fault(
            "All runs of a name come before those of the next one.",
            "alternate",
            lambda names, rounds: [name for name in names for _ in range(rounds)],
            lambda m: ([m.decode(), ""], 2),
        ),
        Fault(
            "The medians are divided.",
            "ratio",
            lambda name, a, b: round(statistics.median(a) / statistics.median(b), 6),
            lambda m: (m.decode(), [1, 2], [1, 1.5]),
        ),
        Fault(
            "b is divided by a.",
            "ratio",
            lambda name, a, b: _ratio(name, b, a),
            lambda m: (m.decode(), [1], [2]),
        ),
        Fault(
            "An interval that reaches up to 1 says faster.",
            "conclude",
            lambda name, low, high: "faster" if high == 1 else conclude(low, high),
            lambda m: (m.decode(), 0, 1),
        ),
        Fault(
            "The middle of an interval decides.",
            "conclude",
            lambda name, low, high: "faster" if low + high < 2 else "slower",
            lambda m: (m.decode(), 0, 1),
        ),
        Fault(
            "The warm-up is counted.",
            "experiment",
            lambda names, rounds, warmup: _measured(names, rounds + warmup, 0),
            lambda m: ([m.decode()], 0, 1),
        ),
        Fault(
            "The last rounds are dropped in place of the warm-up.",
            "experiment",
            lambda names, rounds, warmup: {
                name: costs[:rounds] for name, costs in _measured(names, rounds + warmup, 0).items()
            },
            lambda m: ([m.decode()], 1, 1),
        ),
        Fault(
            "The block that holds the key is not counted.",
            "predict",
            lambda name, tables, rate: tables * rate,
            lambda m: (m.decode(), 0, 0),
        ),
        Fault(
            "The block that holds the key counts at the rate of errors.",
            "predict",
            lambda name, tables, rate: (tables + 1) * rate,
            lambda m: (m.decode(), 0, 0),
        ),
    ),
    _measuring_scene,
)
