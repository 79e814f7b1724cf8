"""Experiments: quartiles, orders, intervals and conclusions, with numbers worked out by hand."""

from __future__ import annotations

import random

import pytest

from lsmkv.course.labs.experimenting import (
    FASTER,
    SLOWER,
    UNDECIDED,
    alternate,
    conclude,
    draws,
    experiment,
    predict,
    ratio_interval,
    summarize,
)


def test_quartiles_are_the_medians_of_the_halves() -> None:
    assert summarize([7]) == (7, 7, 7)
    assert summarize([4, 1]) == (2.5, 1, 4)
    assert summarize([9, 1, 5]) == (5, 1, 9)
    assert summarize([3, 1, 4, 2]) == (2.5, 1.5, 3.5)
    assert summarize([900, 1, 4, 2, 5]) == (4, 1.5, 452.5)
    with pytest.raises(ValueError, match="nothing was measured"):
        summarize([])


def test_every_other_round_is_reversed() -> None:
    assert alternate("ab", 3) == ["a", "b", "b", "a", "a", "b"]
    assert alternate("abc", 2) == ["a", "b", "c", "c", "b", "a"]
    assert alternate("ab", 0) == []


def test_resamples_draw_from_one_seeded_source() -> None:
    dice = random.Random(7)
    expected = [[dice.randrange(3) for _ in range(3)] for _ in range(2)]
    assert list(draws(3, 2, 7)) == expected


def test_an_interval_holds_the_ratio_and_leaves_out_a_fortieth_at_each_end() -> None:
    assert ratio_interval([8, 8], [10, 10], 40, 1) == (0.8, 0.8, 0.8)
    a, b = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0] * 5
    medians = sorted(summarize([a[number] for number in drawn])[0] for drawn in draws(5, 200, 3))
    low, ratio, high = ratio_interval(a, b, 200, 3)
    assert (low, ratio, high) == (medians[5], 3, medians[194])
    assert sum(median < low for median in medians) <= 5
    assert low < ratio < high
    with pytest.raises(ValueError, match="same number of rounds"):
        ratio_interval([1], [1, 2], 40, 1)


def test_one_in_twenty_comparisons_of_equal_things_shows_a_difference() -> None:
    dice = random.Random(20)
    wrong = 0
    for seed in range(200):
        a, b = ([dice.gauss(10, 1) for _ in range(12)] for _ in range(2))
        low, _, high = ratio_interval(a, b, 120, seed)
        wrong += conclude(low, high) != UNDECIDED
    assert 0.01 < wrong / 200 < 0.12


def test_an_interval_that_holds_1_shows_nothing() -> None:
    assert conclude(0.8, 0.9) == FASTER
    assert conclude(1.1, 1.2) == SLOWER
    assert {conclude(0.8, 1.0), conclude(1.0, 1.2), conclude(0.8, 1.2)} == {UNDECIDED}


def test_an_experiment_drops_its_first_rounds() -> None:
    runs: list[str] = []

    def run(name: str) -> float:
        runs.append(name)
        return len(runs)

    assert experiment(run, ("a", "b"), 2, 1) == {"a": [4, 5], "b": [3, 6]}
    assert "".join(runs) == "abbaab"


def test_a_prediction() -> None:
    assert (predict(0, 0.5), predict(4, 0.25), predict(4, 1)) == (1, 2, 5)
