"""Opening and closing: what ``async with`` and ``await`` do.

``Iterator`` and ``Batches`` derive from :class:`Closing`; ``Snapshot`` from :class:`Openable`; and
``DB``, ``Cache`` and ``Shards`` from :class:`Opened`, which have their own threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from types import TracebackType
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from lsmkv.aio.threads import CALL_THREADS, CallThreads
from lsmkv.engine.errors import ClosedError
from lsmkv.engine.util.call_site import CallSite, called_at


class Source(Protocol):
    """An object of the engine that threads open, use and close."""

    @property
    def closed(self) -> bool:
        """True if it is closed."""
        ...

    def close(self) -> None:
        """Close it.  A second call has no effect."""
        ...


S = TypeVar("S", bound=Source)


class Closing(ABC):
    """An object that the end of ``async with`` closes."""

    @abstractmethod
    async def close(self) -> None:
        """Close it, as the end of ``async with`` does.  A second close has no effect."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class Openable(Closing):
    """An object that ``async with`` or ``await`` opens."""

    @abstractmethod
    async def open(self) -> Self:
        """Open it, as ``async with`` and ``await`` do."""

    @abstractmethod
    def _is_open(self) -> bool:
        """True if it is open."""

    async def __aenter__(self) -> Self:
        """Open it, unless ``await`` has done so."""
        return self if self._is_open() else await self.open()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.open().__await__()


class Opened(Openable, Generic[S]):
    """An object of the engine (:class:`Source`) and the threads that alone use it."""

    _ONLY_ONCE: ClassVar[str]
    """The message of a second opening."""
    _NOT_OPEN: ClassVar[str]
    """The message of a call before the opening."""

    _source: S | None = None
    _threads: CallThreads | None = None
    _site: CallSite | None = None
    """The call that made it, which warnings of the opening show: it opens in another thread."""

    async def open(self) -> Self:
        """Open it, as ``async with`` and ``await`` do.  A second call raises ``ValueError``.

        If it is cancelled, it closes what it opened.  Other errors, and costs, are those of the
        plain class.
        """
        if self._threads is not None:
            raise ValueError(self._ONLY_ONCE)
        try:
            threads = self._threads = CallThreads(self._connections())
            await self._open(threads)
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """Close it and end its threads.  A second close has no effect.

        New calls are refused immediately.  Calls that were made before end first, except
        ``compact_range``, which ends with :class:`~lsmkv.ClosedError`; then a store's log is
        synced.  If it is cancelled, it closes everything before the cancellation goes on.
        """
        if self._threads is not None:
            await self._threads.end(self._close_in_thread)

    @property
    def closed(self) -> bool:
        """True if it is closed, or not open yet."""
        threads, source = self._threads, self._source
        return source is None or source.closed or threads is None or threads.ended

    def _is_open(self) -> bool:
        return not self.closed

    def _opened(self) -> tuple[CallThreads, S]:
        """The threads and the object.  Raises ``ClosedError`` before it is open."""
        if self._threads is None or self._source is None:
            raise ClosedError(self._NOT_OPEN)
        return self._threads, self._source

    def _connections(self) -> int:
        """Number of calls that may run at once."""
        return CALL_THREADS

    async def _open(self, threads: CallThreads) -> None:
        await threads.run(self._open_in_thread)

    def _open_in_thread(self) -> None:
        self._source = called_at(self._site, self._made)

    @abstractmethod
    def _made(self) -> S:
        """The object, opened.  Called in a thread."""

    def _close_in_thread(self) -> None:
        if self._source is not None:
            self._source.close()
