"""The methods that all readers in :mod:`lsmkv.aio` share: opening and reading.

``DB``, ``Snapshot`` and ``Shards`` derive from :class:`Openable`, ``PrefixedDB`` from
:class:`Readable`, and ``Transaction`` from :class:`Scannable`.  They read an object of the engine
(:data:`Source`), which only their threads call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack, overload

from lsmkv.aio.iterator import CHUNK, Iterator
from lsmkv.aio.threads import CallThreads
from lsmkv.db import db as _db
from lsmkv.db.handles import prefixed as _prefixed
from lsmkv.db.handles import snapshot as _snapshot
from lsmkv.db.read.iterator import IteratorArguments, RangeArguments
from lsmkv.shards import shards as _shards
from lsmkv.util.arguments import BytesLike, as_bytes

T = TypeVar("T")

Source = _db.DB | _snapshot.Snapshot | _prefixed.PrefixedDB[_db.DB] | _shards.Shards
"""What is read."""


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
        trip.  Wrong arguments raise at once: ``TypeError``, or ``ValueError`` for a ``chunk`` below
        1 or a ``limit`` below 0.
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


class Openable(Readable):
    """An object that ``async with`` or ``await`` opens for reading."""

    @abstractmethod
    async def open(self) -> Self:
        """Open it, as ``async with`` and ``await`` do."""

    @abstractmethod
    async def close(self) -> None:
        """Close it, as the end of ``async with`` does.  A second close has no effect."""

    @abstractmethod
    def _is_open(self) -> bool:
        """Whether it is open."""

    async def __aenter__(self) -> Self:
        """Open it, unless ``await`` has done so."""
        return self if self._is_open() else await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.open().__await__()
