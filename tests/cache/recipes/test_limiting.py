"""throttle and barrier."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from cache_users import CacheUser
from threads import run_threads

from lsmkv.cache.cache import Cache
from lsmkv.cache.recipes import BoundedSemaphore, Lock, RLock, barrier, throttle


def test_calls_are_throttled(shared_cache: Cache) -> None:
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    @throttle(shared_cache, 3, 2, name="calls", time_func=lambda: now[0], sleep_func=sleep)
    def call(number: int) -> float:
        return now[0] - 100

    times = [call(number) for number in range(9)]
    assert times[:3] == [0, 0, 0]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times[2:])]
    assert gaps == pytest.approx([2 / 3] * 6)
    now[0] += 1000
    begun = now[0]
    for number in range(3):
        call(number)
    assert now[0] == begun, "what was not used is saved up to the count"
    call(3)
    assert now[0] > begun


def test_a_throttle_whose_entry_was_removed_begins_again(shared_cache: Cache) -> None:
    @throttle(shared_cache, 2, 1, name="calls")
    def call() -> str:
        return "called"

    shared_cache.clear()
    assert call() == "called"
    assert shared_cache["calls"][1] == 1


def test_a_barrier_over_threads_and_processes(
    shared_cache: Cache, user: Callable[[], CacheUser]
) -> None:
    for kind in (Lock, RLock, BoundedSemaphore):
        shared_cache["n"] = 0
        others = [user()]
        for one in others:
            one.ask(f"""
@barrier(cache, {kind.__name__}, name="work")
def work(times):
    for _ in range(times): cache["n"] = cache["n"] + 1
for _ in range(10): work(2)
""")
        factory: Any = kind

        @barrier(shared_cache, factory, name="work")
        def work(times: int) -> None:
            for _ in range(times):
                shared_cache["n"] = shared_cache["n"] + 1

        def ten_times() -> None:
            for _ in range(10):
                work(2)

        assert run_threads(ten_times, ten_times) == []
        assert [one.answer() for one in others] == [None]
        assert shared_cache["n"] == 60


def test_processes_that_begin_later_have_no_calls_of_their_own(
    shared_cache: Cache, user: Callable[[], CacheUser]
) -> None:
    others = [user() for _ in range(4)]
    calls = [
        one("""
def stop(seconds): raise TimeoutError
result = 0
@throttle(cache, 10, 1e9, name="calls", sleep_func=stop)
def call(): return 1
try:
    while True: result += call()
except TimeoutError: pass
""")
        for one in others
    ]
    assert calls == [10, 0, 0, 0]


def test_a_clock_that_was_set_back_ends_no_throttle(shared_cache: Cache) -> None:
    shared_cache["calls"] = (1e9, 0.0)
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    @throttle(shared_cache, 2, 1, name="calls", time_func=lambda: now[0], sleep_func=sleep)
    def call() -> float:
        return now[0]

    assert [call(), call()] == pytest.approx([0.5, 1.0])


@pytest.mark.parametrize("jump", [1e9, -1e9])
def test_a_throttle_waits_at_most_its_period_whatever_the_clock_does(
    shared_cache: Cache, jump: float
) -> None:
    now, waits = [1e9], [0.0]

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    @throttle(shared_cache, 1, 5, "call", time_func=lambda: now[0], sleep_func=sleep)
    def call() -> None:
        now[0] += jump

    for _ in range(5):
        call()
    assert max(waits) <= 5
    assert sum(waits) <= 25
