"""lsmkv.engine.db.observe.histogram: percentiles within the error that is stated."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.engine.db.observe.histogram import BUCKETS, Histogram, bucket_of, largest_in

durations = st.one_of(st.integers(0, 5000), st.integers(0, 2**40 - 1))


def of(values: list[int]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


@given(st.lists(durations, min_size=1), st.floats(0, 100))
def test_a_percentile_is_never_too_low_and_at_most_one_part_in_32_too_high(
    values: list[int], percent: float
) -> None:
    histogram = of(values)
    rank = max(1, math.ceil(histogram.count * percent / 100 - 1e-9))
    exact = sorted(values)[rank - 1]
    assert exact <= histogram.percentile(percent) <= exact + exact // 32
    assert histogram.count == len(values)
    assert histogram.mean == pytest.approx(sum(values) / len(values))


@pytest.mark.parametrize("shift", range(40))
def test_buckets_follow_each_other_without_gaps(shift: int) -> None:
    value = 1 << shift
    for near in (value - 1, value, value + 1):
        bucket = bucket_of(near)
        assert 0 <= bucket < BUCKETS
        assert near <= largest_in(bucket)
        assert bucket == 0 or largest_in(bucket - 1) < near


def test_what_lies_outside_counts_at_the_ends() -> None:
    histogram = of([-5, 2**80])
    assert histogram.percentile(50) == 0
    assert histogram.percentile(100) == largest_in(BUCKETS - 1) == 2**40 - 1


def test_an_empty_histogram() -> None:
    histogram = Histogram()
    assert (histogram.count, histogram.mean, histogram.percentile(99)) == (0, 0.0, 0)
    assert histogram.buckets() == []


@given(st.lists(durations), st.lists(durations))
def test_sums_and_differences(first: list[int], then: list[int]) -> None:
    before, both = of(first), of(first + then)
    since = both - before
    assert since.buckets() == of(then).buckets()
    assert since.total == sum(then)
    again = before + since
    assert (again.buckets(), again.total) == (both.buckets(), both.total)


@given(st.lists(durations))
def test_buckets_make_the_same_histogram(values: list[int]) -> None:
    histogram = of(values)
    again = Histogram.from_buckets(histogram.buckets(), histogram.total)
    assert again.buckets() == histogram.buckets()
    assert again.total == histogram.total


@pytest.mark.parametrize("bucket", [(-1, 1), (BUCKETS, 1), (3, -1)])
def test_a_bucket_that_there_is_not_is_refused(bucket: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no such bucket"):
        Histogram.from_buckets([bucket], 0)
