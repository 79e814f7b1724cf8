"""Numbers from measurements: percentiles, LevelDB's histogram, medians and ratios of rounds."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

_PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9}
_BAR = 20
_STEPS = ((10, 20, 2), (20, 50, 5), (50, 100, 10))


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest number that ``percent`` of them do not exceed; they come in order.

    >>> percentile([1, 2, 3, 4], 50), percentile([1, 2, 3, 4], 99.9)
    (2, 4)
    """
    count = math.ceil(round(len(ordered) * percent / 100, 9))
    return ordered[max(0, count - 1)]


class Spread(NamedTuple):
    """A median, and the extremes around it."""

    median: float
    low: float
    high: float


def spread(numbers: Sequence[float]) -> Spread:
    """The spread of at least one number."""
    return Spread(statistics.median(numbers), min(numbers), max(numbers))


def ratios(peer: Sequence[float], own: Sequence[float]) -> Spread:
    """The peer's time over lsmkv's, round by round: above 1, lsmkv is faster."""
    return spread([theirs / ours for theirs, ours in zip(peer, own, strict=True)])


def bucket_limits() -> list[float]:
    """The limits of LevelDB's histogram: 1 to 10 by 1, to 20 by 2, to 50 by 5, to 100 by 10, ...

    >>> bucket_limits()[:20]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30, 35, 40]
    """
    limits: list[float] = list(range(10))
    for power in range(10):
        for start, stop, step in _STEPS:
            limits += [number * 10**power for number in range(start, stop, step)]
    return limits


_LIMITS = bucket_limits()


@dataclass(frozen=True)
class Histogram:
    """Durations of operations, in microseconds.  Percentiles are exact, not interpolated."""

    count: int
    mean: float
    deviation: float
    low: float
    p50: float
    p90: float
    p99: float
    p999: float
    high: float
    buckets: list[int]
    """The number between each two of LevelDB's limits; zeros at the end are left out."""

    @classmethod
    def of(cls, nanoseconds: Iterable[int]) -> Histogram:
        """The histogram of at least one operation."""
        ordered = [number / 1000 for number in sorted(nanoseconds)]
        buckets = [0] * len(_LIMITS)
        for number in ordered:
            buckets[bisect_right(_LIMITS, number) - 1] += 1
        while buckets[-1] == 0:
            buckets.pop()
        percentiles = {name: percentile(ordered, percent) for name, percent in _PERCENTILES.items()}
        mean = statistics.fmean(ordered)
        return cls(
            count=len(ordered),
            mean=mean,
            deviation=math.sqrt(statistics.fmean([(number - mean) ** 2 for number in ordered])),
            low=ordered[0],
            high=ordered[-1],
            buckets=buckets,
            **percentiles,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; ``Histogram(**plain)`` is the inverse."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The lines of text that LevelDB prints for a histogram, with more percentiles."""
        lines = [
            f"Count: {self.count}  Average: {self.mean:.4f}  StdDev: {self.deviation:.2f}",
            f"Min: {self.low:.4f}  Median: {self.p50:.4f}  Max: {self.high:.4f}",
            f"P90: {self.p90:.4f}  P99: {self.p99:.4f}  P99.9: {self.p999:.4f}",
            "-" * 54,
        ]
        sum_so_far = 0
        for at, number in enumerate(self.buckets):
            if number:
                sum_so_far += number
                share = number / self.count
                right = f"{_LIMITS[at + 1]:7.0f}" if at + 1 < len(_LIMITS) else f"{'inf':>7}"
                line = f"[ {_LIMITS[at]:7.0f}, {right} ) {number:7d} {share:8.3%}"
                marks = "#" * round(_BAR * share)
                lines.append(f"{line} {sum_so_far / self.count:8.3%} {marks}".rstrip())
        return lines
