"""Samples of what iterators read: tables over which scans go again and again are merged.

Gets charge the tables that they search without success (:mod:`lsmkv.engine.db.read.reader`).  A
scan has no such misses: it reads each table that overlaps its range.  So one key in about a
mebibyte that iterators read is sampled.  If two tables cover it, the newer one is charged, and
merged into the next level once it has no seeks left.  (Source: LevelDB, ``db/db_iter.cc`` and
``Version::RecordReadSample`` in ``db/version_set.cc``.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import MAX_SEQUENCE

if TYPE_CHECKING:
    from mypy_extensions import i64

PERIOD: Final = 1 << 20
"""Bytes of keys and values between two samples."""


class ReadSamples:
    """The samples of one store, which is open for writing.  Threads share it without a lock: one
    sample more or less makes no difference."""

    def __init__(self, compact: Callable[[], None]) -> None:
        """``compact`` is called when a table has used up its seeks."""
        self._compact = compact
        self._left: i64 = PERIOD

    def read(self, pairs: list[Any], version: Version, order: KeyOrder) -> None:
        """Count pairs that an iterator has read, as many bytes each as the first one has, and
        charge a table of the current ``version`` if a sample is due."""
        key, value = pairs[0]
        self._left -= len(pairs) * (len(key) + len(value))
        if self._left > 0:
            return
        self._left = PERIOD
        sort_key = order.of(key)
        first = version.next_candidate(0, sort_key, MAX_SEQUENCE)
        if first == 0 or version.next_candidate(first, sort_key, MAX_SEQUENCE) == 0:
            return
        if version.charge_seek(first):
            self._compact()
