"""A door for readers and type checkers: at run time ``lsmkv.indexeddb`` is
``lsmkv.engine.indexeddb`` itself.
"""

from __future__ import annotations

from lsmkv.engine.indexeddb import *
