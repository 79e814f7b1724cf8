"""What a cache does under leases with names: :class:`LeasedCache`, and :class:`Flights`.

The leases are those of the store (``engine/db/handles/named_leases.py``): its owner grants them in
the order of arrival, across threads and processes, and they end with the process that holds them.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lsmkv.cache.keyed import KeyedCache
from lsmkv.cache.keys import encode_key
from lsmkv.cache.memoizing import MISSING
from lsmkv.engine.db.handles.named_leases import NamedLease
from lsmkv.engine.errors import ConflictError
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import get_ident

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

LONGEST: Final = 60.0
"""Seconds that a transaction may last by default."""
_LONGEST_KEY: Final = 200
"""Bytes of a key in the name of a lease; a longer one is there by its hash."""


def thread_holder() -> bytes:
    """The calling thread, as the holder of a lease."""
    return b"%d" % get_ident()


class LeasedCache(KeyedCache):
    """The part of :class:`lsmkv.Cache` that excludes other callers."""

    @contextmanager
    def transact(self, retry: bool = False, limit: float | None = LONGEST) -> Iterator[None]:
        """A ``with`` block that no other caller of this method is in, in any thread or process.

        Callers get in one after the other, in the order in which they have come; a block inside a
        block of the same thread waits for nobody.  A process that dies leaves its block.  A block
        that lasts longer than ``limit`` seconds no longer keeps others out, and raises
        :class:`~lsmkv.ConflictError` at its end.  Each write in the block happens at once, and
        stays if the block raises.  Writes of callers that use no ``transact`` are not kept out.
        ``retry`` changes nothing.  Cost: at a member of a shared store, a message to its owner and
        back.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     with cache.transact():
        ...         total, count = cache.incr("total", 5), cache.incr("count")
        ...     total, count
        (5, 1)
        """
        with self._holding(b"transact", None, limit, strict=True):
            yield

    @contextmanager
    def _holding(
        self, kind: bytes, key: Any, limit: float | None = None, *, strict: bool = False
    ) -> Iterator[None]:
        """A ``with`` block of the calling thread, which has the lease of a kind on a key; if
        ``strict``, it raises :class:`~lsmkv.ConflictError` when the lease has ended before it."""
        lease: NamedLease | None = None
        try:
            with deferred:
                lease = self._lease(kind, key, holder=thread_holder(), limit=limit)
            yield
            with deferred:
                assert lease is not None
                held = lease.release()
                lease = None
        except BaseException:
            if lease is not None:
                surely(lease.release)
            raise
        if strict and not held and not self.closed:
            raise outlasted(limit)

    def _lease(
        self,
        kind: bytes,
        key: Any,
        *,
        holder: bytes | None = None,
        timeout: float | None = None,
        limit: float | None = None,
        permits: int = 1,
    ) -> NamedLease | None:
        """Wait for the lease of a kind on a key; None if it does not come in time."""
        return self._db._hold(
            lease_name(kind, encode_key(key, self._codec)),
            holder=holder,
            timeout=timeout,
            limit=limit,
            permits=permits,
        )


def surely(release: Callable[[], T]) -> T:
    """Call a function that releases something, in a section; even if a signal handler raises
    before the section has begun."""
    began = False
    try:
        with deferred:
            began = True
            return release()
    finally:
        if not began:
            surely(release)


def outlasted(limit: float | None) -> ConflictError:
    """What a transaction raises that has ended too late."""
    return ConflictError(
        f"a transaction has lasted for longer than its limit of {limit} seconds: others may"
        " have been in theirs meanwhile"
    )


def lease_name(kind: bytes, key: bytes) -> bytes:
    """The name of a lease."""
    if len(key) > _LONGEST_KEY:
        key = hashlib.sha256(key).digest()
    return b"cache:%s:%s" % (kind, key)


class Flights:
    """Lets one caller at a time compute a result that several want: ``memoize(lock=True)``."""

    def __init__(self, opened: Callable[[], LeasedCache]) -> None:
        self._opened = opened
        self._locks: dict[tuple[Any, Any], tuple[asyncio.Lock, int]] = {}  # by loop and key

    def call(self, key: Any, find: Callable[[], Any], compute: Callable[[], Any]) -> Any:
        """What ``find`` finds once it is this caller's turn, or else what ``compute`` returns."""
        with self._opened()._holding(b"memoize", key):
            result = find()
            return compute() if result is MISSING else result

    async def call_async(
        self, key: Any, find: Callable[[], Awaitable[Any]], compute: Callable[[], Awaitable[Any]]
    ) -> Any:
        """The same, for a task: the tasks of a loop wait for each other there, and the first of
        them for other threads and processes."""
        import asyncio  # noqa: PLC0415 - 6 MB, which a program with a loop has loaded

        place = asyncio.get_running_loop(), encode_key(key, self._opened()._codec)
        lock, users = self._locks.get(place, (None, 0))
        lock = asyncio.Lock() if lock is None else lock
        self._locks[place] = lock, users + 1
        try:
            async with lock:
                result = await find()
                if result is not MISSING:
                    return result
                lease = await lease_of_task(self._opened(), b"memoize", key)
                try:
                    result = await find()
                    return await compute() if result is MISSING else result
                finally:
                    surely(lease.release)
        finally:
            lock, users = self._locks.pop(place)
            if users > 1:
                self._locks[place] = lock, users - 1


async def lease_of_task(
    cache: LeasedCache,
    kind: bytes,
    key: Any,
    *,
    holder: bytes | None = None,
    limit: float | None = None,
) -> NamedLease:
    """Wait for a lease, in a thread of its own if it is not free: those of the loop's pool may be
    what its holder waits for."""
    lease: NamedLease | None = None
    try:
        with deferred:
            lease = cache._lease(kind, key, holder=holder, timeout=0, limit=limit)
        if lease is not None:
            return lease
    except BaseException:  # perhaps by a signal handler, at the end of the section
        if lease is not None:
            surely(lease.release)
        raise
    import asyncio  # noqa: PLC0415 - as above

    loop = asyncio.get_running_loop()
    future: asyncio.Future[NamedLease] = loop.create_future()

    def wait() -> None:
        lease: NamedLease | None = None
        failure: BaseException | None = None
        try:
            lease = cache._lease(kind, key, holder=holder, limit=limit)
        except BaseException as error:
            failure = error

        def tell() -> None:
            if future.done():  # cancelled meanwhile
                if lease is not None:
                    lease.release()
            elif lease is not None:
                future.set_result(lease)
            else:
                assert failure is not None
                future.set_exception(failure)

        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:  # the loop is closed
            if lease is not None:
                lease.release()

    threading.Thread(target=wait, daemon=True).start()
    return await future
