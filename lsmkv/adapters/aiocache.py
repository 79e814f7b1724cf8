"""A backend for aiocache, whose calls run in threads: :class:`LsmkvCache`."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from lsmkv.cache.cache import Cache
from lsmkv.engine.former_paths import keep_paths

try:
    from aiocache.base import BaseCache
    from aiocache.serializers import NullSerializer
except ImportError as error:
    raise ImportError(
        "lsmkv.cache.aiocache needs it: pip install aiocache", name="aiocache"
    ) from error

__all__ = ["LsmkvCache"]


class LsmkvCache(BaseCache):  # type: ignore[misc]
    """A backend in a directory.

    ``options`` are those of :class:`lsmkv.Cache`, and other keywords those of aiocache: ``ttl``,
    ``namespace``, ``timeout``, ``plugins``.  Values are what the codec takes.
    """

    NAME = "lsmkv"

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"serializer": NullSerializer()} | kwargs)
        self.cache = Cache(directory, **(options or {}))
        """The cache itself."""

    async def _get(self, key: Any, encoding: Any = "utf-8", _conn: Any = None) -> Any:
        return await asyncio.to_thread(self.cache.get, key)

    _gets = _get

    async def _multi_get(self, keys: Any, encoding: Any = "utf-8", _conn: Any = None) -> Any:
        return await asyncio.to_thread(lambda: [self.cache.get(key) for key in keys])

    async def _set(
        self, key: Any, value: Any, ttl: Any = None, _cas_token: Any = None, _conn: Any = None
    ) -> Any:
        def change() -> bool:
            if _cas_token is None:
                return self.cache.set(key, value, expire=ttl)
            return self.cache._set_equal(key, _cas_token, value, ttl)

        return await asyncio.to_thread(change)

    async def _multi_set(self, pairs: Any, ttl: Any = None, _conn: Any = None) -> bool:
        def change() -> None:
            for key, value in pairs:
                self.cache.set(key, value, expire=ttl)

        await asyncio.to_thread(change)
        return True

    async def _add(self, key: Any, value: Any, ttl: Any = None, _conn: Any = None) -> bool:
        if not await asyncio.to_thread(self.cache.add, key, value, ttl):
            raise ValueError(f"Key {key} already exists, use .set to update the value")
        return True

    async def _exists(self, key: Any, _conn: Any = None) -> bool:
        return await asyncio.to_thread(self.cache.__contains__, key)

    async def _increment(self, key: Any, delta: int, _conn: Any = None) -> int:
        try:
            return int(await asyncio.to_thread(self.cache.incr, key, delta))
        except TypeError:
            raise TypeError("Value is not an integer") from None

    async def _expire(self, key: Any, ttl: Any, _conn: Any = None) -> bool:
        return await asyncio.to_thread(self.cache.touch, key, ttl or None)

    async def _delete(self, key: Any, _conn: Any = None) -> int:
        return int(await asyncio.to_thread(self.cache.delete, key))

    async def _clear(self, namespace: str | None = None, _conn: Any = None) -> bool:
        def clear() -> None:
            if not namespace:
                self.cache.clear()
                return
            for key in list(self.cache):
                if isinstance(key, str) and key.startswith(namespace):
                    self.cache.delete(key)

        await asyncio.to_thread(clear)
        return True

    async def _raw(
        self, command: str, *args: Any, encoding: Any = None, _conn: Any = None, **kwargs: Any
    ) -> Any:
        return await asyncio.to_thread(getattr(self.cache, command), *args, **kwargs)

    async def _redlock_release(self, key: Any, value: Any) -> int:
        return int(await asyncio.to_thread(self.cache._delete_equal, key, value))

    async def _close(self, *args: Any, _conn: Any = None, **kwargs: Any) -> None:
        await asyncio.to_thread(self.cache.close)


keep_paths(*(globals()[name] for name in __all__))
