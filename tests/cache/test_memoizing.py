"""Functions whose results are kept."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from still_clocks import StillClock

import lsmkv
from lsmkv.cache.codecs import DefaultCodec
from lsmkv.cache.keys import encode_key
from lsmkv.cache.memoizing import key_maker
from lsmkv.cache.recipes import Lock, barrier, memoize_stampede, throttle


def test_a_function_is_called_once(cache: lsmkv.Cache) -> None:
    calls: list[Any] = []

    @cache.memoize("add", tag="t")
    def add(a: int, b: int = 2) -> int:
        """Add."""
        calls.append((a, b))
        return a + b

    assert [add(1), add(1), add(1, b=3), add(1, b=3)] == [3, 3, 4, 4]
    assert calls == [(1, 2), (1, 3)]
    assert add.__cache_key__(1) == ("add", (1,), ())
    assert cache.memoize()(either).__cache_key__(1)[0] == f"{__name__}.either"
    assert add.__wrapped__(1, 5) == 6
    assert add.__doc__ == "Add."
    assert cache.evict("t") == 2


def test_none_is_a_result(cache: lsmkv.Cache) -> None:
    calls: list[int] = []
    nothing = cache.memoize("append")(calls.append)
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
    assert cache["twice", (2,), ()] == 4


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


def key_of(function: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """The key of a call, without the name."""
    return key_maker(function, "f", False, ())(*args, **kwargs)[1:]


def either(a: Any, b: Any = 2, *more: Any, c: Any = 3, **others: Any) -> None:
    """Each kind of parameter but the one that has no name."""


def only(a: Any = 1, b: Any = 2, /, c: Any = 3, **others: Any) -> None:
    """Parameters without a name that could be given."""


def test_calls_that_pass_the_same_arguments_have_one_key() -> None:
    assert key_of(either, 1) == key_of(either, a=1) == ((1,), ())
    assert key_of(either, 1, None) == key_of(either, 1, b=None) == key_of(either, b=None, a=1)
    assert key_of(either, 1, c=4, b=5, z=6) == ((1, 5), (("c", 4), ("z", 6)))
    assert key_of(only, 1, b=4, a=5, c=6) == ((1,), (("a", 5), ("b", 4), ("c", 6)))
    assert key_of(only, 1, 2, c=6) == key_of(only, 1, 2, 6)
    assert key_of(max, 1, 2, key=len) == ((1, 2), (("key", len),))


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1, None, "b"), {}),
    ((1,), {"z": None}),
    ((1, None, "z", None), {}),
    ((1, "z", None), {}),
    ((1,), {}),
    ((1, None), {}),
    ((1, (None,)), {}),
    (((1, None),), {}),
    ((1, ()), {}),
    ((1,), {"y": "z"}),
    ((1, "y", "z"), {}),
    ((1,), {"z": "builtins.int"}),
    ((1, 2.0), {"z": 3}),
    ((1, 2), {"z": 3.5}),
    ((1, "builtins.float"), {"z": 3.0}),
]


@pytest.mark.parametrize("typed", [False, True])
def test_calls_with_different_arguments_have_different_keys(typed: bool) -> None:
    maker = key_maker(either, "f", typed, ())
    keys = [encode_key(maker(*args, **kwargs), DefaultCodec()) for args, kwargs in CALLS]
    assert len(set(keys)) == len(CALLS)


@given(st.lists(st.sampled_from([None, 1, "z", (), (1,)]), min_size=1), st.data())
def test_a_key_has_the_arguments_and_nothing_else(args: list[Any], data: st.DataObject) -> None:
    kwargs = data.draw(st.dictionaries(st.sampled_from("yz"), st.sampled_from([None, 1, "z", ()])))
    name, given_by_position, named, types = key_maker(either, "f", True, ())(*args, **kwargs)
    assert (name, given_by_position, dict(named)) == ("f", tuple(args), kwargs)
    assert len(types) == len(args) + len(kwargs)


def test_ignored_arguments_make_no_difference_however_they_are_given() -> None:
    for ignore in ({1}, {"b"}, {1, "b"}):
        key = key_maker(either, "f", False, ignore)
        assert key(1, 5) == key(1, b=6) == key(b=7, a=1) == key(1)
        assert key(1, 5, 6) == ("f", (1, 6), ())
    key = key_maker(either, "f", False, {"c", "z", 2})
    assert key(1, c=2, z=3) == key(1)
    assert key(1, 2, 3, 4) == ("f", (1, 2, 4), ())
    assert key_maker(only, "f", False, {2})(c=5) == ("f", (), ())
    assert key_maker(only, "f", False, {"a"})(1, a=5) == ("f", (1,), ())


def test_a_wrapper_that_changes_the_arguments_has_its_own_names() -> None:
    @functools.wraps(either)
    def swapped(b: Any, a: Any) -> None:
        either(a, b)

    assert key_of(swapped, 1, 2) == key_of(swapped, b=1, a=2)


def local() -> Callable[[], int]:
    """A function that is not the only one of its name."""

    def inner() -> int:
        return 1

    return inner


class Counted:
    """What has methods that are memoized."""

    calls: ClassVar[list[Any]] = []

    def method(self, number: int) -> int:
        """A method."""
        self.calls.append(number)
        return number * 2

    @classmethod
    def of_class(cls) -> None:
        """A method of the class, and of its subclasses."""

    @staticmethod
    def static(number: int) -> int:
        """A function."""
        return number


@pytest.mark.parametrize(
    "function",
    [
        *(lambda number: number, local(), Counted().method, Counted.of_class, [].append, str.upper),
        *(functools.partial(either, 1), functools.lru_cache(local())),
    ],
)
@pytest.mark.parametrize("decorator", ["memoize", "stampede", "throttle", "barrier"])
def test_a_function_whose_name_others_may_have_needs_one(
    function: Any, decorator: str, cache: lsmkv.Cache
) -> None:
    made = {
        "memoize": cache.memoize,
        "stampede": lambda **name: memoize_stampede(cache, 60, **name),
        "throttle": lambda **name: throttle(cache, 1, 1, **name),
        "barrier": lambda **name: barrier(cache, Lock, **name),
    }[decorator]
    with pytest.raises(ValueError, match=r"may be the name of several functions.*: pass name="):
        made()(function)
    assert callable(made(name="a name")(function))


def test_what_cannot_be_called_is_refused(cache: lsmkv.Cache) -> None:
    with pytest.raises(TypeError, match="a classmethod is not callable: decorate the function"):
        cache.memoize()(classmethod(either))  # type: ignore[arg-type]


def test_results_of_other_layouts_are_no_hits(cache: lsmkv.Cache) -> None:
    """Keys of releases before 0.3 were flat: two calls had one, and so had memoize_stampede."""
    cache["f", 1, None, "b", None] = cache["f", 1, None] = "old"
    function = cache.memoize("f")(either)
    assert (function(1, None, "b"), function(1, b=None), function(1)) == (None, None, None)
    early = memoize_stampede(cache, 60, "f")(either)
    assert (early(1), function(1), early(1)) == (None, None, None)


def test_a_method(cache: lsmkv.Cache) -> None:
    class Memoizing(Counted):
        calls: ClassVar[list[Any]] = []
        twice = cache.memoize("twice", ignore={"self"})(Counted.method)
        half = staticmethod(cache.memoize("half")(Counted.static))

    counted = Memoizing()
    assert [counted.twice(2), counted.twice(number=2), Memoizing().twice(2)] == [4, 4, 4]
    assert Memoizing.calls == [2]
    assert cache[Memoizing.twice.__cache_key__(counted, 2)] == 4
    assert (counted.half(8), Memoizing.half(8)) == (8, 8)
    with pytest.raises(lsmkv.UnsupportedValueError, match="Counted at value"):
        cache.memoize("whole")(Counted.method)(Counted(), 2)


@dataclasses.dataclass(frozen=True)
class Square:
    """An instance that is an argument."""

    side: int

    def area(self, day: datetime.date) -> int:
        """A method."""
        return self.side * self.side + day.year


def test_arguments_are_dates_sets_and_registered_types() -> None:
    with lsmkv.Cache(shared=False, codec=DefaultCodec(types=[Square])) as cache:
        area = cache.memoize()(Square.area)
        days = [datetime.date(year, 1, 1) for year in (2025, 2026)]
        assert [area(Square(3), day) for day in days * 2] == [2034, 2035] * 2
        assert area(Square(4), days[0]) == 2041
        assert len(cache) == 3
        either_of = cache.memoize()(sorted)
        assert either_of({1, 2}) == either_of({2, 1}) == [1, 2]
        assert len(cache) == 4


def test_parentheses_are_needed(cache: lsmkv.Cache) -> None:
    with pytest.raises(TypeError, match="parentheses"):
        cache.memoize(len)  # type: ignore[arg-type]
