"""A door for readers and type checkers: at run time ``lsmkv.repair`` is ``lsmkv.files.repair``
itself.
"""

from __future__ import annotations

from lsmkv.files.repair import *
