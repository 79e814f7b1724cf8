"""A clock that stands still until a test sets it."""

from __future__ import annotations


class StillClock:
    """Seconds since 1970, as the test says."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now
