"""The cache, for ``asyncio``."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Generator, Iterator
from contextlib import asynccontextmanager
from itertools import islice
from types import TracebackType
from typing import Any, Never, ParamSpec, Protocol, Self, TypeVar, Unpack

from lsmkv.aio.iterator import CHUNK
from lsmkv.aio.threads import CallThreads
from lsmkv.cache import cache as _cache
from lsmkv.cache.codecs import Codec
from lsmkv.cache.leased import LONGEST, Flights, lease_of_task, outlasted, surely
from lsmkv.cache.memoizing import MISSING, Memoized, key_maker, memoized_awaiting
from lsmkv.cache.opened import Eviction, OnError
from lsmkv.cache.queues import Side
from lsmkv.errors import ClosedError
from lsmkv.options import OptionArguments
from lsmkv.util.copying import refuse_copy

P = ParamSpec("P")
R = TypeVar("R")


class Memoizing(Protocol):
    """Keeps the results of a coroutine function."""

    def __call__(self, function: Callable[P, Awaitable[R]], /) -> Memoized[P, Awaitable[R]]: ...


class Cache:
    """:class:`lsmkv.Cache` with ``async`` methods.

    ``async with`` or ``await`` opens it.  Any number of tasks may use it, in the event loop that
    opened it.  Errors and costs are those of :class:`lsmkv.Cache`, and of a trip to a thread.

    >>> import asyncio
    >>> async def main():
    ...     async with Cache(shared=False) as cache:
    ...         await cache.set("ant", 6, tag="insects")
    ...         await cache.incr("visits")
    ...         keys = [key async for key in cache]
    ...         count = await cache.count()
    ...         return await cache.get("ant"), keys, await cache.contains("bee"), count
    >>> asyncio.run(main())
    (6, ['ant', 'visits'], False, 2)

    The other methods of a cache:

    >>> async def main():
    ...     cache = await Cache(shared=False).open()
    ...     key = await cache.push("job")
    ...     same = await cache.peek() == await cache.peekitem() == await cache.pull()
    ...     made = await cache.add("ant", 6), await cache.touch("ant"), await cache.decr("ant")
    ...     gone = await cache.pop("ant"), await cache.delete("ant"), await cache.evict("tag")
    ...     none = await cache.expire() + await cache.cull() + await cache.clear()
    ...     size = await cache.volume(), await cache.check(), await cache.stats()
    ...     keys = [key async for key in cache.iterkeys()], await cache.reset("cull_limit")
    ...     where = cache.directory
    ...     await cache.close()
    ...     return same, made, gone, none, size, keys, "lsmkv-cache-" in where, cache.closed
    >>> asyncio.run(main())
    (True, (True, True, 5), (5, False, 0), 0, (0, [], (0, 0)), ([], 10), True, True)

    Both kinds of functions are memoized, and both are awaited afterwards:

    >>> async def main():
    ...     async with Cache(shared=False) as cache:
    ...         @cache.memoize()
    ...         async def square(number):
    ...             print("computing")
    ...             return number * number
    ...         return await square(3), await square(3)
    >>> asyncio.run(main())
    computing
    (9, 9)
    """

    _sync_cache: _cache.Cache | None = None
    _threads: CallThreads | None = None

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        size_limit: int | None = None,
        eviction: Eviction | None = None,
        codec: Codec | None = None,
        shared: bool = True,
        recency: float = 60.0,
        cull_limit: int | None = None,
        statistics: bool | None = None,
        on_error: OnError = "raise",
        clock: Callable[[], float] | None = None,
        **options: Unpack[OptionArguments],
    ) -> None:
        """Does not open anything yet.  The arguments are those of :class:`lsmkv.Cache`."""
        self._open_it = functools.partial(
            _cache.Cache,
            directory,
            size_limit=size_limit,
            eviction=eviction,
            codec=codec,
            shared=shared,
            recency=recency,
            cull_limit=cull_limit,
            statistics=statistics,
            on_error=on_error,
            clock=clock,
            **options,
        )

    # Opening and closing

    async def open(self) -> Self:
        """Open the cache, as ``async with`` and ``await`` do; ``ValueError`` for a second call."""
        if self._threads is not None:
            raise ValueError("a Cache can be opened only once: create another one")
        threads = self._threads = CallThreads()
        try:
            await threads.run(self._open_in_thread)
        except BaseException:
            await self.close()
            raise
        return self

    def _open_in_thread(self) -> None:
        self._sync_cache = self._open_it()

    def _close_in_thread(self) -> None:
        if self._sync_cache is not None:
            self._sync_cache.close()

    async def close(self) -> None:
        """Close the cache and end its threads, once the calls made before have ended."""
        if self._threads is not None:
            await self._threads.end(self._close_in_thread)

    @property
    def closed(self) -> bool:
        """Whether the cache is closed, or not open yet."""
        threads = self._threads
        return self._sync_cache is None or threads is None or threads.ended

    def __await__(self) -> Generator[Any, None, Self]:
        return self.open().__await__()

    async def __aenter__(self) -> Self:
        return self if self._threads is not None else await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        cache = self._sync_cache
        where = "" if cache is None else f" {cache.directory!r}"
        return f"<lsmkv.aio.Cache{where}{' (closed)' if self.closed else ''}>"

    def __reduce__(self) -> Never:
        refuse_copy("an lsmkv.aio.Cache", "it belongs to one event loop: pass its directory")

    def _opened(self) -> tuple[CallThreads, _cache.Cache]:
        if self._threads is None or self._sync_cache is None:
            raise ClosedError("the cache is not open: use async with, or await")
        return self._threads, self._sync_cache

    @property
    def directory(self) -> str:
        """The directory of the cache."""
        return self._opened()[1].directory

    # One key

    async def get(
        self,
        key: Any,
        default: Any = None,
        read: bool = False,
        expire_time: bool = False,
        tag: bool = False,
        retry: bool = False,
    ) -> Any:
        """The value of ``key``: :meth:`lsmkv.Cache.get`.  A file blocks the loop."""
        threads, cache = self._opened()
        return await threads.run(cache.get, key, default, read, expire_time, tag)

    async def read(self, key: Any, retry: bool = False) -> Any:
        """The value of ``key`` as a file: :meth:`lsmkv.Cache.read`.  The file blocks the loop.

        >>> import asyncio, io
        >>> async def main():
        ...     async with Cache(shared=False) as cache:
        ...         await cache.set("ant", io.BytesIO(b"six legs"), read=True)
        ...         with await cache.read("ant") as file:
        ...             return file.read(3)
        >>> asyncio.run(main())
        b'six'
        """
        threads, cache = self._opened()
        return await threads.run(cache.read, key)

    async def contains(self, key: Any) -> bool:
        """Whether there is an entry: ``key in cache``, which cannot be awaited."""
        threads, cache = self._opened()
        return await threads.run(cache.__contains__, key)

    async def set(
        self,
        key: Any,
        value: Any,
        expire: float | None = None,
        read: bool = False,
        tag: Any = None,
        retry: bool = False,
    ) -> bool:
        """Store a value: :meth:`lsmkv.Cache.set`."""
        threads, cache = self._opened()
        return await threads.run(cache.set, key, value, expire, read, tag)

    async def add(
        self,
        key: Any,
        value: Any,
        expire: float | None = None,
        read: bool = False,
        tag: Any = None,
        retry: bool = False,
    ) -> bool:
        """Store a value unless there is one: :meth:`lsmkv.Cache.add`."""
        threads, cache = self._opened()
        return await threads.run(cache.add, key, value, expire, read, tag)

    async def touch(self, key: Any, expire: float | None = None, retry: bool = False) -> bool:
        """Change an entry's expiry: :meth:`lsmkv.Cache.touch`."""
        threads, cache = self._opened()
        return await threads.run(cache.touch, key, expire)

    async def incr(self, key: Any, delta: Any = 1, default: Any = 0, retry: bool = False) -> Any:
        """Add to a value: :meth:`lsmkv.Cache.incr`."""
        threads, cache = self._opened()
        return await threads.run(cache.incr, key, delta, default)

    async def decr(self, key: Any, delta: Any = 1, default: Any = 0, retry: bool = False) -> Any:
        """Subtract from a value: :meth:`lsmkv.Cache.decr`."""
        threads, cache = self._opened()
        return await threads.run(cache.decr, key, delta, default)

    async def pop(
        self,
        key: Any,
        default: Any = None,
        expire_time: bool = False,
        tag: bool = False,
        retry: bool = False,
    ) -> Any:
        """Remove an entry and return its value: :meth:`lsmkv.Cache.pop`."""
        threads, cache = self._opened()
        return await threads.run(cache.pop, key, default, expire_time, tag)

    async def delete(self, key: Any, retry: bool = False) -> bool:
        """Remove an entry: :meth:`lsmkv.Cache.delete`."""
        threads, cache = self._opened()
        return await threads.run(cache.delete, key)

    # Queues

    async def push(
        self,
        value: Any,
        prefix: str | None = None,
        side: Side = "back",
        expire: float | None = None,
        read: bool = False,
        tag: Any = None,
        retry: bool = False,
    ) -> int | str:
        """Store a value in a queue: :meth:`lsmkv.Cache.push`."""
        threads, cache = self._opened()
        return await threads.run(cache.push, value, prefix, side, expire, read, tag)

    async def pull(
        self,
        prefix: str | None = None,
        default: Any = (None, None),
        side: Side = "front",
        expire_time: bool = False,
        tag: bool = False,
        retry: bool = False,
    ) -> Any:
        """Take an entry out of a queue: :meth:`lsmkv.Cache.pull`."""
        threads, cache = self._opened()
        return await threads.run(cache.pull, prefix, default, side, expire_time, tag)

    async def peek(
        self,
        prefix: str | None = None,
        default: Any = (None, None),
        side: Side = "front",
        expire_time: bool = False,
        tag: bool = False,
        retry: bool = False,
    ) -> Any:
        """The entry at a side of a queue: :meth:`lsmkv.Cache.peek`."""
        threads, cache = self._opened()
        return await threads.run(cache.peek, prefix, default, side, expire_time, tag)

    async def peekitem(
        self, last: bool = True, expire_time: bool = False, tag: bool = False, retry: bool = False
    ) -> Any:
        """The entry that was stored last, or first: :meth:`lsmkv.Cache.peekitem`."""
        threads, cache = self._opened()
        return await threads.run(cache.peekitem, last, expire_time, tag)

    # All entries

    async def expire(self, now: float | None = None, retry: bool = False) -> int:
        """Remove the entries that have expired: :meth:`lsmkv.Cache.expire`."""
        threads, cache = self._opened()
        return await threads.run(cache.expire, now)

    async def evict(self, tag: Any, retry: bool = False) -> int:
        """Remove the entries with a tag: :meth:`lsmkv.Cache.evict`."""
        threads, cache = self._opened()
        return await threads.run(cache.evict, tag)

    async def clear(self, retry: bool = False) -> int:
        """Remove all entries: :meth:`lsmkv.Cache.clear`."""
        threads, cache = self._opened()
        return await threads.run(cache.clear)

    async def cull(self, retry: bool = False) -> int:
        """Remove entries until the cache is within its limit: :meth:`lsmkv.Cache.cull`."""
        threads, cache = self._opened()
        return await threads.run(cache.cull)

    async def check(self, fix: bool = False, retry: bool = False) -> list[str]:
        """What is wrong with the cache: :meth:`lsmkv.Cache.check`."""
        threads, cache = self._opened()
        return await threads.run_long(cache.check, fix)

    async def count(self) -> int:
        """The number of entries: ``len(cache)``, which cannot be awaited."""
        threads, cache = self._opened()
        return await threads.run(cache.__len__)

    async def volume(self) -> int:
        """The bytes that the entries take: :meth:`lsmkv.Cache.volume`."""
        threads, cache = self._opened()
        return await threads.run(cache.volume)

    async def stats(self, enable: bool = True, reset: bool = False) -> tuple[int, int]:
        """Hits and misses: :meth:`lsmkv.Cache.stats`."""
        threads, cache = self._opened()
        return await threads.run(cache.stats, enable, reset)

    async def reset(self, name: str, *value: Any) -> Any:
        """Read a setting, or change it: :meth:`lsmkv.Cache.reset`."""
        threads, cache = self._opened()
        return await threads.run(cache.reset, name, *value)

    def __aiter__(self) -> AsyncIterator[Any]:
        """The keys in the order in which they were stored, as of the first one."""
        return self._keys(iter)

    def iterkeys(self, reverse: bool = False) -> AsyncIterator[Any]:
        """The keys in their own order: :meth:`lsmkv.Cache.iterkeys`."""
        return self._keys(lambda cache: cache.iterkeys(reverse))

    async def _keys(self, begin: Callable[[_cache.Cache], Iterator[Any]]) -> AsyncIterator[Any]:
        threads, cache = self._opened()
        keys = await threads.run(begin, cache)
        while True:
            some = await threads.run(_next_keys, keys)
            for key in some:
                yield key
            if len(some) < CHUNK:
                return

    # Functions

    def memoize(
        self,
        name: str | None = None,
        typed: bool = False,
        expire: float | None = None,
        tag: Any = None,
        ignore: Collection[int | str] = (),
        lock: bool = False,
    ) -> Memoizing:
        """A decorator that keeps a function's results: :meth:`lsmkv.Cache.memoize`.

        The result is awaited.  A plain function is called in the event loop.
        """
        if callable(name):
            raise TypeError("name is callable: write @cache.memoize(), with parentheses")

        async def find(key: Any) -> Any:
            return await self.get(key, MISSING)

        async def keep(key: Any, result: Any) -> None:
            await self.set(key, result, expire, tag=tag)

        stores = expire is None or expire > 0

        def decorate(function: Callable[P, Awaitable[R]]) -> Memoized[P, Awaitable[R]]:
            cache_key = key_maker(function, name, typed, ignore)
            turns = Flights(lambda: self._opened()[1]) if lock else None
            return memoized_awaiting(function, cache_key, find, keep if stores else None, turns)

        return decorate

    @asynccontextmanager
    async def transact(
        self, retry: bool = False, limit: float | None = LONGEST
    ) -> AsyncIterator[None]:
        """An ``async with`` block that no other caller is in: :meth:`lsmkv.Cache.transact`.

        Tasks get in one after the other, too; a block inside a block of the same task waits for
        nobody.

        >>> import asyncio
        >>> async def main():
        ...     async with Cache(shared=False) as cache:
        ...         async with cache.transact():
        ...             return await cache.incr("total", 5), await cache.incr("count")
        >>> asyncio.run(main())
        (5, 1)
        """
        cache = self._opened()[1]
        holder = b"task %d" % id(asyncio.current_task())
        lease = await lease_of_task(cache, b"transact", None, holder=holder, limit=limit)
        try:
            yield
        except BaseException:
            surely(lease.release)
            raise
        if not surely(lease.release) and not self.closed:
            raise outlasted(limit)


def _next_keys(keys: Iterator[Any]) -> list[Any]:
    return list(islice(keys, CHUNK))
