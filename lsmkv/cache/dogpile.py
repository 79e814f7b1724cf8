"""A door for readers and type checkers: when it runs, ``lsmkv.cache.dogpile`` is
``lsmkv.adapters.dogpile``.
"""

from __future__ import annotations

from lsmkv.adapters.dogpile import LsmkvBackend

__all__ = ["LsmkvBackend"]
