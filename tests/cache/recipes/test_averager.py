"""Averager: sums of many processes."""

from __future__ import annotations

from collections.abc import Callable

from cache_users import CacheUser

from lsmkv.cache.cache import Cache
from lsmkv.cache.recipes import Averager


def test_an_average_over_processes(shared_cache: Cache, user: Callable[[], CacheUser]) -> None:
    others = [user(), user()]
    for one in others:
        one.ask("for n in range(20): Averager(cache, 'a').add(n)")
    mine = Averager(shared_cache, "a", expire=1000, tag="averages")
    for number in range(20):
        mine.add(number)
    assert [one.answer() for one in others] == [None, None]
    assert mine.get() == 9.5
    assert shared_cache["a"] == (570.0, 60)
    assert mine.pop() == 9.5
    assert mine.get() is None
    assert mine.pop() is None
