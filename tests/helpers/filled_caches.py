"""Block caches of named values."""

from __future__ import annotations

from typing import Any

from lsmkv.util.block_cache import BlockCache


def filled(capacity: int, names: str) -> BlockCache[str, str]:
    cache = BlockCache[str, str](capacity)
    for name in names:
        cache.put(name, name.upper(), 1)
    return cache


def kept(cache: BlockCache[Any, str], names: str) -> str:
    """Those of ``names`` that are in the cache."""
    return "".join(name for name in names if cache.get(name) is not None)
