"""lsmkv.engine.util.delay_debt: what is owed is slept for, by one call in many."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import lsmkv
from lsmkv.engine.util import delay_debt


class Clock:
    """Time that only sleeps and calls of :meth:`work` let pass."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self.late = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds + self.late

    def work(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    if lsmkv.COMPILED:
        pytest.skip("compiled, the module keeps the real pause")
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made.monotonic)
    monkeypatch.setattr(delay_debt, "pause", made.sleep)
    return made


def repeat(times: int, call: Callable[[], object]) -> None:
    for _ in range(times):
        call()


def test_few_calls_sleep_for_what_all_owe(clock: Clock) -> None:
    owing = delay_debt.DelayDebt(0.001)
    repeat(1000, lambda: owing.owe(0.00001))
    assert 0.0095 < sum(clock.slept) < 0.0101
    assert len(clock.slept) <= 100
    assert max(clock.slept) < 0.00012


def test_a_sleep_that_is_too_long_is_made_up_for(clock: Clock) -> None:
    clock.late = 0.00006
    owing = delay_debt.DelayDebt(0.001)
    repeat(1000, lambda: owing.owe(0.00001))
    assert 0.0095 < clock.now - 1000 < 0.0104


def test_work_counts_as_delay(clock: Clock) -> None:
    """Writes that take as long as they are to take are not delayed."""
    owing = delay_debt.DelayDebt(0.001)

    def write() -> None:
        clock.work(0.00001)
        owing.owe(0.00001)

    repeat(1000, write)
    assert clock.slept == []


def test_time_without_calls_is_no_credit_for_many(clock: Clock) -> None:
    owing = delay_debt.DelayDebt(0.001)
    owing.owe(0.0)
    clock.work(60)
    repeat(100, lambda: owing.owe(0.00001))
    assert sum(clock.slept) > 0.0006


def test_no_call_sleeps_for_more_than_a_millisecond(clock: Clock) -> None:
    owing = delay_debt.DelayDebt(0.001)
    assert owing.owe(5.0)
    assert clock.slept == [0.001]
    repeat(100, lambda: owing.owe(0.0))
    assert 0.0095 < sum(clock.slept) < 0.0105  # and no more than a hundredth is ever owed


def test_a_call_that_owes_nothing_does_not_sleep(clock: Clock) -> None:
    owing = delay_debt.DelayDebt(0.001)
    assert not owing.owe(0.0)
    assert not owing.owe(0.00005)
