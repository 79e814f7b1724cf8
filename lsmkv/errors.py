"""A door for readers and type checkers: at run time ``lsmkv.errors`` is ``lsmkv.engine.errors``
itself.
"""

from __future__ import annotations

from lsmkv.engine.errors import *
