"""The methods by which all readers in :mod:`lsmkv.aio` read.

``DB``, ``Snapshot``, ``Shards`` and ``PrefixedDB`` derive from :class:`Readable`, and
``Transaction`` from :class:`Scannable`.  They read an object of the engine (:data:`Source`), which
only their threads call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, Literal, TypeVar, Unpack, overload

from lsmkv.aio.iterator import CHUNK, Iterator
from lsmkv.aio.threads import CallThreads
from lsmkv.engine.db import db as _db
from lsmkv.engine.db.handles import prefixed as _prefixed
from lsmkv.engine.db.handles import snapshot as _snapshot
from lsmkv.engine.db.read.iterator import IteratorArguments, RangeArguments
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.shards import shards as _shards

T = TypeVar("T")

Source = _db.DB | _snapshot.Snapshot | _prefixed.PrefixedDB[_db.DB] | _shards.Shards
"""The object that is read."""


class Scannable(ABC):
    """An object that can be iterated over once it is open."""

    @abstractmethod
    def _iterator(self, chunk: int, arguments: IteratorArguments) -> Iterator[Any]:
        """An iterator for these arguments.  Raises ``ClosedError`` unless it is open."""

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        chunk: int = CHUNK,
        **arguments: Unpack[RangeArguments],
    ) -> Iterator[tuple[bytes, bytes]]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[True] = True,
        include_value: Literal[False],
        chunk: int = CHUNK,
        **arguments: Unpack[RangeArguments],
    ) -> Iterator[bytes]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[False],
        include_value: Literal[True] = True,
        chunk: int = CHUNK,
        **arguments: Unpack[RangeArguments],
    ) -> Iterator[bytes]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[False],
        include_value: Literal[False],
        chunk: int = CHUNK,
        **arguments: Unpack[RangeArguments],
    ) -> Iterator[None]: ...

    @overload
    def iterator(
        self, *, chunk: int = CHUNK, **arguments: Unpack[IteratorArguments]
    ) -> Iterator[Any]: ...

    def iterator(
        self, *, chunk: int = CHUNK, **arguments: Unpack[IteratorArguments]
    ) -> Iterator[Any]:
        """An iterator over all entries or a range, for ``async for``.

        The keywords are those of :meth:`lsmkv.DB.iterator`; one trip fetches at most ``chunk``
        entries, and about a megabyte.  A store's iterator sees the store as it is at its first
        trip.  Wrong arguments raise immediately: ``TypeError``, or ``ValueError`` for a ``chunk``
        below 1 or a ``limit`` below 0.
        """
        return self._iterator(chunk, arguments)

    def __aiter__(self) -> Iterator[tuple[bytes, bytes]]:
        """:meth:`iterator` over all entries."""
        return self.iterator()


class Readable(Scannable):
    """An object that can be read once it is open."""

    @abstractmethod
    def _opened(self) -> tuple[CallThreads, Source]:
        """The threads that read, and what they read.  Raises ``ClosedError`` unless it is open."""

    def _iterator(self, chunk: int, arguments: IteratorArguments) -> Iterator[Any]:
        threads, source = self._opened()
        return Iterator(threads, source.iterator, chunk, arguments)

    @overload
    async def get(
        self,
        key: BytesLike,
        default: None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | None: ...

    @overload
    async def get(
        self,
        key: BytesLike,
        default: T,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T: ...

    async def get(
        self,
        key: BytesLike,
        default: T | None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T | None:
        """The value of ``key``, or ``default``: :meth:`lsmkv.DB.get`."""
        threads, source = self._opened()
        read = partial(source.get, as_bytes(key, "key"), fill_cache=fill_cache)
        value = await threads.run(read)
        return default if value is None else value

    async def contains(self, key: BytesLike) -> bool:
        """Return True if it has ``key``: ``key in db``, which cannot be awaited."""
        threads, source = self._opened()
        return await threads.run(source.__contains__, as_bytes(key, "key"))
