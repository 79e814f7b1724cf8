"""Work of a cache under named leases: :class:`LeasedCache`, and :class:`Flights`.

The leases are those of the store (``engine/db/handles/named_leases.py``): its owner grants them in
the order of arrival, across threads and processes, and they end with the process that holds them.
"""

from __future__ import annotations

import errno
import hashlib
import reprlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

from lsmkv.cache.keyed import KeyedCache
from lsmkv.cache.keys import encode_key
from lsmkv.cache.memoizing import MISSING
from lsmkv.engine.db.handles.named_leases import Caller, NamedLease, Wait, thread_caller
from lsmkv.engine.errors import ConflictError, IOError
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
    def transact(
        self,
        retry: bool = False,
        limit: float | None = LONGEST,
        timeout: float | None = None,
    ) -> Iterator[None]:
        """A ``with`` block that no other caller of this method is in, in any thread or process.

        Callers get in one after the other, in the order of their calls; a block inside a block of
        the same thread waits for nobody.  A process that dies leaves its block.  A block that lasts
        longer than ``limit`` seconds no longer keeps others out, and raises
        :class:`~lsmkv.ConflictError` at its end.  Each write in the block happens immediately, and
        stays if the block raises.  Writes of callers that use no ``transact`` are not kept out.
        ``retry`` changes nothing.  A caller that does not get in within ``timeout`` seconds raises
        :class:`~lsmkv.IOError` with ``errno.ETIMEDOUT``, a ``TimeoutError``; one that never would,
        since it holds what those in the block wait for, raises :class:`~lsmkv.DeadlockError`
        immediately.  Cost: at a member of a shared store, a message to its owner and back.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     with cache.transact():
        ...         total, count = cache.incr("total", 5), cache.incr("count")
        ...     total, count
        (5, 1)
        """
        with self._holding(b"transact", None, limit, timeout, strict=True):
            yield

    @contextmanager
    def _holding(
        self,
        kind: bytes,
        key: Any,
        limit: float | None,
        timeout: float | None,
        *,
        strict: bool = False,
    ) -> Iterator[None]:
        """A ``with`` block of the calling thread, which has the lease of a kind on a key; if
        ``strict``, it raises :class:`~lsmkv.ConflictError` when the lease has ended before it."""
        lease: NamedLease | None = None
        try:
            with deferred:
                lease = self._lease(
                    *(kind, key), holder=thread_holder(), limit=limit, timeout=timeout, owned=True
                )
            if lease is None:
                raise timed_out(kind, key, timeout)
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
        wait: Wait | None = None,
        owned: bool = False,
    ) -> NamedLease | None:
        """Wait for the lease of a kind on a key; None if it does not come in time.

        The holder is the calling thread, or the caller of ``wait``; if it is ``owned``, nobody else
        releases it.
        """
        return self._db._hold(
            lease_name(kind, encode_key(key, self._codec)),
            holder=holder,
            timeout=timeout,
            limit=limit,
            permits=permits,
            label=_label(kind, key),
            wait=wait,
            owned=owned,
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
    """Return the error of a transaction that has exceeded its limit."""
    return ConflictError(
        f"a transaction has lasted for longer than its limit of {limit} seconds: others may"
        " have run at the same time"
    )


def timed_out(kind: bytes, key: Any, timeout: float | None) -> IOError:
    """Return the error of a wait that has timed out."""
    return IOError(errno.ETIMEDOUT, f"waited {timeout} seconds for {_label(kind, key)}")


_short: Final = reprlib.Repr()
_short.maxstring = _short.maxother = 80
_short.maxtuple = 12


def _label(kind: bytes, key: Any) -> str:
    """Return the name of a lease for messages; it does not raise if the ``repr`` of a key does."""
    return kind.decode() if key is None else f"{kind.decode()} {_short.repr(key)}"


def lease_name(kind: bytes, key: bytes) -> bytes:
    """The name of a lease."""
    if len(key) > _LONGEST_KEY:
        key = hashlib.sha256(key).digest()
    return b"cache:%s:%s" % (kind, key)


class Flights:
    """Lets one caller at a time compute a result that several want: ``memoize(lock=True)``.

    A task that waits while it computes another result may be part of a deadlock: it waits as
    threads and processes do, where deadlocks are found, in a separate thread.  All others wait in
    their loop, which costs nothing.
    """

    def __init__(self, opened: Callable[[], LeasedCache], timeout: float | None = None) -> None:
        self._opened = opened
        self._timeout = timeout
        self._locks: dict[tuple[Any, Any], tuple[asyncio.Lock, int]] = {}  # by loop and key

    def call(self, key: Any, find: Callable[[], Any], compute: Callable[[], Any]) -> Any:
        """Return the result of ``find`` once it is this caller's turn, or else of ``compute``."""
        with self._opened()._holding(_MEMOIZE, key, None, self._timeout):
            result = find()
            return compute() if result is MISSING else result

    async def call_async(
        self, key: Any, find: Callable[[], Awaitable[Any]], compute: Callable[[], Awaitable[Any]]
    ) -> Any:
        """The same, for a task: the tasks of a loop wait for each other there, and the first of
        them for other threads and processes."""
        import asyncio  # noqa: PLC0415 - 6 MB, which a program with a loop has loaded

        if task_caller().leases:
            return await self._compute(key, find, compute, self._timeout)
        loop = asyncio.get_running_loop()
        until = None if self._timeout is None else loop.time() + self._timeout
        place = loop, encode_key(key, self._opened()._codec)
        lock, users = self._locks.get(place, (None, 0))
        lock = asyncio.Lock() if lock is None else lock
        self._locks[place] = lock, users + 1
        try:
            try:
                async with asyncio.timeout_at(until):
                    await lock.acquire()
            except TimeoutError:
                raise timed_out(_MEMOIZE, key, self._timeout) from None
            try:
                result = await find()
                if result is not MISSING:
                    return result
                left = None if until is None else max(0.0, until - loop.time())
                return await self._compute(key, find, compute, left)
            finally:
                lock.release()
        finally:
            lock, users = self._locks.pop(place)
            if users > 1:
                self._locks[place] = lock, users - 1

    async def _compute(
        self,
        key: Any,
        find: Callable[[], Awaitable[Any]],
        compute: Callable[[], Awaitable[Any]],
        timeout: float | None,
    ) -> Any:
        lease = await lease_of_task(self._opened(), _MEMOIZE, key, timeout=timeout)
        try:
            result = await find()
            return await compute() if result is MISSING else result
        finally:
            surely(lease.release)


_MEMOIZE: Final = b"memoize"
_callers: Final[WeakKeyDictionary[asyncio.Task[Any], Caller]] = WeakKeyDictionary()


def task_caller() -> Caller:
    """The running task; it does not continue while its thread waits."""
    import asyncio  # noqa: PLC0415 - as above

    task = asyncio.current_task()
    assert task is not None
    return _callers.setdefault(task, Caller(thread_caller()))


async def lease_of_task(
    cache: LeasedCache,
    kind: bytes,
    key: Any,
    *,
    holder: bytes | None = None,
    limit: float | None = None,
    timeout: float | None = None,
) -> NamedLease:
    """Wait for a lease, in a separate thread if it is not free: those of the loop's pool may be
    what its holder waits for."""
    wait = Wait(task_caller())
    take = partial(cache._lease, kind, key, holder=holder, limit=limit, wait=wait, owned=True)
    lease: NamedLease | None = None
    try:
        with deferred:
            lease = take(timeout=0)
        if lease is not None:
            return lease
    except BaseException:  # perhaps by a signal handler, at the end of the section
        if lease is not None:
            surely(lease.release)
        raise
    import asyncio  # noqa: PLC0415 - as above

    loop = asyncio.get_running_loop()
    future: asyncio.Future[NamedLease] = loop.create_future()

    def run() -> None:
        lease: NamedLease | None = None
        failure: BaseException | None = None
        try:
            lease = take(timeout=timeout)
        except BaseException as error:
            failure = error

        def tell() -> None:
            if future.done():  # cancelled while it waited
                if lease is not None:
                    lease.release()
            elif lease is not None:
                future.set_result(lease)
            else:
                future.set_exception(failure or timed_out(kind, key, timeout))

        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:  # the loop is closed
            if lease is not None:
                lease.release()

    threading.Thread(target=run, daemon=True).start()
    try:
        return await future
    except BaseException:
        wait.withdraw()  # a task that is cancelled waits no longer, and may hold what others want
        if future.done() and not future.cancelled() and future.exception() is None:
            surely(future.result().release)  # cancelled just after it was granted
        raise
