"""memoize_stampede: early computations, by chance and in a thread."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from still_clocks import StillClock
from waiting import wait_until

from lsmkv.cache.cache import Cache
from lsmkv.cache.recipes import memoize_stampede, stampede


def test_a_result_is_computed_early_by_one_thread(
    shared_cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    go = threading.Event()

    @memoize_stampede(shared_cache, expire=1000, name="f")
    def function(number: int) -> int:
        calls.append(number)
        if len(calls) > 1:
            go.wait()
        return len(calls)

    assert function(1) == function(1) == 1
    key = function.__cache_key__(1)
    value, _ = shared_cache[key]
    assert value == 1
    shared_cache.set(key, (1, 100.0), expire=1000)  # the computation has taken long
    monkeypatch.setattr(stampede.random, "random", lambda: 0.9999999)
    assert [function(1) for _ in range(5)] == [1] * 5
    wait_until(lambda: len(calls) == 2)
    go.set()
    wait_until(lambda: shared_cache[key][0] == 2)
    assert calls == [1, 1]
    monkeypatch.setattr(stampede.random, "random", lambda: 0.0)
    assert function(1) == 2


def test_arguments_and_names(shared_cache: Cache) -> None:
    @memoize_stampede(shared_cache, 60, "counted", typed=True, tag="t", ignore={"x"})
    def function(*args: Any, **kwargs: Any) -> int:
        return len(args)

    assert function(1, 2) == 2
    assert function.__cache_key__(1, x=3) == function.__cache_key__(1)
    assert function.__cache_key__(1) != function.__cache_key__(1.0)
    assert function.__wrapped__(1, 2, 3) == 3
    assert shared_cache.evict("t") == 1
    with pytest.raises(TypeError, match="callable"):
        memoize_stampede(shared_cache, function)  # type: ignore[arg-type]


def test_the_clock_of_the_cache_and_no_jump_of_it_counts(
    cache: Cache, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @memoize_stampede(cache, expire=60, name="f")
    def function() -> int:
        clock.now += 1e7  # the clock is set while it computes
        return len(early)

    early: list[object] = []
    assert function() == 0
    assert cache[function.__cache_key__()][1] < 60
    monkeypatch.setattr(stampede.threading, "Thread", lambda **given: early.append(given))
    monkeypatch.setattr(stampede.random, "random", lambda: 0.5)
    assert function() == 0
    assert early == [], "it does not expire soon"
