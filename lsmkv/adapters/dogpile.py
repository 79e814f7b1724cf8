"""A backend for dogpile.cache.

>>> from dogpile.cache import make_region, register_backend
>>> register_backend("lsmkv", "lsmkv.cache.dogpile", "LsmkvBackend")
>>> region = make_region().configure("lsmkv", arguments={"shared": False})
>>> region.get_or_create("a", lambda: 1), region.get("a")
(1, 1)
>>> region.actual_backend.cache.close()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from lsmkv.cache.cache import Cache
from lsmkv.cache.leased import surely
from lsmkv.engine.db.handles.named_leases import NamedLease
from lsmkv.engine.former_paths import keep_paths
from lsmkv.engine.util.signals import deferred

try:
    from dogpile.cache.api import NO_VALUE, CacheBackend, CachedValue
except ImportError as error:
    raise ImportError(
        "lsmkv.cache.dogpile needs it: pip install dogpile.cache", name="dogpile"
    ) from error

__all__ = ["LsmkvBackend"]

_PARTS: Final = 2


class LsmkvBackend(CacheBackend):  # type: ignore[misc]
    """A backend in a directory: ``arguments`` are those of :class:`lsmkv.Cache`.

    Its locks are granted across processes, and released when their process dies.  Values are what
    the codec takes.  A region's ``expiration_time`` leaves old values for the callers that wait;
    ``expire`` among the arguments removes them after that many seconds.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        options = dict(arguments)
        self._expire = options.pop("expire", None)
        self.cache = Cache(options.pop("directory", None), **options)
        """The cache itself."""

    def get(self, key: str) -> Any:
        """The value with its metadata; ``NO_VALUE`` if there is none."""
        stored = self.cache.get(key)
        if not (isinstance(stored, tuple) and len(stored) == _PARTS):
            return NO_VALUE
        return CachedValue(*stored)

    def get_multi(self, keys: Iterable[str]) -> list[Any]:
        """The values of keys."""
        return [self.get(key) for key in keys]

    def set(self, key: str, value: Any) -> None:
        """Store a value with its metadata."""
        self.cache.set(key, (value.payload, dict(value.metadata)), expire=self._expire)

    def set_multi(self, mapping: Mapping[str, Any]) -> None:
        """Store values."""
        for key, value in mapping.items():
            self.set(key, value)

    def delete(self, key: str) -> None:
        """Remove a key, if it is there."""
        self.cache.delete(key)

    def delete_multi(self, keys: Iterable[str]) -> None:
        """Remove keys."""
        for key in keys:
            self.delete(key)

    def get_mutex(self, key: str) -> Mutex:
        """The lock under which one caller computes the value of a key."""
        return Mutex(self.cache, key)


class Mutex:
    """A lock as dogpile.cache calls it."""

    def __init__(self, cache: Cache, key: str) -> None:
        self._cache = cache
        self._key = key
        self._lease: NamedLease | None = None

    def acquire(self, wait: bool = True) -> bool:
        """Take the lock; False if it is not free, and the caller does not wait."""
        lease: NamedLease | None = None
        try:
            with deferred:
                # What was taken without a wait dogpile.cache may release in another thread.
                lease = self._cache._lease(
                    *(b"dogpile", self._key), timeout=None if wait else 0, owned=wait
                )
                self._lease = lease or self._lease
            return lease is not None
        except BaseException:  # perhaps by a signal handler, at the end of the section
            if lease is not None:
                self.release()
            raise

    def release(self) -> None:
        """Release the lock."""
        surely(self._release)

    def _release(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    def locked(self) -> bool:
        """True if the lock is held."""
        with deferred:
            lease = self._cache._lease(b"dogpile", self._key, timeout=0)
            if lease is not None:
                lease.release()
        return lease is None


keep_paths(*(globals()[name] for name in __all__))
