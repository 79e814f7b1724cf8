"""The server's rates per second: commands, and bytes in and out."""

from __future__ import annotations

import time
from collections import deque

_KEPT = 2
"""Samples.  A rate is taken over one to two periods between samples."""
Totals = tuple[int, int, int]


class Rates:
    """Rates of counters, which a task samples about once a second."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, Totals]] = deque([(time.monotonic(), (0, 0, 0))], _KEPT)

    def sample(self, totals: Totals) -> None:
        """Note what the counters are now."""
        self._samples.append((time.monotonic(), totals))

    def per_second(self, totals: Totals) -> tuple[float, float, float]:
        """The rates since the sample before last, if the counters are ``totals`` now.

        Counters that were reset in between count as 0.
        """
        then, before = self._samples[0]
        seconds = max(time.monotonic() - then, 1e-3)
        one, two, three = (
            max(0, now - was) / seconds for now, was in zip(totals, before, strict=True)
        )
        return one, two, three
