"""Locks across threads and processes: :class:`Lock`, :class:`RLock`, :class:`BoundedSemaphore`.

They are leases with names, at the owner of the cache's store: nothing is stored, nothing can be
evicted, and a waiting caller sleeps.  A process that dies releases all that it holds.

If a signal handler raises in ``acquire``, as for Ctrl-C, the lock is not held; if it does in
``release``, the lock is released, or it is still held and can be released again.  The latter is
rare: the signal came just before the call began.  A ``with`` block can also end like that.

Two ``with`` blocks that wait for each other's locks would wait for ever: the second one raises
:class:`~lsmkv.DeadlockError`, across threads and processes.  A lock counts for that if its thread
is going to release it: by the end of a ``with`` block, or since it is an :class:`RLock`; and if it
does not ``expire``.  For all others there is ``acquire(timeout=...)``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock as ThreadLock
from typing import Any, Final
from weakref import WeakKeyDictionary

from lsmkv.cache.cache import Cache
from lsmkv.cache.keys import encode_key
from lsmkv.cache.leased import surely, thread_holder
from lsmkv.engine.db.handles.named_leases import NamedLease
from lsmkv.engine.util.signals import deferred


class _Held:
    """The leases that the recipes of one cache hold, by kind, key and holder."""

    def __init__(self) -> None:
        self._lock = ThreadLock()
        self._leases: dict[tuple[Any, ...], list[NamedLease]] = {}

    def add(self, key: tuple[Any, ...], lease: NamedLease) -> None:
        with self._lock:
            self._leases.setdefault(key, []).append(lease)

    def release(self, key: tuple[Any, ...]) -> bool:
        """Release one that is still held; False if there is none."""
        lease = self._pop(key)
        if lease is not None:
            lease.release()
        return lease is not None

    def _pop(self, key: tuple[Any, ...]) -> NamedLease | None:
        with self._lock:
            leases = self._leases.get(key, [])
            while leases:
                lease = leases.pop()
                if not leases:
                    del self._leases[key]
                if lease.held:
                    return lease
            return None


_held: Final[WeakKeyDictionary[Cache, _Held]] = WeakKeyDictionary()


class _Named:
    """The base class of the locks."""

    _kind = b""
    _permits = 1
    _unheld: str | None = None
    """The message of a release that finds nothing held; None for no error."""

    def __init__(
        self, cache: Cache, key: Any, expire: float | None = None, tag: Any = None
    ) -> None:
        self._cache = cache
        self._key = key
        self._expire = expire
        self._held = _held.setdefault(cache, _Held())

    def _holder(self) -> bytes | None:
        """The identity of this holder; None if it is this process."""
        return None

    def _held_as(self) -> tuple[Any, ...]:
        return self._kind, encode_key(self._key, self._cache.codec), self._holder()

    def _acquire(self, timeout: float | None, owned: bool) -> bool:
        """Wait for the lock; False after the timeout.  If it is ``owned``, only this thread is
        going to release it: otherwise another may, and so end a wait of this thread."""
        key = self._held_as()
        lease: NamedLease | None = None
        try:
            with deferred:
                lease = self._cache._lease(
                    self._kind,
                    self._key,
                    holder=self._holder(),
                    limit=self._expire,
                    timeout=timeout,
                    permits=self._permits,
                    owned=owned and self._expire is None,
                )
                if lease is not None:
                    self._held.add(key, lease)
            return lease is not None
        except BaseException:  # perhaps by a signal handler, at the end of the section
            if lease is not None:
                surely(partial(self._held.release, key))
            raise

    def _release(self) -> None:
        if not self._held.release(self._held_as()) and self._unheld is not None:
            raise AssertionError(self._unheld)

    def acquire(self, timeout: float | None = None) -> bool:
        """Wait for the lock."""
        return self._acquire(timeout, False)

    def release(self) -> None:
        """Release it."""
        surely(self._release)

    def __enter__(self) -> None:
        self._acquire(None, True)

    def __exit__(self, *error: object) -> None:
        surely(self._release)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle the lock as its cache and its key; what this process holds stays with it."""
        return type(self), (self._cache, self._key, self._expire)


class Lock(_Named):
    """A lock that one thread of all processes holds.

    Any thread of the process that holds it may release it, by any ``Lock`` with its cache and key.
    ``expire`` is the number of seconds after which others get it in any case; ``tag`` changes
    nothing, since nothing is stored.  Cost: at a member of a shared store, a message to its owner
    and back.  Raises :class:`~lsmkv.ClosedError` once the cache is closed, and
    :class:`~lsmkv.DeadlockError` where ``with`` blocks wait for each other.

    >>> import lsmkv
    >>> with lsmkv.Cache(shared=False) as cache:
    ...     lock = Lock(cache, "report")
    ...     with lock:
    ...         held = lock.locked()
    ...     held, lock.locked()
    (True, False)
    """

    _kind = b"Lock"

    def acquire(self, timeout: float | None = None) -> bool:
        """Wait for the lock, after those that wait already; False if it is not free within
        ``timeout`` seconds."""
        return self._acquire(timeout, False)

    def release(self) -> None:
        """Release the lock.  Without effect if this process does not hold it."""
        surely(self._release)

    def locked(self) -> bool:
        """True if the lock is held at this moment.  Cost: as for :meth:`acquire`."""
        with deferred:
            lease = self._cache._lease(self._kind, self._key, timeout=0, limit=self._expire)
            if lease is not None:
                lease.release()
        return lease is None


class RLock(_Named):
    """A lock that its thread may take again, and releases as often.

    Arguments, costs and errors are those of :class:`Lock`.

    >>> import lsmkv
    >>> with lsmkv.Cache(shared=False) as cache:
    ...     lock = RLock(cache, "user 123")
    ...     with lock, lock:
    ...         pass
    ...     lock.release()
    Traceback (most recent call last):
    AssertionError: cannot release un-acquired lock
    """

    _kind = b"RLock"
    _unheld = "cannot release un-acquired lock"

    def _holder(self) -> bytes | None:
        return thread_holder()

    def acquire(self, timeout: float | None = None) -> bool:
        """Wait for the lock, unless this thread has it; False if it is not free within ``timeout``
        seconds."""
        return self._acquire(timeout, True)

    def release(self) -> None:
        """Release it once; ``AssertionError`` if this thread does not hold it."""
        surely(self._release)


class BoundedSemaphore(_Named):
    """A lock that up to ``value`` callers may hold at the same time.

    All users of the key must pass the same ``value``.  Any thread of a process that holds it may
    release it.  Other arguments, costs and errors are those of :class:`Lock`.

    >>> import lsmkv
    >>> with lsmkv.Cache(shared=False) as cache:
    ...     connections = BoundedSemaphore(cache, "connections", value=2)
    ...     with connections, connections:
    ...         pass
    ...     connections.release()
    Traceback (most recent call last):
    AssertionError: cannot release un-acquired semaphore
    """

    _kind = b"BoundedSemaphore"
    _unheld = "cannot release un-acquired semaphore"

    def __init__(
        self,
        cache: Cache,
        key: Any,
        value: int = 1,
        expire: float | None = None,
        tag: Any = None,
    ) -> None:
        super().__init__(cache, key, expire, tag)
        self._permits = value

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return type(self), (self._cache, self._key, self._permits, self._expire)

    def acquire(self, timeout: float | None = None) -> bool:
        """Wait until fewer than ``value`` callers hold it; False if that takes more than
        ``timeout`` seconds."""
        return self._acquire(timeout, False)

    def release(self) -> None:
        """Release it once; ``AssertionError`` if this process does not hold it."""
        surely(self._release)
