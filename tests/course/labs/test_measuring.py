"""Lab 12: planted mistakes are named."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence

import pytest
from labs import Mistake, Planted, assert_caught, mistakes

from lsmkv.course.labs.experimenting import (
    alternate,
    conclude,
    draws,
    experiment,
    ratio_interval,
    summarize,
)
from lsmkv.course.labs.measuring import LAB

Triple = tuple[float, float, float]
Run = Callable[[str], float]
Found = dict[str, list[float]]


def sorting_in_place(samples: list[float]) -> Triple:
    samples.sort()
    return summarize(samples)


def with_the_mean(samples: Sequence[float]) -> Triple:
    return statistics.fmean(samples), *summarize(samples)[1:]


def with_the_upper_middle(samples: Sequence[float]) -> Triple:
    return sorted(samples)[len(samples) // 2], *summarize(samples)[1:]


def with_the_middle_in_both_halves(samples: Sequence[float]) -> Triple:
    ordered, half = sorted(samples), (len(samples) + 1) // 2
    quartiles = summarize(ordered[:half])[0], summarize(ordered[-half:])[0]
    return summarize(samples)[0], *quartiles


def unsorted_halves(samples: Sequence[float]) -> Triple:
    ordered = sorted(samples)
    return summarize(samples)[0], ordered[len(samples) // 4], ordered[len(samples) * 3 // 4]


def by_medians(resampled: Sequence[float], ratio: float, ends: tuple[int, int]) -> Triple:
    ordered = sorted(resampled)
    return ordered[ends[0]], ratio, ordered[ends[1]]


def medians_of(a: Sequence[float], b: Sequence[float], resamples: int, seed: int) -> list[float]:
    ratios = [one / other for one, other in zip(a, b, strict=True)]
    return [
        statistics.median([ratios[one] for one in drawn])
        for drawn in draws(len(ratios), resamples, seed)
    ]


def with_the_extremes(a: Sequence[float], b: Sequence[float], resamples: int, seed: int) -> Triple:
    ratio = ratio_interval(a, b, resamples, seed)[1]
    return by_medians(medians_of(a, b, resamples, seed), ratio, (0, -1))


def with_five_percent(a: Sequence[float], b: Sequence[float], resamples: int, seed: int) -> Triple:
    ratio, cut = ratio_interval(a, b, resamples, seed)[1], resamples // 20
    return by_medians(medians_of(a, b, resamples, seed), ratio, (cut, -1 - cut))


def with_another_end(a: Sequence[float], b: Sequence[float], resamples: int, seed: int) -> Triple:
    ratio, cut = ratio_interval(a, b, resamples, seed)[1], resamples // 40
    return by_medians(medians_of(a, b, resamples, seed), ratio, (cut, resamples // 2))


def without_replacement(
    a: Sequence[float], b: Sequence[float], resamples: int, seed: int
) -> Triple:
    ratio = ratio_interval(a, b, resamples, seed)[1]
    return ratio, ratio, ratio


def without_a_seed(a: Sequence[float], b: Sequence[float], resamples: int, seed: int) -> Triple:
    return ratio_interval(a, b, resamples, random.randrange(1 << 60))


def with_new_dice(a: Sequence[float], b: Sequence[float], resamples: int, seed: int) -> Triple:
    medians = [medians_of(a, b, 1, seed + number)[0] for number in range(resamples)]
    cut = resamples // 40
    return by_medians(medians, ratio_interval(a, b, 40, seed)[1], (cut, -1 - cut))


def with_the_ratio_of_the_medians(
    a: Sequence[float], b: Sequence[float], resamples: int, seed: int
) -> Triple:
    low, _, high = ratio_interval(a, b, resamples, seed)
    return low, statistics.median(a) / statistics.median(b), high


def with_the_ratio_of_the_resamples(
    a: Sequence[float], b: Sequence[float], resamples: int, seed: int
) -> Triple:
    low, _, high = ratio_interval(a, b, resamples, seed)
    return low, statistics.median(medians_of(a, b, resamples, seed)), high


def nearly_right(tables: int, rate: float) -> float:
    return tables * rate + 1 + 1e-8


def of_any_lengths(a: Sequence[float], b: Sequence[float], resamples: int, seed: int) -> Triple:
    return ratio_interval(a, b, resamples, seed) if len(a) == len(b) else (1.0, 1.0, 1.0)


def run_in(order: Sequence[str], run: Run, names: Sequence[str], warmup: int) -> Found:
    samples: Found = {name: [] for name in names}
    for name in order:
        samples[name].append(run(name))
    return {name: costs[warmup:] for name, costs in samples.items()}


def one_after_the_other(run: Run, names: Sequence[str], rounds: int, warmup: int) -> Found:
    return run_in([name for name in names for _ in range(warmup + rounds)], run, names, warmup)


def never_turned(run: Run, names: Sequence[str], rounds: int, warmup: int) -> Found:
    return run_in(list(names) * (warmup + rounds), run, names, warmup)


def never_warmed(run: Run, names: Sequence[str], rounds: int, warmup: int) -> Found:
    return experiment(run, names, rounds, 0)


def with_the_warmup_kept(run: Run, names: Sequence[str], rounds: int, warmup: int) -> Found:
    return experiment(run, names, warmup + rounds, 0)


def with_the_end_dropped(run: Run, names: Sequence[str], rounds: int, warmup: int) -> Found:
    found = experiment(run, names, warmup + rounds, 0)
    return {name: costs[:rounds] for name, costs in found.items()}


def with_too_many_dropped(run: Run, names: Sequence[str], rounds: int, warmup: int) -> Found:
    found = experiment(run, names, warmup + rounds, 0)
    return {name: costs[warmup * len(names) :] for name, costs in found.items()}


def with_means(run: Run, names: Sequence[str], rounds: int, warmup: int) -> dict[str, float]:
    found = experiment(run, names, rounds, warmup)
    return {name: statistics.fmean(costs) for name, costs in found.items()}


def with_samples_sorted(run: Run, names: Sequence[str], rounds: int, warmup: int) -> Found:
    found = experiment(run, names, rounds, warmup)
    return {name: sorted(costs) for name, costs in found.items()}


SUMMARY, ORDER, INTERVAL = LAB.checks[0].name, LAB.checks[1].name, LAB.checks[2].name
CONCLUSION, EXPERIMENT, TRAPS = LAB.checks[3].name, LAB.checks[4].name, LAB.checks[5].name
PREDICTION, ENGINE = LAB.checks[6].name, LAB.checks[7].name

MISTAKES: Planted = {
    ("summarize", SUMMARY): [
        ("sorts in place", sorting_in_place, "has changed the list"),
        ("the mean", with_the_mean, "That is the mean"),
        ("the upper middle", with_the_upper_middle, "the two in the middle"),
        ("the middle in both halves", with_the_middle_in_both_halves, "belongs to neither half"),
        ("another quartile", unsorted_halves, "the median of a half"),
        (
            "quartiles around the median",
            lambda samples: tuple(sorted(summarize(samples))),
            "The median comes first",
        ),
        (
            "nothing summarized",
            lambda samples: summarize(samples or [0]),
            "summarize([]) must raise ValueError",
        ),
    ],
    ("alternate", ORDER): [
        ("never turned", lambda names, rounds: list(names) * rounds, "is first in every round"),
        (
            "one after the other",
            lambda names, rounds: sorted(list(names) * rounds),
            "Alternate them",
        ),
        (
            "turned at once",
            lambda names, rounds: alternate(names[::-1], rounds),
            "The first round has the order that was given",
        ),
    ],
    ("ratio_interval", INTERVAL): [
        (
            "b over a",
            lambda a, b, resamples, seed: ratio_interval(b, a, resamples, seed),
            "That is b over a",
        ),
        ("the ratio of medians", with_the_ratio_of_the_medians, "Divide round by round first"),
        (
            "the ratio of the resamples",
            with_the_ratio_of_the_resamples,
            "That is the median of the resamples",
        ),
        ("the extremes", with_the_extremes, "are the extremes"),
        ("5 % at each end", with_five_percent, "Leave out 2.5 %"),
        ("another upper end", with_another_end, "resamples - 1 - cut"),
        ("without replacement", without_replacement, "Draw with replacement"),
        ("no seed", without_a_seed, "random.Random(seed) that each call"),
        ("new dice", with_new_dice, "all resamples draw from the same"),
        ("any lengths", of_any_lengths, "must raise ValueError"),
    ],
    ("conclude", CONCLUSION): [
        (
            "an end of 1",
            lambda low, high: "faster" if high <= 1 else conclude(low, high),
            "Its end is 1. The interval contains 1",
        ),
        (
            "always a verdict",
            lambda low, high: "faster" if low + high < 2 else "slower",
            "So refuse to conclude",
        ),
        (
            "the wrong way round",
            lambda low, high: conclude(1 / high, 1 / low),
            "below 1: a costs less than b",
        ),
    ],
    ("experiment", EXPERIMENT): [
        ("a kept warm-up", with_the_warmup_kept, "Drop them"),
        ("the end dropped", with_the_end_dropped, "not the first"),
        (
            "warm-up counted in runs",
            with_too_many_dropped,
            "You dropped 4 samples of each, but must drop 2: warm-up is counted in rounds",
        ),
        ("means", with_means, "a list for each of"),
        ("samples sorted", with_samples_sorted, "in the same order"),
    ],
    ("experiment", TRAPS): [
        ("all of a first", one_after_the_other, "The drift: all runs of"),
        ("a b a b", never_turned, "The drift: 'a' was first"),
        ("no warm-up", never_warmed, "The cold start: there was no warm-up"),
        (
            "the warm-up kept, on a cold machine",
            with_the_warmup_kept,
            "The cold start: the samples of the 6 warm-up rounds are kept",
        ),
    ],
    ("predict", PREDICTION): [
        ("no read of its own", lambda tables, rate: tables * rate, "is also read: one more"),
        ("its own read rated", lambda tables, rate: (tables + 1) * rate, "never says no"),
        ("nearly right", nearly_right, "must be 2, but your code returned 2.00000001."),
    ],
    ("experiment", ENGINE): [
        (
            "the warm-up kept, on stores",
            with_the_warmup_kept,
            "Gets of absent keys, 12 rounds after 2 of warm-up",
        ),
        ("all of a first, on stores", one_after_the_other, "The drift"),
    ],
    ("conclude", ENGINE): [
        ("always faster", lambda low, high: "faster", "of two equal stores"),
    ],
    ("predict", ENGINE): [
        ("predicted without tables", lambda tables, rate: 1 + rate, "predict("),
        (
            "predicted without its own read",
            lambda tables, rate: tables * rate,
            (
                "must be 1.22423, but your code returned 0.224227. The block that holds the key"
                " is also read"
            ),
        ),
    ],
}


@pytest.mark.parametrize("mistake", mistakes(MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {check for _, check in MISTAKES} == {check.name for check in LAB.checks}
