"""Results that are computed again before they expire: :func:`memoize_stampede`.

With plain expiry all callers miss at the same moment, and all compute.  Here each hit decides by
chance whether to compute early, the more likely the nearer the expiry and the longer the last
computation has taken.  Source of the rule: A. Vattani, F. Chierichetti, K. Lowenstein, "Optimal
Probabilistic Cache Stampede Prevention", VLDB 8(8), 2015.  ``Cache.memoize(lock=True)`` is the
alternative: the callers wait for the one that computes.
"""

from __future__ import annotations

import functools
import math
import random
import threading
import time
from collections.abc import Callable, Collection
from typing import Any, Final, ParamSpec, TypeVar, cast

from lsmkv.cache.cache import Cache
from lsmkv.cache.memoizing import MISSING, Memoized, key_maker

P = ParamSpec("P")
R = TypeVar("R")

_TIMED: Final = "result and seconds"
"""The last item of a key: what is stored is no result of ``memoize``."""
_MARK: Final = "being computed"
"""The extra item in the key that marks an early computation in progress."""


def memoize_stampede(
    cache: Cache,
    expire: float,
    name: str | None = None,
    typed: bool = False,
    tag: Any = None,
    beta: float = 1,
    ignore: Collection[int | str] = (),
) -> Callable[[Callable[P, R]], Memoized[P, R]]:
    """A decorator that keeps results for ``expire`` seconds, and computes them again a bit earlier.

    An early computation runs in a thread, while callers get the previous result.
    ``beta`` above 1 makes that earlier, below 1 later.  Other arguments are those of
    :meth:`lsmkv.Cache.memoize`.  Cost of a hit: a read.

    >>> import lsmkv
    >>> with lsmkv.Cache(shared=False) as cache:
    ...     @memoize_stampede(cache, expire=60)
    ...     def square(number: int) -> int:
    ...         print("computing")
    ...         return number * number
    ...     square(3), square(3), square.__cache_key__(3) in cache
    computing
    (9, 9, True)
    """
    if callable(expire):
        raise TypeError("expire is callable: write @memoize_stampede(cache, expire=...)")

    def decorate(function: Callable[P, R]) -> Memoized[P, R]:
        key_of_call = key_maker(function, name, typed, ignore)

        def cache_key(*args: P.args, **kwargs: P.kwargs) -> tuple[Any, ...]:
            return (*key_of_call(*args, **kwargs), _TIMED)

        @functools.wraps(function)
        def calls(*args: P.args, **kwargs: P.kwargs) -> R:
            def compute() -> R:
                begun = time.monotonic()
                result = function(*args, **kwargs)
                cache.set(key, (result, time.monotonic() - begun), expire=expire, tag=tag)
                return result

            key = cache_key(*args, **kwargs)
            found, expiry = cache.get(key, default=MISSING, expire_time=True)
            if found is MISSING:
                return compute()
            result, seconds = found
            early = -seconds * beta * math.log(1.0 - random.random())
            if expiry is not None and early >= expiry - cache._clock():
                mark = (*key, _MARK)
                if cache.add(mark, None, expire=max(seconds, 0.001)):
                    threading.Thread(target=compute, daemon=True).start()
            return cast(R, result)

        wrapper: Any = calls
        wrapper.__cache_key__ = cache_key
        return cast("Memoized[P, R]", wrapper)

    return decorate
