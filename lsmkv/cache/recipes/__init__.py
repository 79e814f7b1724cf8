"""Recipes: containers and locks that any number of threads and processes share, in a cache.

Names, arguments and results are those of diskcache's recipes.  What differs: locks wait without
polling, are granted in the order of arrival, and are released when the process that holds them
dies.

>>> import lsmkv
>>> from lsmkv.cache.recipes import Lock
>>> with lsmkv.Cache(shared=False) as cache:
...     with Lock(cache, "report"):
...         cache["report"] = "made by one at a time"
"""

from __future__ import annotations

from lsmkv.cache.recipes.averager import Averager
from lsmkv.cache.recipes.deque import Deque
from lsmkv.cache.recipes.index import Index
from lsmkv.cache.recipes.limiting import barrier, throttle
from lsmkv.cache.recipes.locks import BoundedSemaphore, Lock, RLock
from lsmkv.cache.recipes.stampede import memoize_stampede

__all__ = [
    "Averager",
    "BoundedSemaphore",
    "Deque",
    "Index",
    "Lock",
    "RLock",
    "barrier",
    "memoize_stampede",
    "throttle",
]
