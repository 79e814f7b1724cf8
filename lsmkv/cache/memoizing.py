"""Functions whose results a cache keeps: :func:`memoized`, for ``Cache.memoize``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Collection
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    overload,
)

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

MISSING: Final = object()
"""The result of a cache for a missing entry."""


class Memoized(Protocol, Generic[P, R_co]):
    """A function whose results a cache keeps; in a class, a method."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def __cache_key__(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Any, ...]:
        """The key of the result for these arguments."""
        ...

    @overload
    def __get__(self, instance: None, owner: type | None = None, /) -> Self: ...

    @overload
    def __get__(
        self: Memoized[Concatenate[Any, Q], R], instance: object, owner: type | None = None, /
    ) -> Callable[Q, R]:
        """The method of an instance, whose ``__cache_key__`` is that of the class."""

    @property
    def __wrapped__(self) -> Callable[P, R_co]:
        """The function itself, without the cache."""
        ...


class Stores(Protocol):
    """The interface of a store of results."""

    def get(self, key: Any, default: Any = None) -> Any: ...

    def set(
        self, key: Any, value: Any, expire: float | None = None, *, tag: Any = None
    ) -> bool: ...


def own_name(function: Any) -> str:
    """The name of a function, with its module.

    ``ValueError`` if others may have the same one: lambdas and functions that are defined in a
    function, of which each call makes another one; methods of one instance; and what has no name.
    """
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    instance = getattr(function, "__self__", None)
    of_one = instance is not None and not inspect.ismodule(instance)
    if module is None or name is None or "<" in name or of_one:
        raise ValueError(
            f"{name or repr(function)} may be the name of several functions, which would share what"
            " is stored: pass name=, a unique name"
        )
    return f"{module}.{name}"


class TakesTurns(Protocol):
    """Lets one caller at a time compute a result (:class:`lsmkv.cache.leased.Flights`)."""

    def call(self, key: Any, find: Callable[[], Any], compute: Callable[[], Any]) -> Any: ...

    async def call_async(
        self, key: Any, find: Callable[[], Awaitable[Any]], compute: Callable[[], Awaitable[Any]]
    ) -> Any: ...


def key_maker(
    function: Callable[P, Any], name: str | None, typed: bool, ignore: Collection[int | str]
) -> Callable[P, tuple[Any, ...]]:
    """Return a function that makes the keys of a function's results.

    A key is the function's name; a tuple of the arguments by position; a tuple of pairs of the
    others, in the order of their names; and with ``typed`` a tuple of the names of their types.
    Calls that give the same parameters the same values have one key, and no others have it.
    """
    if not callable(function):
        kind = type(function).__name__
        raise TypeError(
            f"a {kind} is not callable: decorate the function, and then make the {kind}"
        )
    base = own_name(function) if name is None else name
    names = _positional(function)
    positions = {at for at, one in enumerate(names) if one in ignore and one is not None}
    positions |= {one for one in ignore if isinstance(one, int)}
    others = {one for at, one in enumerate(names) if at in ignore}.union(ignore)

    def cache_key(*args: P.args, **kwargs: P.kwargs) -> tuple[Any, ...]:
        given: tuple[Any, ...] = args
        named: tuple[tuple[str, Any], ...] = ()
        if kwargs:
            for one in names[len(args) :]:
                if one is None or one not in kwargs:
                    break
                given += (kwargs.pop(one),)
            named = tuple([pair for pair in sorted(kwargs.items()) if pair[0] not in others])
        if positions:
            given = tuple([value for at, value in enumerate(given) if at not in positions])
        if not typed:
            return base, given, named
        types = [type(value) for value in given] + [type(value) for _, value in named]
        return base, given, named, tuple([f"{one.__module__}.{one.__qualname__}" for one in types])

    return cache_key


def _positional(function: Callable[..., Any]) -> list[str | None]:
    """The parameters that can be given by position; None for one that has to be.

    Those of a function that another one wraps are not those of the wrapper.
    """
    try:
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):  # a builtin function that does not state them
        return []
    return [
        None if one.kind is one.POSITIONAL_ONLY else one.name
        for one in parameters
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]


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
    """A function to be awaited, even if the given one is not; ``keep`` stores its results."""

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
