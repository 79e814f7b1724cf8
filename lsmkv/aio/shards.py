"""The shard set of :mod:`lsmkv.aio`, and :func:`open_shards`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Never, Self

from lsmkv.aio.readable import Openable
from lsmkv.aio.threads import CallThreads
from lsmkv.errors import ClosedError
from lsmkv.shards import shards as _shards
from lsmkv.shards.explanation import ShardExplanation
from lsmkv.shards.remote.objects.retrying import DEFAULT_LIMITS, Limits
from lsmkv.shards.stats import ShardsStats
from lsmkv.util.arguments import BytesLike, as_bytes
from lsmkv.util.copying import refuse_copy


def open_shards(url: str | os.PathLike[str], **arguments: Any) -> Shards:
    """Open a shard set, with ``async with open_shards(url) as s`` or ``s = await
    open_shards(url)``.

    The keywords, errors and costs are those of :func:`lsmkv.shards.open`.

    >>> import asyncio, tempfile
    >>> import lsmkv.bulk
    >>> async def main(url):
    ...     async with open_shards(url) as s:
    ...         return await s.multi_get([b"a", b"c"]), [pair async for pair in s]
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"a", b"1"), (b"b", b"2")], here)
    ...     asyncio.run(main(here))
    ([b'1', None], [(b'a', b'1'), (b'b', b'2')])
    """
    return Shards(url, **arguments)


class Shards(Openable):
    """:class:`lsmkv.shards.Shards` with ``async`` methods.

    As many calls run at once as ``limits`` allow connections.  ``async with`` or ``await`` opens
    it; the caller closes it.  Before it is open and after it is closed, methods raise
    :class:`~lsmkv.ClosedError`.  The other errors, and the costs, are those of
    :class:`lsmkv.shards.Shards`.

    >>> import asyncio, tempfile
    >>> import lsmkv.bulk
    >>> async def main(url):
    ...     s = await Shards(url)
    ...     await s.warm()
    ...     explained, stats = await s.explain(b"c"), await s.stats()
    ...     asked = await s.contains(b"a"), await s.may_contain(b"a"), await s.refresh()
    ...     values, version = await s.multi_get([b"b", b"c"]), s.version
    ...     await s.close()
    ...     return explained.requests, stats.shards_open, asked, values, version
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"a", b"1"), (b"b", b"2")], here, shards=2)
    ...     asyncio.run(main(here))
    (0, 2, (True, True, False), [b'2', None], 1)

    >>> async def main(url):
    ...     s = await Shards(url).open()
    ...     await s.close()
    ...     return s.closed
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"a", b"1")], here)
    ...     asyncio.run(main(here))
    True
    """

    _sync_shards: _shards.Shards | None = None
    _threads: CallThreads | None = None

    def __init__(
        self, url: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS, **arguments: Any
    ) -> None:
        """Does not open anything yet.  The keywords are those of :func:`lsmkv.shards.open`."""
        self.url = os.fspath(url)
        """The URL, as the caller gave it."""
        self._arguments = {**arguments, "limits": limits}
        self._connections = limits.connections

    async def open(self) -> Self:
        """Open it, as ``async with`` and ``await`` do.  A second call raises ``ValueError``."""
        if self._threads is not None:
            raise ValueError("Shards can be opened only once: create a new object")
        threads = self._threads = CallThreads(self._connections)
        try:
            await threads.run(self._open_in_thread)
        except BaseException:
            await self.close()
            raise
        return self

    async def multi_get(
        self, keys: Iterable[BytesLike], *, fill_cache: bool = True
    ) -> list[bytes | None]:
        """The values of several keys, read concurrently: :meth:`lsmkv.shards.Shards.multi_get`."""
        threads, shards = self._opened()
        wanted = [as_bytes(key, "key") for key in keys]
        return await threads.run(shards.multi_get, wanted, fill_cache=fill_cache)

    async def contains(self, key: BytesLike) -> bool:
        """Whether ``key`` exists.  Costs what a Get costs."""
        return await self.get(key) is not None

    async def may_contain(self, key: BytesLike) -> bool:
        """False only if ``key`` does not exist: :meth:`lsmkv.shards.Shards.may_contain`."""
        threads, shards = self._opened()
        return await threads.run(shards.may_contain, as_bytes(key, "key"))

    async def explain(self, key: BytesLike) -> ShardExplanation:
        """How a Get works: :meth:`lsmkv.shards.Shards.explain`."""
        threads, shards = self._opened()
        return await threads.run(shards.explain, as_bytes(key, "key"))

    async def refresh(self, version: int | None = None) -> bool:
        """Switch to the newest version, or to ``version``: :meth:`lsmkv.shards.Shards.refresh`."""
        threads, shards = self._opened()
        return await threads.run(shards.refresh, version)

    async def warm(self) -> None:
        """Open all shards now: :meth:`lsmkv.shards.Shards.warm`."""
        threads, shards = self._opened()
        await threads.run(shards.warm)

    async def stats(self) -> ShardsStats:
        """The counters: :meth:`lsmkv.shards.Shards.stats`."""
        threads, shards = self._opened()
        return await threads.run(shards.stats)

    @property
    def version(self) -> int:
        """The number of the version in use."""
        return self._opened()[1].version

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._threads is not None and self._threads.ended

    async def close(self) -> None:
        """Close it after the earlier calls have ended."""
        if self._threads is None:
            self._threads = CallThreads()
        await self._threads.end(self._close_in_thread)

    def __repr__(self) -> str:
        return f"<lsmkv.aio.Shards {self.url!r}{' (closed)' if self.closed else ''}>"

    def __reduce__(self) -> Never:
        refuse_copy("lsmkv.aio.Shards", "they belong to one event loop: pass their URL")

    def _is_open(self) -> bool:
        return self._sync_shards is not None and not self.closed

    def _opened(self) -> tuple[CallThreads, _shards.Shards]:
        threads, shards = self._threads, self._sync_shards
        if threads is None or shards is None or threads.ended:
            raise ClosedError("the shards are not open")
        return threads, shards

    def _open_in_thread(self) -> None:
        self._sync_shards = _shards.Shards(self.url, **self._arguments)

    def _close_in_thread(self) -> None:
        if self._sync_shards is not None:
            self._sync_shards.close()
