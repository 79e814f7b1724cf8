"""A mapping on disk that many processes share, in the order of insertion: :class:`Index`."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, Self, TypeVar

from lsmkv.cache.cache import Cache
from lsmkv.cache.memoizing import MISSING, Memoized

P = ParamSpec("P")
R = TypeVar("R")


class Index(MutableMapping[Any, Any]):
    """A mapping on disk in the order of insertion, as ``dict``.

    ``Index(directory, ...)`` opens the index in a directory, or in a new one among the system's
    temporary files; what follows is as for ``dict``.  Keys and values are what the cache's codec
    takes.  Any thread and any process may use it.  An index is pickled as its directory.  An entry
    costs what it costs in a :class:`lsmkv.Cache`.  Raises ``KeyError`` where a dict does, and what
    the cache raises.

    >>> index = Index(None, {"a": 1}, b=2)
    >>> index["c"] = 3
    >>> list(index.items()), index == {"c": 3, "b": 2, "a": 1}
    ([('a', 1), ('b', 2), ('c', 3)], True)
    >>> index.close()
    """

    def __init__(
        self, directory: str | os.PathLike[str] | None = None, /, *args: Any, **kwargs: Any
    ) -> None:
        if directory is not None and not isinstance(directory, str | os.PathLike):
            args, directory = (directory, *args), None
        self._cache = Cache(directory, eviction="none")
        self._update(args, kwargs)

    @classmethod
    def fromcache(cls, cache: Cache, /, *args: Any, **kwargs: Any) -> Self:
        """An index in an open cache, which should have ``eviction="none"``.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False, eviction="none") as cache:
        ...     dict(Index.fromcache(cache, {"a": 1}))
        {'a': 1}
        """
        index = cls.__new__(cls)
        index._cache = cache
        index._update(args, kwargs)
        return index

    def _update(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.update(*args, **kwargs)

    @property
    def cache(self) -> Cache:
        """The cache that it is in."""
        return self._cache

    @property
    def directory(self) -> str:
        """The directory of the cache."""
        return self._cache.directory

    def close(self) -> None:
        """Close the cache.

        >>> index = Index()
        >>> index.close()
        """
        self._cache.close()

    # Entries

    def __getitem__(self, key: Any) -> Any:
        """The value of ``key``; ``KeyError`` if there is none."""
        return self._cache[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set ``key``, which keeps its place in the order."""
        self._cache[key] = value

    def __delitem__(self, key: Any) -> None:
        """Remove ``key``; ``KeyError`` if it is not there."""
        del self._cache[key]

    def __contains__(self, key: object) -> bool:
        """True if ``key`` is there."""
        return key in self._cache

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The value of ``key``, which is set to ``default`` if there is none.

        >>> with Index() as index:
        ...     index.setdefault("a", 0), index.setdefault("a", 1)
        (0, 0)
        """
        while True:
            value = self._cache.get(key, MISSING)
            if value is not MISSING:
                return value
            if self._cache.add(key, default, retry=True):
                return self._cache.get(key, default)

    def pop(self, key: Any, default: Any = MISSING) -> Any:
        """Remove ``key`` and return its value, or ``default``; ``KeyError`` without either."""
        value = self._cache.pop(key, default=default, retry=True)
        if value is MISSING:
            raise KeyError(key)
        return value

    def popitem(self, last: bool = True) -> tuple[Any, Any]:
        """Remove the pair that was inserted last, or first; ``KeyError`` if there is none.

        >>> with Index(None, a=1, b=2) as index:
        ...     index.popitem(), index.popitem(last=False)
        (('b', 2), ('a', 1))
        """
        pair: tuple[Any, Any] = self._cache._end_of_all(last, removes=True)
        return pair

    def peekitem(self, last: bool = True) -> tuple[Any, Any]:
        """The pair that was inserted last, or first, which stays; ``KeyError`` if there is none."""
        pair: tuple[Any, Any] = self._cache.peekitem(last, retry=True)
        return pair

    def push(self, value: Any, prefix: str | None = None, side: Any = "back") -> int | str:
        """:meth:`lsmkv.Cache.push`.

        >>> with Index() as index:
        ...     index.push("a"), index.pull(), index.pull()
        (500000000000000, (500000000000000, 'a'), (None, None))
        """
        return self._cache.push(value, prefix, side, retry=True)

    def pull(
        self, prefix: str | None = None, default: Any = (None, None), side: Any = "front"
    ) -> Any:
        """:meth:`lsmkv.Cache.pull`."""
        return self._cache.pull(prefix, default, side, retry=True)

    def clear(self) -> None:
        """Remove all entries."""
        self._cache.clear(retry=True)

    # Order

    def __iter__(self) -> Iterator[Any]:
        """The keys in the order of insertion."""
        return iter(self._cache)

    def __reversed__(self) -> Iterator[Any]:
        """The keys, from the last to the first."""
        return reversed(self._cache)

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._cache)

    def __eq__(self, other: object) -> bool:
        """True if it has the pairs of another mapping, and their order if that one is ordered."""
        if not isinstance(other, Mapping):
            return NotImplemented
        if len(self) != len(other):
            return False
        if isinstance(other, Index | OrderedDict):
            pairs = zip(self.items(), other.items(), strict=False)
            return all(one == another for one, another in pairs)
        return all(other.get(key, MISSING) == value for key, value in self.items())

    __hash__ = None  # type: ignore[assignment]

    # Functions

    def memoize(
        self,
        name: str | None = None,
        typed: bool = False,
        ignore: Collection[int | str] = (),
        lock: bool = False,
        timeout: float | None = None,
    ) -> Callable[[Callable[P, R]], Memoized[P, R]]:
        """:meth:`lsmkv.Cache.memoize`.

        >>> with Index() as index:
        ...     @index.memoize()
        ...     def square(number: int) -> int: return number * number
        ...     square(3), len(index)
        (9, 1)
        """
        return self._cache.memoize(*(name, typed), ignore=ignore, lock=lock, timeout=timeout)

    def transact(self) -> AbstractContextManager[None]:
        """:meth:`lsmkv.Cache.transact`.

        >>> with Index(None, a=1) as index, index.transact():
        ...     index["a"] += 1
        """
        return self._cache.transact(retry=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.directory!r})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle the index as its directory."""
        return type(self), (self.directory,)
