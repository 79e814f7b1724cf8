"""Decorators that limit the calls of a function, over all processes: :func:`throttle`,
:func:`barrier`."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from lsmkv.cache.cache import Cache
from lsmkv.cache.memoizing import own_name

P = ParamSpec("P")
R = TypeVar("R")

_ONE: Final = 1 - 1e-9
"""A call, except for the rounding of times."""


class LockFactory(Protocol):
    """:class:`Lock`, :class:`RLock`, :class:`BoundedSemaphore`, or what is called like them."""

    def __call__(
        self, cache: Cache, key: Any, *, expire: float | None = None, tag: Any = None
    ) -> AbstractContextManager[Any]: ...


def throttle(
    cache: Cache,
    count: int,
    seconds: float,
    name: str | None = None,
    expire: float | None = None,
    tag: Any = None,
    time_func: Callable[[], float] = time.time,
    sleep_func: Callable[[float], Any] = time.sleep,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Limit the calls of a function to ``count`` in ``seconds``, by all processes together.

    Calls are saved up, ``count`` of them at most; a call too many waits for its turn.  A process
    that starts later has those that are left.  The function's name, or ``name``, is the key of what
    is stored, with ``expire`` and ``tag``; the cache should have ``eviction="none"``.  Cost of a
    call: a transaction of the cache, with a read and a write.

    >>> import lsmkv
    >>> with lsmkv.Cache(shared=False, eviction="none") as cache:
    ...     waits = []
    ...     clock = lambda: sum(waits)
    ...     @throttle(cache, 2, 1, time_func=clock, sleep_func=waits.append)
    ...     def ask(): pass
    ...     for _ in range(4):
    ...         ask()
    ...     waits
    [0.5, 0.5]
    """
    rate = count / float(seconds)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        key = own_name(function) if name is None else name
        # Another process may have begun before: its calls count.
        cache.add(key, (time_func(), count), expire=expire, tag=tag)

        def delay() -> float:
            """Take one of the calls that are left, or return the wait for the next one."""
            with cache.transact(retry=True):
                now = time_func()
                last, left = cache.get(key, default=(now, count))
                if last > now:  # the clock was set back
                    last = now
                    cache.set(key, (now, left), expire=expire, tag=tag)
                left = min(left + (now - last) * rate, float(count))
                if left < _ONE:
                    return float((1 - left) / rate)
                cache.set(key, (now, max(left - 1, 0.0)), expire=expire, tag=tag)
                return 0.0

        @functools.wraps(function)
        def limited(*args: P.args, **kwargs: P.kwargs) -> R:
            while (wait := delay()) > 0:
                sleep_func(wait)
            return function(*args, **kwargs)

        return limited

    return decorate


def barrier(
    cache: Cache,
    lock_factory: LockFactory,
    name: str | None = None,
    expire: float | None = None,
    tag: Any = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Run a function under a lock that ``lock_factory`` makes: one call of all processes at a time.

    The function's name, or ``name``, is the lock's key; ``expire`` and ``tag`` are given to it.
    Cost of a call: the lock's.

    >>> import lsmkv
    >>> from lsmkv.cache.recipes import Lock
    >>> with lsmkv.Cache(shared=False) as cache:
    ...     @barrier(cache, Lock)
    ...     def work(number): return number + 1
    ...     work(1)
    2
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        key = own_name(function) if name is None else name
        lock = lock_factory(cache, key, expire=expire, tag=tag)

        @functools.wraps(function)
        def alone(*args: P.args, **kwargs: P.kwargs) -> R:
            with lock:
                return function(*args, **kwargs)

        return alone

    return decorate
