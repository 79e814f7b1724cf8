"""A cache backend for Django: ``lsmkv.django.LsmkvCache``.

In the settings::

    CACHES = {
        "default": {
            "BACKEND": "lsmkv.django.LsmkvCache",
            "LOCATION": "/var/cache/site",
            "TIMEOUT": 300,
            "OPTIONS": {"size_limit": 1 << 30},
        }
    }

All processes and threads of a site share one directory.  ``OPTIONS`` are the keywords of
:class:`lsmkv.Cache`.  Django itself caches objects, responses for example, so values are pickled by
default; each is signed with a key that is derived from ``SECRET_KEY``, and nothing is unpickled
whose signature is wrong.  ``OPTIONS["codec"]`` is another codec, or the path of one to import.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

from lsmkv.cache.cache import Cache
from lsmkv.cache.codecs import PickleCodec
from lsmkv.cache.leased import Flights
from lsmkv.cache.memoizing import MISSING, Memoized, memoized
from lsmkv.engine.env.place import absolute
from lsmkv.engine.former_paths import keep_paths

try:
    from asgiref.sync import sync_to_async
    from django import conf
    from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
    from django.utils.crypto import salted_hmac
    from django.utils.module_loading import import_string
except ImportError as error:
    raise ImportError("lsmkv.django needs Django: pip install django", name="django") from error

__all__ = ["LsmkvCache"]

P = ParamSpec("P")
R = TypeVar("R")

_caches: dict[str, Cache] = {}
_lock = threading.Lock()


class LsmkvCache(BaseCache):  # type: ignore[misc]
    """A backend of Django's cache framework, with the methods that Django documents.

    Those that ``diskcache.DjangoCache`` adds are included: :meth:`pop`, :meth:`read`,
    :meth:`evict`, :meth:`expire`, :meth:`cull`, :meth:`stats`, :meth:`memoize`, ``tag=`` and
    others.  Also :meth:`transact`.  :meth:`incr`, :meth:`decr`, :meth:`add`, :meth:`incr_version`,
    and the same methods awaited, are atomic over all processes.  Of a key that is a tuple, the
    first item gets Django's prefix and version.
    ``retry`` changes nothing.  Raises what :class:`lsmkv.Cache` raises; costs are those of its
    methods.
    """

    def __init__(self, directory: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        options = dict(params.get("OPTIONS", {}))
        for name in ("MAX_ENTRIES", "CULL_FREQUENCY"):  # the limit is in bytes
            options.pop(name, None)
        self._cache = _cache_in(absolute(directory), options)

    @property
    def cache(self) -> Cache:
        """The cache itself, in which keys have Django's prefix and version."""
        return self._cache

    @property
    def directory(self) -> str:
        """The directory of the cache."""
        return self._cache.directory

    def _key(self, key: Any, version: int | None) -> Any:
        if isinstance(key, tuple) and key:
            return self.make_and_validate_key(key[0], version=version), *key[1:]
        return self.make_and_validate_key(key, version=version)

    def _seconds(self, timeout: Any) -> float | None:
        """Seconds to live; None for ever."""
        if timeout is DEFAULT_TIMEOUT:
            timeout = self.default_timeout
        return None if timeout is None else float(timeout)

    # One key

    def get(
        self,
        key: Any,
        default: Any = None,
        version: int | None = None,
        read: bool = False,
        expire_time: bool = False,
        tag: bool = False,
        retry: bool = False,
    ) -> Any:
        """The value of ``key``, or ``default``; ``read`` and others as for ``Cache.get``."""
        return self._cache.get(self._key(key, version), default, read, expire_time, tag)

    def read(self, key: Any, version: int | None = None) -> Any:
        """:meth:`lsmkv.Cache.read`: the value as a file; ``KeyError`` if there is none."""
        return self._cache.read(self._key(key, version))

    def set(
        self,
        key: Any,
        value: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
        read: bool = False,
        tag: Any = None,
        retry: bool = True,
    ) -> bool:
        """Store ``value``, and return True.  With a timeout of 0 or less, the key is removed.

        With ``read``, ``value`` is a file that is open for reading bytes.
        """
        name, seconds = self._key(key, version), self._seconds(timeout)
        if seconds is not None and seconds <= 0:
            self._cache.delete(name)
            return True
        return self._cache.set(name, value, seconds, read, tag)

    def set_many(
        self, data: dict[Any, Any], timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> list[Any]:
        """Store all values of a dict; return the keys that were not stored, normally none."""
        return [key for key, value in data.items() if not self.set(key, value, timeout, version)]

    def add(
        self,
        key: Any,
        value: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
        read: bool = False,
        tag: Any = None,
        retry: bool = True,
    ) -> bool:
        """Store ``value`` unless there is one; True if it was stored."""
        name, seconds = self._key(key, version), self._seconds(timeout)
        if seconds is not None and seconds <= 0:
            return name not in self._cache
        return self._cache.add(name, value, seconds, read, tag)

    def touch(
        self,
        key: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
        retry: bool = True,
    ) -> bool:
        """Give ``key`` another timeout; True if it is there."""
        name, seconds = self._key(key, version), self._seconds(timeout)
        if seconds is not None and seconds <= 0:
            return self._cache.delete(name)
        return self._cache.touch(name, seconds)

    def delete(self, key: Any, version: int | None = None, retry: bool = True) -> bool:
        """Remove ``key``; True if it was there."""
        return self._cache.delete(self._key(key, version))

    def has_key(self, key: Any, version: int | None = None) -> bool:
        """True if ``key`` is there."""
        return self._key(key, version) in self._cache

    def incr(
        self,
        key: Any,
        delta: int = 1,
        version: int | None = None,
        default: int | None = None,
        retry: bool = True,
    ) -> int:
        """Add ``delta`` to a number, which begins at ``default``.

        ``ValueError`` if the key is not there and there is no ``default``.
        """
        try:
            return int(self._cache.incr(self._key(key, version), delta, default))
        except KeyError:
            raise ValueError(f"Key '{key}' not found") from None

    def decr(
        self,
        key: Any,
        delta: int = 1,
        version: int | None = None,
        default: int | None = None,
        retry: bool = True,
    ) -> int:
        """Subtract ``delta`` from a number: :meth:`incr` of ``-delta``."""
        return self.incr(key, -delta, version, default)

    async def aincr(
        self,
        key: Any,
        delta: int = 1,
        version: int | None = None,
        default: int | None = None,
    ) -> int:
        """:meth:`incr`, awaited.  (Django's own reads and sets, and loses increments.)"""
        made: int = await sync_to_async(self.incr)(key, delta, version, default)
        return made

    async def adecr(
        self,
        key: Any,
        delta: int = 1,
        version: int | None = None,
        default: int | None = None,
    ) -> int:
        """:meth:`decr`, awaited."""
        return await self.aincr(key, -delta, version, default)

    def incr_version(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        """Move ``key`` to another version, with the default timeout; return the new version.

        Of several callers at once, one moves it.  ``ValueError`` if the key is not there.
        """
        before = self.version if version is None else version
        value = self.pop(key, MISSING, before)
        if value is MISSING:
            raise ValueError(f"Key '{key}' not found")
        self.set(key, value, version=before + delta)
        return before + delta

    async def aincr_version(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        """:meth:`incr_version`, awaited."""
        made: int = await sync_to_async(self.incr_version)(key, delta, version)
        return made

    def pop(
        self,
        key: Any,
        default: Any = None,
        version: int | None = None,
        expire_time: bool = False,
        tag: bool = False,
        retry: bool = True,
    ) -> Any:
        """Remove ``key`` and return its value, or ``default``."""
        return self._cache.pop(self._key(key, version), default, expire_time, tag)

    # All keys

    def clear(self) -> int:
        """Remove all entries of the directory, of all prefixes and versions; return how many."""
        return self._cache.clear()

    def evict(self, tag: Any) -> int:
        """Remove the entries with a tag; return how many there were."""
        return self._cache.evict(tag)

    def expire(self) -> int:
        """Remove what has expired; return the number of entries."""
        return self._cache.expire()

    def cull(self) -> int:
        """Remove what has expired or exceeds the limit; return the number of entries."""
        return self._cache.cull()

    def stats(self, enable: bool = True, reset: bool = False) -> tuple[int, int]:
        """:meth:`lsmkv.Cache.stats`: the numbers of hits and misses."""
        return self._cache.stats(enable, reset)

    def transact(self) -> AbstractContextManager[None]:
        """:meth:`lsmkv.Cache.transact`."""
        return self._cache.transact()

    def memoize(
        self,
        name: str | None = None,
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
        typed: bool = False,
        tag: Any = None,
        ignore: Collection[int | str] = (),
        lock: bool = False,
    ) -> Callable[[Callable[P, R]], Memoized[P, R]]:
        """:meth:`lsmkv.Cache.memoize`, with Django's timeout, prefix and version.

        ``f.__cache_key__(...)`` is a key for the methods of this backend.
        """
        if callable(name):
            raise TypeError("name is callable: write @cache.memoize(), with parentheses")
        seconds = self._seconds(timeout)
        store = _Versioned(self, version)

        def decorate(function: Callable[P, R]) -> Memoized[P, R]:
            turns = Flights(lambda: self._cache) if lock else None
            return memoized(store, function, name, typed, seconds, tag, ignore, turns)

        return decorate

    def close(self, **kwargs: Any) -> None:
        """Do nothing: Django calls it after each request.  The process keeps the cache open."""


class _Versioned:
    """The keys of a backend that have one version, for the results of functions."""

    def __init__(self, backend: LsmkvCache, version: int | None) -> None:
        self._backend = backend
        self._version = version

    def get(self, key: Any, default: Any = None) -> Any:
        return self._backend.get(key, default, self._version)

    def set(self, key: Any, value: Any, expire: float | None = None, *, tag: Any = None) -> bool:
        return self._backend.set(key, value, expire, self._version, tag=tag)


def _cache_in(directory: str, options: dict[str, Any]) -> Cache:
    """The cache in a directory, which all threads of this process share."""
    with _lock:
        cache = _caches.get(directory)
        if cache is None or cache.closed:
            codec = options.pop("codec", None)
            if codec is None:
                codec = PickleCodec(key=_signing_key())
            elif isinstance(codec, str):
                codec = import_string(codec)
            options["codec"] = codec() if isinstance(codec, type) else codec
            cache = _caches[directory] = Cache(directory, **options)
        return cache


def _signing_key() -> bytes:
    made: bytes = salted_hmac(
        "lsmkv.django", "values of the cache", secret=conf.settings.SECRET_KEY, algorithm="sha256"
    ).digest()
    return made


keep_paths(*(globals()[name] for name in __all__))
