"""A door for readers and type checkers: when it runs, ``lsmkv.django`` is
``lsmkv.adapters.django``.
"""

from __future__ import annotations

from lsmkv.adapters.django import LsmkvCache

__all__ = ["LsmkvCache"]
