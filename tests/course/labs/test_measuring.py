"""Lab 12: planted mistakes are named."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence

import pytest
from labs import Mistake, assert_caught

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

MISTAKES = (
    Mistake("sorts in place", "summarize", sorting_in_place, SUMMARY, "has changed the list"),
    Mistake("the mean", "summarize", with_the_mean, SUMMARY, "That is the mean"),
    Mistake(
        "the upper middle", "summarize", with_the_upper_middle, SUMMARY, "the two in the middle"
    ),
    Mistake(
        "the middle in both halves",
        "summarize",
        with_the_middle_in_both_halves,
        SUMMARY,
        "belongs to neither half",
    ),
    Mistake("another quartile", "summarize", unsorted_halves, SUMMARY, "the median of a half"),
    Mistake(
        "quartiles around the median",
        "summarize",
        lambda samples: tuple(sorted(summarize(samples))),
        SUMMARY,
        "The median comes first",
    ),
    Mistake(
        "nothing summarized",
        "summarize",
        lambda samples: summarize(samples or [0]),
        SUMMARY,
        "summarize([]) must raise ValueError",
    ),
    Mistake(
        "never turned",
        "alternate",
        lambda names, rounds: list(names) * rounds,
        ORDER,
        "is first in every round",
    ),
    Mistake(
        "one after the other",
        "alternate",
        lambda names, rounds: sorted(list(names) * rounds),
        ORDER,
        "Let them take turns",
    ),
    Mistake(
        "turned at once",
        "alternate",
        lambda names, rounds: alternate(names[::-1], rounds),
        ORDER,
        "The first round has the order that was given",
    ),
    Mistake(
        "b over a",
        "ratio_interval",
        lambda a, b, resamples, seed: ratio_interval(b, a, resamples, seed),
        INTERVAL,
        "That is b over a",
    ),
    Mistake(
        "the ratio of medians",
        "ratio_interval",
        with_the_ratio_of_the_medians,
        INTERVAL,
        "Divide round by round first",
    ),
    Mistake(
        "the ratio of the resamples",
        "ratio_interval",
        with_the_ratio_of_the_resamples,
        INTERVAL,
        "That is the median of the resamples",
    ),
    Mistake("the extremes", "ratio_interval", with_the_extremes, INTERVAL, "are the extremes"),
    Mistake("5 % at each end", "ratio_interval", with_five_percent, INTERVAL, "Leave out 2.5 %"),
    Mistake(
        "another upper end", "ratio_interval", with_another_end, INTERVAL, "resamples - 1 - cut"
    ),
    Mistake(
        "without replacement",
        "ratio_interval",
        without_replacement,
        INTERVAL,
        "Draw with replacement",
    ),
    Mistake(
        "no seed", "ratio_interval", without_a_seed, INTERVAL, "random.Random(seed) that each call"
    ),
    Mistake(
        "new dice", "ratio_interval", with_new_dice, INTERVAL, "all resamples draw from the same"
    ),
    Mistake("any lengths", "ratio_interval", of_any_lengths, INTERVAL, "must raise ValueError"),
    Mistake(
        "an end of 1",
        "conclude",
        lambda low, high: "faster" if high <= 1 else conclude(low, high),
        CONCLUSION,
        "Its end is 1. The interval contains 1",
    ),
    Mistake(
        "always a verdict",
        "conclude",
        lambda low, high: "faster" if low + high < 2 else "slower",
        CONCLUSION,
        "So refuse to conclude",
    ),
    Mistake(
        "the wrong way round",
        "conclude",
        lambda low, high: conclude(1 / high, 1 / low),
        CONCLUSION,
        "below 1: a costs less than b",
    ),
    Mistake("a kept warm-up", "experiment", with_the_warmup_kept, EXPERIMENT, "Drop them"),
    Mistake("the end dropped", "experiment", with_the_end_dropped, EXPERIMENT, "not the first"),
    Mistake(
        "warm-up counted in runs",
        "experiment",
        with_too_many_dropped,
        EXPERIMENT,
        "You dropped 4 samples of each, but must drop 2: warm-up is counted in rounds",
    ),
    Mistake("means", "experiment", with_means, EXPERIMENT, "a list for each of"),
    Mistake("samples sorted", "experiment", with_samples_sorted, EXPERIMENT, "in the same order"),
    Mistake("all of a first", "experiment", one_after_the_other, TRAPS, "The drift: all runs of"),
    Mistake("a b a b", "experiment", never_turned, TRAPS, "The drift: 'a' was first"),
    Mistake(
        "no warm-up", "experiment", never_warmed, TRAPS, "The cold start: there was no warm-up"
    ),
    Mistake(
        "the warm-up kept, on a cold machine",
        "experiment",
        with_the_warmup_kept,
        TRAPS,
        "The cold start: the samples of the 6 warm-up rounds are kept",
    ),
    Mistake(
        "no read of its own",
        "predict",
        lambda tables, rate: tables * rate,
        PREDICTION,
        "is read, too: one more",
    ),
    Mistake(
        "its own read rated",
        "predict",
        lambda tables, rate: (tables + 1) * rate,
        PREDICTION,
        "never says no",
    ),
    Mistake(
        "the warm-up kept, on stores",
        "experiment",
        with_the_warmup_kept,
        ENGINE,
        "Gets of absent keys, 12 rounds after 2 of warm-up",
    ),
    Mistake("all of a first, on stores", "experiment", one_after_the_other, ENGINE, "The drift"),
    Mistake("always faster", "conclude", lambda low, high: "faster", ENGINE, "of two equal stores"),
    Mistake(
        "predicted without tables", "predict", lambda tables, rate: 1 + rate, ENGINE, "predict("
    ),
    Mistake(
        "predicted without its own read",
        "predict",
        lambda tables, rate: tables * rate,
        ENGINE,
        "must be 1.22423, but your code returned 0.224227. The block that holds the key is read",
    ),
    Mistake(
        "nearly right",
        "predict",
        nearly_right,
        PREDICTION,
        "must be 2, but your code returned 2.00000001.",
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {mistake.check for mistake in MISTAKES} == {check.name for check in LAB.checks}
