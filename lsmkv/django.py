"""A door for readers and type checkers: at run time ``lsmkv.django`` is
``lsmkv.adapters.django`` itself.
"""

from __future__ import annotations

from lsmkv.adapters.django import *
