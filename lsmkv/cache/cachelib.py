"""A door for readers and type checkers: when it runs, ``lsmkv.cache.cachelib`` is
``lsmkv.adapters.cachelib``.
"""

from __future__ import annotations

from lsmkv.adapters.cachelib import LsmkvCache

__all__ = ["LsmkvCache"]
