"""A door for readers and type checkers: at run time ``lsmkv.cache.cachelib`` is
``lsmkv.adapters.cachelib`` itself.
"""

from __future__ import annotations

from lsmkv.adapters.cachelib import *
