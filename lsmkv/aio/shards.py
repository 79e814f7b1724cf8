"""The shard set of :mod:`lsmkv.aio`, and :func:`open_shards`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Never

from lsmkv.aio.forwarding import forwarded
from lsmkv.aio.openable import Opened
from lsmkv.aio.readable import Readable
from lsmkv.aio.threads import CallThreads
from lsmkv.engine.errors import ClosedError
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.shards import shards as _shards
from lsmkv.shards.remote.objects.retrying import DEFAULT_LIMITS, Limits
from lsmkv.shards.version import VersionDocument


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


class Shards(Opened[_shards.Shards], Readable):
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
    ...     survey, versions = await s.verify(), await s.versions()
    ...     found = survey.severity, versions, len(s.document.shards)
    ...     await s.close()
    ...     return explained.requests, stats.shards_open, asked, values, version, found
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"a", b"1"), (b"b", b"2")], here, shards=2)
    ...     asyncio.run(main(here))
    (0, 2, (True, True, False), [b'2', None], 1, (0, [1], 2))

    >>> async def main(url):
    ...     s = await Shards(url).open()
    ...     await s.close()
    ...     return s.closed
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"a", b"1")], here)
    ...     asyncio.run(main(here))
    True
    """

    _ONLY_ONCE = "Shards can be opened only once: create a new object"
    _NOT_OPEN = "the shards are not open"

    def __init__(
        self, url: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS, **arguments: Any
    ) -> None:
        """Does not open anything yet.  The keywords are those of :func:`lsmkv.shards.open`."""
        self.url = os.fspath(url)
        """The URL, as the caller gave it."""
        self._arguments = {**arguments, "limits": limits}
        self._limits = limits

    async def multi_get(
        self, keys: Iterable[BytesLike], *, fill_cache: bool = True
    ) -> list[bytes | None]:
        """The values of several keys, read concurrently: :meth:`lsmkv.shards.Shards.multi_get`."""
        threads, shards = self._opened()
        wanted = [as_bytes(key, "key") for key in keys]
        return await threads.run(shards.multi_get, wanted, fill_cache=fill_cache)

    @forwarded(_shards.Shards.may_contain, "key")
    def may_contain(self) -> None:
        """False only if ``key`` does not exist: :meth:`lsmkv.shards.Shards.may_contain`."""

    @forwarded(_shards.Shards.explain, "key")
    def explain(self) -> None:
        """Explain how a Get works: :meth:`lsmkv.shards.Shards.explain`."""

    @forwarded(_shards.Shards.versions)
    def versions(self) -> None:
        """The numbers of the published versions: :meth:`lsmkv.shards.Shards.versions`."""

    @forwarded(_shards.Shards.refresh)
    def refresh(self) -> None:
        """Switch to the newest version, or to ``version``: :meth:`lsmkv.shards.Shards.refresh`."""

    @forwarded(_shards.Shards.warm)
    def warm(self) -> None:
        """Open all shards now: :meth:`lsmkv.shards.Shards.warm`."""

    @forwarded(_shards.Shards.stats)
    def stats(self) -> None:
        """The counters: :meth:`lsmkv.shards.Shards.stats`."""

    @forwarded(_shards.Shards.verify, long=True)
    def verify(self) -> None:
        """Read every byte of the version: :meth:`lsmkv.shards.Shards.verify`.

        If it is cancelled, it continues in its thread, and ``close`` waits for it.  ``progress`` is
        called in that thread.
        """

    @property
    def version(self) -> int:
        """The number of the version in use."""
        return self._opened()[1].version

    @property
    def document(self) -> VersionDocument:
        """The document of that version: :attr:`lsmkv.shards.Shards.document`."""
        return self._opened()[1].document

    @property
    def closed(self) -> bool:
        """True if it is closed."""
        return self._threads is not None and self._threads.ended

    async def close(self) -> None:
        """Close it after the earlier calls have ended.  It cannot be opened afterwards."""
        if self._threads is None:
            self._threads = CallThreads()
        await super().close()

    def __repr__(self) -> str:
        return f"<lsmkv.aio.Shards {self.url!r}{' (closed)' if self.closed else ''}>"

    def __reduce__(self) -> Never:
        refuse_copy("lsmkv.aio.Shards", "they belong to one event loop: pass their URL")

    def _is_open(self) -> bool:
        return self._source is not None and not self.closed

    def _opened(self) -> tuple[CallThreads, _shards.Shards]:
        if self.closed:
            raise ClosedError(self._NOT_OPEN)
        return super()._opened()

    def _connections(self) -> int:
        return self._limits.connections

    def _made(self) -> _shards.Shards:
        return _shards.Shards(self.url, **self._arguments)
