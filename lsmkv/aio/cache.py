"""The cache, for ``asyncio``."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any, Never, ParamSpec, Protocol, TypeVar, Unpack

from lsmkv.aio.forwarding import forwarded
from lsmkv.aio.iterator import CHUNK
from lsmkv.aio.openable import Opened
from lsmkv.cache import cache as _cache
from lsmkv.cache.codecs import Codec
from lsmkv.cache.leased import LONGEST, Flights, lease_of_task, outlasted, surely
from lsmkv.cache.memoizing import MISSING, Memoized, key_maker, memoized_awaiting
from lsmkv.cache.opened import Eviction, OnError
from lsmkv.engine.options import OptionArguments
from lsmkv.engine.util.call_site import call_site
from lsmkv.engine.util.copying import refuse_copy

P = ParamSpec("P")
R = TypeVar("R")


class Memoizing(Protocol):
    """Keeps the results of a coroutine function."""

    def __call__(self, function: Callable[P, Awaitable[R]], /) -> Memoized[P, Awaitable[R]]: ...


class Cache(Opened[_cache.Cache]):
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
    ...     limits = cache.size_limit, cache.cull_limit, cache.recency, cache.statistics
    ...     assert (limits, cache.eviction_policy) == ((1 << 30, 10, 60, 1), "least-recently-used")
    ...     assert repr(cache.codec) == "DefaultCodec()"
    ...     await cache.close()
    ...     return same, made, gone, none, size, keys, "lsmkv-cache-" in where, cache.closed
    >>> asyncio.run(main())
    (True, (True, True, 5), (5, False, 0), 0, (0, [], (0, 0)), ([], 10), True, True)

    Both kinds of functions are memoized, and both are awaited afterwards:

    >>> async def main():
    ...     async with Cache(shared=False) as cache:
    ...         @cache.memoize("square")
    ...         async def square(number):
    ...             print("computing")
    ...             return number * number
    ...         return await square(3), await square(3)
    >>> asyncio.run(main())
    computing
    (9, 9)
    """

    _ONLY_ONCE = "a Cache can be opened only once: create another one"
    _NOT_OPEN = "the cache is not open: use async with, or await"

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
        self._site = call_site()
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

    def _made(self) -> _cache.Cache:
        return self._open_it()

    def __repr__(self) -> str:
        cache = self._source
        where = "" if cache is None else f" {cache.directory!r}"
        return f"<lsmkv.aio.Cache{where}{' (closed)' if self.closed else ''}>"

    def __reduce__(self) -> Never:
        refuse_copy("an lsmkv.aio.Cache", "it belongs to one event loop: pass its directory")

    # What it is set to

    @property
    def directory(self) -> str:
        """The directory of the cache."""
        return self._opened()[1].directory

    @property
    def codec(self) -> Codec:
        """The codec that turns values into bytes."""
        return self._opened()[1].codec

    @property
    def size_limit(self) -> int:
        """Bytes that the entries may take before some are evicted."""
        return self._opened()[1].size_limit

    @property
    def eviction_policy(self) -> str:
        """The policy that selects the entries to evict."""
        return self._opened()[1].eviction_policy

    @property
    def cull_limit(self) -> int:
        """The most entries that one write removes: :attr:`lsmkv.Cache.cull_limit`."""
        return self._opened()[1].cull_limit

    @property
    def statistics(self) -> int:
        """1 if hits and misses are counted."""
        return self._opened()[1].statistics

    @property
    def recency(self) -> float:
        """Seconds to which the order of eviction is exact."""
        return self._opened()[1].recency

    # One key

    @forwarded(_cache.Cache.get)
    def get(self) -> None:
        """The value of ``key``: :meth:`lsmkv.Cache.get`.  A file blocks the loop."""

    @forwarded(_cache.Cache.read)
    def read(self) -> None:
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

    async def contains(self, key: Any) -> bool:
        """Return True if there is an entry: ``key in cache``, which cannot be awaited."""
        threads, cache = self._opened()
        return await threads.run(cache.__contains__, key)

    @forwarded(_cache.Cache.set)
    def set(self) -> None:
        """Store a value: :meth:`lsmkv.Cache.set`."""

    @forwarded(_cache.Cache.add)
    def add(self) -> None:
        """Store a value unless there is one: :meth:`lsmkv.Cache.add`."""

    @forwarded(_cache.Cache.touch)
    def touch(self) -> None:
        """Change an entry's expiry: :meth:`lsmkv.Cache.touch`."""

    @forwarded(_cache.Cache.incr)
    def incr(self) -> None:
        """Add to a value: :meth:`lsmkv.Cache.incr`."""

    @forwarded(_cache.Cache.decr)
    def decr(self) -> None:
        """Subtract from a value: :meth:`lsmkv.Cache.decr`."""

    @forwarded(_cache.Cache.pop)
    def pop(self) -> None:
        """Remove an entry and return its value: :meth:`lsmkv.Cache.pop`."""

    @forwarded(_cache.Cache.delete)
    def delete(self) -> None:
        """Remove an entry: :meth:`lsmkv.Cache.delete`."""

    # Queues

    @forwarded(_cache.Cache.push)
    def push(self) -> None:
        """Store a value in a queue: :meth:`lsmkv.Cache.push`."""

    @forwarded(_cache.Cache.pull)
    def pull(self) -> None:
        """Take an entry out of a queue: :meth:`lsmkv.Cache.pull`."""

    @forwarded(_cache.Cache.peek)
    def peek(self) -> None:
        """The entry at a side of a queue: :meth:`lsmkv.Cache.peek`."""

    @forwarded(_cache.Cache.peekitem)
    def peekitem(self) -> None:
        """The entry that was stored last, or first: :meth:`lsmkv.Cache.peekitem`."""

    # All entries

    @forwarded(_cache.Cache.expire)
    def expire(self) -> None:
        """Remove the entries that have expired: :meth:`lsmkv.Cache.expire`."""

    @forwarded(_cache.Cache.evict)
    def evict(self) -> None:
        """Remove the entries with a tag: :meth:`lsmkv.Cache.evict`."""

    @forwarded(_cache.Cache.clear)
    def clear(self) -> None:
        """Remove all entries: :meth:`lsmkv.Cache.clear`."""

    @forwarded(_cache.Cache.cull)
    def cull(self) -> None:
        """Remove entries until the cache is within its limit: :meth:`lsmkv.Cache.cull`."""

    @forwarded(_cache.Cache.check, long=True)
    def check(self) -> None:
        """Check the cache, and return the errors found: :meth:`lsmkv.Cache.check`."""

    @forwarded(_cache.Cache.__len__)
    def count(self) -> None:
        """The number of entries: ``len(cache)``, which cannot be awaited."""

    @forwarded(_cache.Cache.volume)
    def volume(self) -> None:
        """The bytes that the entries take: :meth:`lsmkv.Cache.volume`."""

    @forwarded(_cache.Cache.stats)
    def stats(self) -> None:
        """Hits and misses: :meth:`lsmkv.Cache.stats`."""

    @forwarded(_cache.Cache.reset)
    def reset(self) -> None:
        """Read a setting, or change it: :meth:`lsmkv.Cache.reset`."""

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
        timeout: float | None = None,
    ) -> Memoizing:
        """A decorator that keeps a function's results: :meth:`lsmkv.Cache.memoize`.

        The result is awaited.  A plain function is called in the event loop.
        """
        if callable(name):
            raise TypeError("name is callable: write @cache.memoize(), with parentheses")
        if timeout is not None and not lock:
            raise ValueError("timeout= requires lock=True")

        async def find(key: Any) -> Any:
            return await self.get(key, MISSING)

        async def keep(key: Any, result: Any) -> None:
            await self.set(key, result, expire, tag=tag)

        stores = expire is None or expire > 0

        def decorate(function: Callable[P, Awaitable[R]]) -> Memoized[P, Awaitable[R]]:
            cache_key = key_maker(function, name, typed, ignore)
            turns = Flights(lambda: self._opened()[1], timeout) if lock else None
            return memoized_awaiting(function, cache_key, find, keep if stores else None, turns)

        return decorate

    @asynccontextmanager
    async def transact(
        self,
        retry: bool = False,
        limit: float | None = LONGEST,
        timeout: float | None = None,
    ) -> AsyncIterator[None]:
        """An ``async with`` block that no other caller is in: :meth:`lsmkv.Cache.transact`.

        Tasks also get in one after the other; a block inside a block of the same task does not
        wait.

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
        lease = await lease_of_task(
            *(cache, b"transact", None), holder=holder, limit=limit, timeout=timeout
        )
        try:
            yield
        except BaseException:
            surely(lease.release)
            raise
        if not surely(lease.release) and not self.closed:
            raise outlasted(limit)


def _next_keys(keys: Iterator[Any]) -> list[Any]:
    return list(islice(keys, CHUNK))
