"""What happens per second."""

from __future__ import annotations

import time

import pytest

from lsmkv.server.rates import Rates


def test_rates_are_taken_over_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    rates = Rates()
    now[0] += 2
    assert rates.per_second((10, 200, 0)) == (5.0, 100.0, 0.0)
    rates.sample((10, 200, 0))
    now[0] += 1
    rates.sample((40, 200, 0))
    now[0] += 0.5
    assert rates.per_second((40, 200, 3)) == (20.0, 0.0, 2.0)
    assert rates.per_second((1, 0, 0)) == (0.0, 0.0, 0.0)  # CONFIG RESETSTAT
