"""Functions whose results are kept."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache.memoizing import key_of


def test_a_function_is_called_once(cache: lsmkv.Cache) -> None:
    calls: list[Any] = []

    @cache.memoize(tag="t")
    def add(a: int, b: int = 2) -> int:
        """Add."""
        calls.append((a, b))
        return a + b

    assert [add(1), add(1), add(1, b=3), add(1, b=3)] == [3, 3, 4, 4]
    assert calls == [(1, 2), (1, 3)]
    assert add.__cache_key__(1) == (f"{__name__}.{add.__qualname__}", 1, None)  # type: ignore[attr-defined]
    assert add.__wrapped__(1, 5) == 6
    assert add.__doc__ == "Add."
    assert cache.evict("t") == 2


def test_none_is_a_result(cache: lsmkv.Cache) -> None:
    calls: list[int] = []
    nothing = cache.memoize()(calls.append)
    nothing(1), nothing(1)
    assert calls == [1]


def test_a_coroutine_function(cache: lsmkv.Cache) -> None:
    calls: list[int] = []

    @cache.memoize(name="twice")
    async def twice(number: int) -> int:
        calls.append(number)
        return number * 2

    async def main() -> list[int]:
        return [await twice(2), await twice(2)]

    assert asyncio.run(main()) == [4, 4]
    assert calls == [2]
    assert cache["twice", 2, None] == 4


def test_results_expire_or_are_not_kept(cache: lsmkv.Cache, clock: StillClock) -> None:
    calls: list[int] = []

    def note(number: int) -> int:
        calls.append(number)
        return number

    short, never = cache.memoize("short", expire=10)(note), cache.memoize("never", expire=0)(note)
    short(1), short(1), never(2), never(2)
    clock.now += 10
    short(1)
    assert calls == [1, 2, 2, 1]


def test_keys() -> None:
    assert key_of("f", (1, 2), {}, False, ()) == ("f", 1, 2, None)
    assert key_of("f", (1,), {"b": 2, "a": 3}, False, ()) == ("f", 1, None, "a", 3, "b", 2)
    assert key_of("f", (1, 2), {"a": 3, "b": 4}, False, {0, "b"}) == ("f", 2, None, "a", 3)
    assert key_of("f", (1,), {"a": 2.5}, True, ()) == (
        *("f", 1, None, "a", 2.5),
        *("builtins.int", "builtins.float"),
    )


def test_parentheses_are_needed(cache: lsmkv.Cache) -> None:
    with pytest.raises(TypeError, match="parentheses"):
        cache.memoize(len)  # type: ignore[arg-type]
