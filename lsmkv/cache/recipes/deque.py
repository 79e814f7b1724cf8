"""A deque on disk that any number of processes share: :class:`Deque`."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import islice
from typing import Any, Self

from lsmkv.cache.cache import Cache
from lsmkv.cache.memoizing import MISSING


class Deque(MutableSequence[Any]):
    """A sequence on disk with cheap ends, as ``collections.deque``.

    ``Deque(iterable, directory, maxlen)`` opens the deque in a directory, by default a new one
    among the system's temporary files, and extends it by ``iterable``.  Items are what the cache's
    codec takes; other keywords are those of :class:`lsmkv.Cache`.  With ``maxlen``, an item too
    many at one end removes those at the other.  Any thread and any process may use it.  A deque is
    pickled as its directory and ``maxlen``.

    An end costs a read and a write; ``deque[n]`` a walk over n keys; :meth:`rotate`, by n, n of
    each.  Raises ``IndexError`` where a deque does, and what the cache raises.

    >>> deque = Deque("abc")
    >>> deque.append("d")
    >>> deque.popleft(), deque.pop(), list(deque), len(deque), "b" in deque
    ('a', 'd', ['b', 'c'], 2, True)
    >>> deque.close()
    """

    def __init__(
        self,
        iterable: Iterable[Any] = (),
        directory: str | os.PathLike[str] | None = None,
        maxlen: int | None = None,
        **options: Any,
    ) -> None:
        self._cache = Cache(directory, **({"eviction": "none"} | options))
        self._options = options
        self._maxlen = _checked(maxlen)
        self.extend(iterable)

    @classmethod
    def fromcache(
        cls, cache: Cache, iterable: Iterable[Any] = (), maxlen: int | None = None
    ) -> Self:
        """A deque in an open cache, which should have ``eviction="none"``.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False, eviction="none") as cache:
        ...     list(Deque.fromcache(cache, [1, 2]))
        [1, 2]
        """
        deque = cls.__new__(cls)
        deque._cache = cache
        deque._options = {}
        deque._maxlen = _checked(maxlen)
        deque.extend(iterable)
        return deque

    @property
    def cache(self) -> Cache:
        """The cache that it is in."""
        return self._cache

    @property
    def directory(self) -> str:
        """The directory of the cache."""
        return self._cache.directory

    @property
    def maxlen(self) -> float:
        """The most items; ``inf`` without a limit.  A lower one removes items at the left end."""
        return self._maxlen

    @maxlen.setter
    def maxlen(self, value: float) -> None:
        self._maxlen = value
        with self._cache.transact(retry=True):
            self._trim("front")

    def close(self) -> None:
        """Close the cache.

        >>> deque = Deque()
        >>> deque.close()
        """
        self._cache.close()

    # Items

    def _at(self, index: int, use: Callable[[Any], Any]) -> Any:
        """Use the key of an item; one that another process removes at the same time is passed
        over."""
        index = operator.index(index)
        length = len(self._cache)
        if not -length <= index < length:
            raise IndexError("deque index out of range")
        keys = iter(self._cache.iterkeys(reverse=index < 0))
        for key in islice(keys, index if index >= 0 else -index - 1, None):
            try:
                return use(key)
            except KeyError:
                continue
        raise IndexError("deque index out of range")

    def __getitem__(self, index: Any) -> Any:
        """The item at ``index``; ``IndexError`` if there is none."""
        return self._at(index, self._cache.__getitem__)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Replace the item at ``index``."""

        self._at(index, lambda key: self._cache._replace(key, value))

    def __delitem__(self, index: Any) -> None:
        """Remove the item at ``index``."""
        self._at(index, self._cache.__delitem__)

    def _items(self, reverse: bool) -> Iterator[Any]:
        cache = self._cache
        for key in cache.iterkeys(reverse=reverse):
            try:
                value = cache[key]
            except KeyError:
                continue
            yield value

    def __iter__(self) -> Iterator[Any]:
        """The items, from the left."""
        return self._items(False)

    def __reversed__(self) -> Iterator[Any]:
        """The items, from the right."""
        return self._items(True)

    def __len__(self) -> int:
        """The number of items."""
        return len(self._cache)

    # Ends

    def append(self, value: Any) -> None:
        """Add an item at the right end."""
        with self._cache.transact(retry=True):
            self._cache.push(value, retry=True)
            self._trim("front")

    def appendleft(self, value: Any) -> None:
        """Add an item at the left end.

        >>> deque = Deque("ab")
        >>> deque.appendleft("z")
        >>> deque.peekleft(), deque.peek()
        ('z', 'b')
        >>> deque.close()
        """
        with self._cache.transact(retry=True):
            self._cache.push(value, side="front", retry=True)
            self._trim("back")

    def _trim(self, side: Any) -> None:
        """Remove surplus items.  The caller is in a transaction."""
        while self._maxlen != float("inf") and len(self._cache) > self._maxlen:
            self._cache.pull(side=side, retry=True)

    def _take(self, side: Any) -> Any:
        # Else another process's append could remove one more, for an item that is taken here.
        with nullcontext() if self._maxlen == float("inf") else self.transact():
            _, value = self._cache.pull(default=(None, MISSING), side=side, retry=True)
        if value is MISSING:
            raise IndexError("pop from an empty deque")
        return value

    def _take_from_back(self, most: int) -> Iterator[Any]:
        """Remove items at the right end until none is left: others may also take some."""
        with suppress(IndexError):
            for _ in range(most):
                yield self._take("back")

    def _look(self, side: Any) -> Any:
        _, value = self._cache.peek(default=(None, MISSING), side=side, retry=True)
        if value is MISSING:
            raise IndexError("peek from an empty deque")
        return value

    def pop(self, index: int = -1) -> Any:
        """Remove and return the item at the right end, or at ``index``."""
        if index == -1:
            return self._take("back")
        return self._at(index, self._pop_key)

    def _pop_key(self, key: Any) -> Any:
        value = self._cache.pop(key, MISSING)
        if value is MISSING:
            raise KeyError(key)
        return value

    def popleft(self) -> Any:
        """Remove and return the item at the left end; ``IndexError`` if there is none."""
        return self._take("front")

    def peek(self) -> Any:
        """The item at the right end, which stays; ``IndexError`` if there is none."""
        return self._look("back")

    def peekleft(self) -> Any:
        """The item at the left end, which stays; ``IndexError`` if there is none."""
        return self._look("front")

    def extend(self, values: Iterable[Any]) -> None:
        """Add items at the right end, one after the other."""
        for value in values:
            self.append(value)

    def extendleft(self, iterable: Iterable[Any]) -> None:
        """Add items at the left end, one after the other: they are there in reverse.

        >>> deque = Deque()
        >>> deque.extendleft("abc")
        >>> list(deque)
        ['c', 'b', 'a']
        >>> deque.close()
        """
        for value in iterable:
            self.appendleft(value)

    def __iadd__(self, values: Iterable[Any]) -> Self:
        """Extend it."""
        self.extend(values)
        return self

    # All of it

    def clear(self) -> None:
        """Remove all items."""
        self._cache.clear(retry=True)

    def copy(self) -> Self:
        """Another handle of the same deque."""
        return type(self)(directory=self.directory, maxlen=self._limit, **self._options)

    __copy__ = copy

    @property
    def _limit(self) -> int | None:
        return None if self._maxlen == float("inf") else int(self._maxlen)

    def insert(self, index: int, value: Any) -> None:
        """Put an item before that at ``index``.  Cost: a read and a write of those after it.

        >>> deque = Deque("ac")
        >>> deque.insert(1, "b")
        >>> list(deque)
        ['a', 'b', 'c']
        >>> deque.close()
        """
        with self._cache.transact(retry=True):
            length = len(self)
            if length >= self._maxlen:
                raise IndexError("the deque already has its maximum length")
            begin = min(max(index + length if index < 0 else index, 0), length)
            behind = list(self._take_from_back(length - begin))
            self.append(value)
            for item in reversed(behind):
                self.append(item)

    def count(self, value: Any) -> int:
        """The number of items equal to ``value``.  Cost: a read of all."""
        return sum(1 for item in self if value == item)

    def remove(self, value: Any) -> None:
        """Remove the first item that equals ``value``; ``ValueError`` if there is none."""
        cache = self._cache
        for key in cache.iterkeys():
            if cache._delete_equal(key, value):
                return
        raise ValueError("deque.remove(value): value not in deque")

    def reverse(self) -> None:
        """Reverse the order of the items.  Cost: a read and a write of all, in memory."""
        with self._cache.transact(retry=True):
            self.extend(list(self._take_from_back(len(self))))

    def rotate(self, steps: int = 1) -> None:
        """Move items from the right end to the left one, or back for fewer than 0 steps.

        >>> deque = Deque("abcde")
        >>> deque.rotate(2)
        >>> "".join(deque)
        'deabc'
        >>> deque.close()
        """
        if not isinstance(steps, int):
            raise TypeError(f"rotate() takes an int, not {type(steps).__name__}")
        with self._cache.transact(retry=True):
            length = len(self._cache)
            if length == 0:
                return
            take, put = ("back", "front") if steps >= 0 else ("front", "back")
            side: Any = put
            try:
                for _ in range(abs(steps) % length):
                    self._cache.push(self._take(take), side=side, retry=True)
            except IndexError:
                pass  # another process has emptied it

    def transact(self) -> AbstractContextManager[None]:
        """:meth:`lsmkv.Cache.transact`.

        >>> deque = Deque("ab")
        >>> with deque.transact():
        ...     deque.append(deque.popleft())
        >>> list(deque)
        ['b', 'a']
        >>> deque.close()
        """
        return self._cache.transact(retry=True)

    # As a sequence

    def _compared(self, other: object, ends: Callable[[Any, Any], bool]) -> Any:
        """Compare the first items that differ, or else the lengths."""
        if not isinstance(other, Sequence):
            return NotImplemented
        for one, another in zip(self, other, strict=False):
            if one != another:
                return ends(one, another)
        return ends(len(self), len(other))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and bool(self._compared(other, operator.eq))

    def __lt__(self, other: object) -> Any:
        return self._compared(other, operator.lt)

    def __le__(self, other: object) -> Any:
        return self._compared(other, operator.le)

    def __gt__(self, other: object) -> Any:
        return self._compared(other, operator.gt)

    def __ge__(self, other: object) -> Any:
        return self._compared(other, operator.ge)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(directory={self.directory!r})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle the deque as its directory and the arguments that opened it."""
        return _reopen, (type(self), self.directory, self._limit, self._options)


def _reopen(kind: Any, directory: str, maxlen: int | None, options: dict[str, Any]) -> Any:
    return kind(directory=directory, maxlen=maxlen, **options)


def _checked(maxlen: int | None) -> float:
    if maxlen is None:
        return float("inf")
    if maxlen < 0:
        raise ValueError(f"maxlen is at least 0, not {maxlen}")
    return maxlen
