"""A door for readers and type checkers: when it runs, ``lsmkv.indexeddb`` is
``lsmkv.engine.indexeddb``.
"""

from __future__ import annotations

from lsmkv.engine.indexeddb import Date, DecodedKey, IndexedDBComparator, decode_key

__all__ = ["Date", "DecodedKey", "IndexedDBComparator", "decode_key"]
