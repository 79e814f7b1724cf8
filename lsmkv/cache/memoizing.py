"""Functions whose results a cache keeps: :func:`memoized`, for ``Cache.memoize``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

MISSING: Final = object()
"""What a cache returns for an entry that is not there."""


class Memoized(Protocol, Generic[P, R_co]):
    """A function whose results a cache keeps."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def __cache_key__(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Any, ...]:
        """The key of the result for these arguments."""
        ...

    @property
    def __wrapped__(self) -> Callable[P, R_co]:
        """The function itself, without the cache."""
        ...


class Stores(Protocol):
    """What the results are stored in."""

    def get(self, key: Any, default: Any = None) -> Any: ...

    def set(
        self, key: Any, value: Any, expire: float | None = None, *, tag: Any = None
    ) -> bool: ...


def full_name(function: Any) -> str:
    """The name of a function, with its module."""
    return f"{function.__module__}.{function.__qualname__}"


def key_of(
    base: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    typed: bool,
    ignore: Collection[int | str],
) -> tuple[Any, ...]:
    """The key of a result: the function's name, the arguments by position, None, those by name in
    their order, and the names of their types if ``typed``."""
    given = [value for at, value in enumerate(args) if at not in ignore]
    named = sorted((name, value) for name, value in kwargs.items() if name not in ignore)
    key: list[Any] = [base, *given, None]
    for name, value in named:
        key += (name, value)
    if typed:
        key += [_type_name(value) for value in given]
        key += [_type_name(value) for _, value in named]
    return tuple(key)


def _type_name(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


class TakesTurns(Protocol):
    """Lets one caller at a time compute a result (:class:`lsmkv.cache.leased.Flights`)."""

    def call(self, key: Any, find: Callable[[], Any], compute: Callable[[], Any]) -> Any: ...

    async def call_async(
        self, key: Any, find: Callable[[], Awaitable[Any]], compute: Callable[[], Awaitable[Any]]
    ) -> Any: ...


def key_maker(
    function: Callable[P, Any], name: str | None, typed: bool, ignore: Collection[int | str]
) -> Callable[P, tuple[Any, ...]]:
    """What makes the keys of a function's results."""
    base = full_name(function) if name is None else name

    def cache_key(*args: P.args, **kwargs: P.kwargs) -> tuple[Any, ...]:
        return key_of(base, args, kwargs, typed, ignore)

    return cache_key


def memoized(
    store: Stores,
    function: Callable[P, R],
    name: str | None,
    typed: bool,
    expire: float | None,
    tag: Any,
    ignore: Collection[int | str],
    turns: TakesTurns | None = None,
) -> Memoized[P, R]:
    """The function with its results in the store; a coroutine function's are awaited first.

    With ``turns``, one caller computes what several want.
    """
    cache_key = key_maker(function, name, typed, ignore)
    stores = expire is None or expire > 0
    if inspect.iscoroutinefunction(function):

        async def find(key: Any) -> Any:
            return store.get(key, MISSING)

        async def keep(key: Any, result: Any) -> None:
            store.set(key, result, expire, tag=tag)

        awaited = memoized_awaiting(function, cache_key, find, keep if stores else None, turns)
        return cast("Memoized[P, R]", awaited)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
        def compute() -> Any:
            result = function(*args, **kwargs)
            if stores:
                store.set(key, result, expire, tag=tag)
            return result

        key = cache_key(*args, **kwargs)
        result = store.get(key, MISSING)
        if result is not MISSING:
            return result
        if turns is None:
            return compute()
        return turns.call(key, lambda: store.get(key, MISSING), compute)

    made: Any = wrapper
    made.__cache_key__ = cache_key
    return cast("Memoized[P, R]", made)


def memoized_awaiting(
    function: Callable[P, Any],
    cache_key: Callable[P, tuple[Any, ...]],
    find: Callable[[Any], Awaitable[Any]],
    keep: Callable[[Any, Any], Awaitable[Any]] | None,
    turns: TakesTurns | None,
) -> Memoized[P, Awaitable[Any]]:
    """A function that is awaited, whether the given one is or not; ``keep`` stores its results."""

    @functools.wraps(function)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
        async def compute() -> Any:
            result = function(*args, **kwargs)
            if inspect.isawaitable(result):
                result = await result
            if keep is not None:
                await keep(key, result)
            return result

        key = cache_key(*args, **kwargs)
        result = await find(key)
        if result is not MISSING:
            return result
        if turns is None:
            return await compute()
        return await turns.call_async(key, lambda: find(key), compute)

    made: Any = wrapper
    made.__cache_key__ = cache_key
    return cast("Memoized[P, Awaitable[Any]]", made)
