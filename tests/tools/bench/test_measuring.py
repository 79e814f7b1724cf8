"""Percentiles, histograms and ratios of lsmkv bench."""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics

import pytest

from lsmkv.tools.bench.measuring import Histogram, bucket_limits, percentile, ratios, spread


@pytest.mark.parametrize("count", [1, 2, 3, 10, 99, 100, 1000, 1001])
def test_a_percentile_is_the_least_that_so_many_do_not_exceed(count: int) -> None:
    rng = random.Random(count)
    ordered = sorted(rng.randrange(50) for _ in range(count))
    for percent in (0.1, 1, 25, 50, 90, 99, 99.9, 100):
        found = percentile(ordered, percent)
        needed = math.ceil(round(count * percent / 100, 9))
        assert sum(number <= found for number in ordered) >= needed
        assert sum(number < found for number in ordered) < needed
    assert percentile(ordered, 50) == statistics.median_low(ordered)
    assert percentile(ordered, 100) == ordered[-1]


def test_a_histogram_is_that_of_its_numbers() -> None:
    rng = random.Random(7)
    nanoseconds = [int(rng.lognormvariate(8, 2)) for _ in range(20_000)]
    histogram = Histogram.of(nanoseconds)
    micros = sorted(number / 1000 for number in nanoseconds)
    assert histogram.count == sum(histogram.buckets) == 20_000
    assert histogram.mean == pytest.approx(statistics.fmean(micros))
    assert histogram.deviation == pytest.approx(statistics.pstdev(micros))
    assert (histogram.low, histogram.high) == (micros[0], micros[-1])
    assert histogram.p50 == micros[9_999] == statistics.median_low(micros)
    assert (histogram.p90, histogram.p99, histogram.p999) == (
        micros[17_999],
        micros[19_799],
        micros[19_979],
    )
    limits = bucket_limits()
    for at, number in enumerate(histogram.buckets):
        assert number == sum(limits[at] <= one < limits[at + 1] for one in micros)
    assert Histogram(**json.loads(json.dumps(histogram.to_dict()))) == histogram


def test_limits_rise_and_go_beyond_an_hour() -> None:
    limits = bucket_limits()
    assert all(low < high for low, high in itertools.pairwise(limits))
    assert limits[-1] > 3600e6
    far = Histogram.of([10**20])
    assert (far.count, far.buckets[-1], len(far.buckets)) == (1, 1, len(limits))
    assert "inf" in far.lines()[-1]


def test_a_histogram_prints_as_leveldbs() -> None:
    lines = Histogram.of([1500] * 3 + [11_000]).lines()
    assert lines[0] == "Count: 4  Average: 3.8750  StdDev: 4.11"
    assert lines[1] == "Min: 1.5000  Median: 1.5000  Max: 11.0000"
    assert lines[2] == "P90: 11.0000  P99: 11.0000  P99.9: 11.0000"
    assert lines[4:] == [
        f"[       1,       2 )       3  75.000%  75.000% {'#' * 15}",
        f"[      10,      12 )       1  25.000% 100.000% {'#' * 5}",
    ]


def test_medians_and_ratios_go_round_by_round() -> None:
    assert spread([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)
    # Of medians it would be 4 / 2.
    assert ratios([9.0, 4.0, 2.0], [1.0, 2.0, 4.0]) == (2.0, 0.5, 9.0)
    with pytest.raises(ValueError, match="zip"):
        ratios([1.0], [1.0, 2.0])
