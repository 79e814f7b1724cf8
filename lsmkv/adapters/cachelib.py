"""A cache with the interface of cachelib, for Flask-Caching, Flask-Session and others.

It needs no other package: what takes an object of cachelib takes one of these.
"""

from __future__ import annotations

import os
from typing import Any

from lsmkv.cache.cache import Cache
from lsmkv.engine.former_paths import keep_paths

__all__ = ["LsmkvCache"]


class LsmkvCache:
    """A cache in a directory, with the methods of ``cachelib.BaseCache``.

    ``default_timeout`` is in seconds; a timeout of 0 is none.  Other keywords are those of
    :class:`lsmkv.Cache`, whose costs and errors the methods have.

    >>> cache = LsmkvCache(shared=False)
    >>> cache.set("a", 1), cache.get("a"), cache.inc("a", 2), cache.get_many("a", "b")
    (True, 1, 3, [3, None])
    >>> cache.close()
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        default_timeout: float = 300,
        **options: Any,
    ) -> None:
        self.default_timeout = default_timeout
        self.cache = Cache(directory, **options)
        """The cache itself."""

    def _expire(self, timeout: float | None) -> float | None:
        seconds = self.default_timeout if timeout is None else timeout
        return None if seconds == 0 else seconds

    def get(self, key: str) -> Any:
        """The value of ``key``; None if there is none."""
        return self.cache.get(key)

    def set(self, key: str, value: Any, timeout: float | None = None) -> bool:
        """Store ``value``, and return True."""
        return self.cache.set(key, value, expire=self._expire(timeout))

    def add(self, key: str, value: Any, timeout: float | None = None) -> bool:
        """Store ``value`` unless there is one; True if it was stored."""
        return self.cache.add(key, value, expire=self._expire(timeout))

    def delete(self, key: str) -> bool:
        """Remove ``key``; True if it was there."""
        return bool(self.cache.delete(key))

    def get_many(self, *keys: str) -> list[Any]:
        """The values of keys, None for each that is not there."""
        return [self.get(key) for key in keys]

    def get_dict(self, *keys: str) -> dict[str, Any]:
        """The same, by key."""
        return dict(zip(keys, self.get_many(*keys), strict=True))

    def set_many(self, mapping: dict[str, Any], timeout: float | None = None) -> list[str]:
        """Store all values of a dict; return the keys that were stored."""
        return [key for key, value in mapping.items() if self.set(key, value, timeout)]

    def delete_many(self, *keys: str) -> list[str]:
        """Remove keys; return those that were there."""
        return [key for key in keys if self.delete(key)]

    def has(self, key: str) -> bool:
        """True if ``key`` is there."""
        return key in self.cache

    def clear(self) -> bool:
        """Remove all entries, and return True."""
        self.cache.clear()
        return True

    def inc(self, key: str, delta: int = 1) -> int | None:
        """Add ``delta`` to a number, which begins at 0; atomic over all processes."""
        return int(self.cache.incr(key, delta))

    def dec(self, key: str, delta: int = 1) -> int | None:
        """Subtract ``delta`` from a number."""
        return int(self.cache.incr(key, -delta))

    def close(self) -> None:
        """Close the cache."""
        self.cache.close()


keep_paths(*(globals()[name] for name in __all__))
