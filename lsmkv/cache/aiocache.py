"""A door for readers and type checkers: when it runs, ``lsmkv.cache.aiocache`` is
``lsmkv.adapters.aiocache``.
"""

from __future__ import annotations

from lsmkv.adapters.aiocache import LsmkvCache

__all__ = ["LsmkvCache"]
