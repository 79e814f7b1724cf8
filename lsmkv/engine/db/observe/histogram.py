"""Latencies as a histogram of fixed size, from nanoseconds to minutes, with a bounded error.

The observer adds to it, in the threads that make the calls; the publisher and ``lsmkv top`` read
it.  (Source of the idea: HdrHistogram.)

Each power of two is cut into 32 buckets of equal width.  So a bucket is at most 1/32 as wide as its
smallest value, and what :meth:`Histogram.percentile` returns lies at most 3.2% too high, never too
low.  Durations below 64 ns have a bucket each.  Left out: the exact extremes, since a difference of
two histograms could not have them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_PARTS: Final = 32
"""Buckets in each power of two."""
_EXACT: Final = 2 * _PARTS
"""Durations below this have a bucket each."""
_LONGEST: Final = (1 << 40) - 1
"""Nanoseconds, about 18 minutes; what takes longer counts as this."""
BUCKETS: Final = _EXACT + _PARTS * 34
"""Buckets of every histogram."""


class Histogram:  # noqa: PLW1641 - it changes, so it has no hash
    """Number of occurrences of each duration, in buckets.

    Exact when one thread adds; under several, an addition may on rare occasions be lost.  Raises
    nothing but what :meth:`from_buckets` does.  Costs O(buckets), about 1,150; :meth:`add`, O(1).

    >>> latencies = Histogram()
    >>> for microseconds in range(1, 101):
    ...     latencies.add(1000 * microseconds)
    >>> latencies.count, latencies.mean, latencies.percentile(50), latencies.percentile(100)
    (100, 50500.0, 50175, 100351)

    Two of them are added, and an earlier one is subtracted:

    >>> before = Histogram.from_buckets(latencies.buckets(), latencies.total)
    >>> latencies.add(64)
    >>> (latencies - before).buckets(), (latencies + before).count
    ([(64, 1)], 201)
    """

    def __init__(self) -> None:
        self._counts = [0] * BUCKETS
        self.total = 0
        """Sum of all durations, in nanoseconds."""

    def __eq__(self, other: object) -> bool:
        """True if both have counted the same durations, as far as the buckets distinguish them."""
        if not isinstance(other, Histogram):
            return False
        return self.total == other.total and self._counts == other._counts

    def __repr__(self) -> str:
        return f"<lsmkv.owner.Histogram of {self.count} durations, {self.total} ns>"

    def add(self, nanoseconds: int) -> None:
        """Count a duration.  O(1)."""
        self.total += nanoseconds
        if _EXACT <= nanoseconds <= _LONGEST:  # as bucket_of, without a call
            shift = nanoseconds.bit_length() - 6
            self._counts[_PARTS * shift + (nanoseconds >> shift)] += 1
        else:
            self._counts[bucket_of(nanoseconds)] += 1

    @property
    def count(self) -> int:
        """Durations counted."""
        return sum(self._counts)

    @property
    def mean(self) -> float:
        """Nanoseconds, exact; 0.0 if nothing was counted."""
        count = self.count
        return self.total / count if count else 0.0

    def percentile(self, percent: float) -> int:
        """Nanoseconds that this percentage of the durations did not exceed; 0 if there are none.

        At most 3.2% too high, never too low.  O(buckets).
        """
        left = self.count * percent / 100
        highest = 0
        for bucket, count in enumerate(self._counts):
            if count > 0:
                left -= count
                highest = largest_in(bucket)
                if left <= 0:
                    break
        return highest

    def __sub__(self, before: Histogram) -> Histogram:
        """The durations that were added since ``before``."""
        difference = Histogram()
        difference._counts = [
            max(0, later - earlier)
            for later, earlier in zip(self._counts, before._counts, strict=True)
        ]
        difference.total = max(0, self.total - before.total)
        return difference

    def __add__(self, other: Histogram) -> Histogram:
        """The durations of both."""
        both = Histogram()
        both._counts = [a + b for a, b in zip(self._counts, other._counts, strict=True)]
        both.total = self.total + other.total
        return both

    def buckets(self) -> list[tuple[int, int]]:
        """The buckets that are not empty: number and count, for :meth:`from_buckets`."""
        return [(bucket, count) for bucket, count in enumerate(self._counts) if count > 0]

    @classmethod
    def from_buckets(cls, buckets: Iterable[tuple[int, int]], total: int) -> Histogram:
        """Return the histogram with these buckets; ``ValueError`` for an invalid bucket."""
        made = Histogram()
        for bucket, count in buckets:
            if not 0 <= bucket < BUCKETS or count < 0:
                raise ValueError(f"no such bucket: {bucket}, {count} times")
            made._counts[bucket] = count
        made.total = total
        return made


def bucket_of(nanoseconds: int) -> int:
    """The number of a duration's bucket.

    >>> bucket_of(63), bucket_of(64), bucket_of(65), bucket_of(66)
    (63, 64, 64, 65)
    """
    value = max(0, min(nanoseconds, _LONGEST))
    if value < _EXACT:
        return value
    shift = value.bit_length() - 6
    return _PARTS * shift + (value >> shift)


def largest_in(bucket: int) -> int:
    """The longest duration of a bucket, in nanoseconds.

    >>> [largest_in(bucket_of(nanoseconds)) for nanoseconds in (63, 64, 1_000_000)]
    [63, 65, 1015807]
    """
    if bucket < _EXACT:
        return bucket
    shift = bucket // _PARTS - 1
    return ((bucket - _PARTS * shift + 1) << shift) - 1
