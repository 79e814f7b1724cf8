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
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from lsmkv.cache.cache import Cache
from lsmkv.cache.codecs import PickleCodec
from lsmkv.env.place import absolute

try:
    from django import conf
    from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
    from django.utils.crypto import salted_hmac
    from django.utils.module_loading import import_string
except ImportError as error:
    raise ImportError("lsmkv.django needs Django: pip install django", name="django") from error

__all__ = ["LsmkvCache"]

_caches: dict[str, Cache] = {}
_lock = threading.Lock()


class LsmkvCache(BaseCache):  # type: ignore[misc]
    """A backend of Django's cache framework, with the methods that Django documents.

    Also :meth:`pop`, :meth:`evict`, :meth:`cull`, :meth:`memoize`, :meth:`transact`, and ``tag=``
    for :meth:`set` and :meth:`add`.  :meth:`incr`, :meth:`decr` and :meth:`add` are atomic over all
    processes.  Raises what :class:`lsmkv.Cache` raises; costs are those of its methods.
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

    def _key(self, key: Any, version: int | None) -> Any:
        return self.make_and_validate_key(key, version=version)

    def _seconds(self, timeout: Any) -> float | None:
        """Seconds to live; None for ever."""
        if timeout is DEFAULT_TIMEOUT:
            timeout = self.default_timeout
        return None if timeout is None else float(timeout)

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """The value of ``key``, or ``default``."""
        return self._cache.get(self._key(key, version), default)

    def set(
        self,
        key: Any,
        value: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
        tag: Any = None,
    ) -> None:
        """Store ``value``.  With a timeout of 0 or less, the key is removed."""
        name, seconds = self._key(key, version), self._seconds(timeout)
        if seconds is not None and seconds <= 0:
            self._cache.delete(name)
        else:
            self._cache.set(name, value, expire=seconds, tag=tag)

    def add(
        self,
        key: Any,
        value: Any,
        timeout: Any = DEFAULT_TIMEOUT,
        version: int | None = None,
        tag: Any = None,
    ) -> bool:
        """Store ``value`` unless there is one; whether it was stored."""
        name, seconds = self._key(key, version), self._seconds(timeout)
        if seconds is not None and seconds <= 0:
            return name not in self._cache
        return self._cache.add(name, value, expire=seconds, tag=tag)

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Give ``key`` another timeout; whether it is there."""
        name, seconds = self._key(key, version), self._seconds(timeout)
        if seconds is not None and seconds <= 0:
            return bool(self._cache.delete(name))
        return self._cache.touch(name, expire=seconds)

    def delete(self, key: Any, version: int | None = None) -> bool:
        """Remove ``key``; whether it was there."""
        return bool(self._cache.delete(self._key(key, version)))

    def has_key(self, key: Any, version: int | None = None) -> bool:
        """Whether ``key`` is there."""
        return self._key(key, version) in self._cache

    def incr(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        """Add ``delta`` to a number; ``ValueError`` if the key is not there."""
        try:
            return int(self._cache.incr(self._key(key, version), delta, default=None))
        except KeyError:
            raise ValueError(f"Key '{key}' not found") from None

    def pop(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """Remove ``key`` and return its value, or ``default``."""
        return self._cache.pop(self._key(key, version), default)

    def clear(self) -> None:
        """Remove all entries of the directory, of all prefixes and versions."""
        self._cache.clear()

    def evict(self, tag: Any) -> int:
        """Remove the entries with a tag; how many there were."""
        return self._cache.evict(tag)

    def cull(self) -> int:
        """Remove what has expired, and what is above the limit; how many entries."""
        return self._cache.cull()

    def transact(self) -> AbstractContextManager[None]:
        """:meth:`lsmkv.Cache.transact`."""
        return self._cache.transact()

    def memoize(
        self,
        name: str | None = None,
        timeout: Any = DEFAULT_TIMEOUT,
        tag: Any = None,
        lock: bool = False,
    ) -> Callable[[Callable[..., Any]], Any]:
        """:meth:`lsmkv.Cache.memoize`, with Django's timeout."""
        return self._cache.memoize(name, expire=self._seconds(timeout), tag=tag, lock=lock)

    def close(self, **kwargs: Any) -> None:
        """Do nothing: Django calls it after each request.  The process keeps the cache open."""


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
