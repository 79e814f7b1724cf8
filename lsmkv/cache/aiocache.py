"""A door for readers and type checkers: at run time ``lsmkv.cache.aiocache`` is
``lsmkv.adapters.aiocache`` itself.
"""

from __future__ import annotations

from lsmkv.adapters.aiocache import *
