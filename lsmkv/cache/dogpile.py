"""A door for readers and type checkers: at run time ``lsmkv.cache.dogpile`` is
``lsmkv.adapters.dogpile`` itself.
"""

from __future__ import annotations

from lsmkv.adapters.dogpile import *
