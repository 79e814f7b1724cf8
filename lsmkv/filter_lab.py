"""A door for readers and type checkers: at run time ``lsmkv.filter_lab`` is
``lsmkv.tools.filter_lab`` itself.
"""

from __future__ import annotations

from lsmkv.tools.filter_lab import *
