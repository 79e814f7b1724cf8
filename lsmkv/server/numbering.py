"""Numbers that are never given out twice, not even after a restart."""

from __future__ import annotations

from lsmkv.server.encoding import CEILINGS, U64
from lsmkv.server.records import Records

_STEP = 1 << 16


class Numbering:
    """A 64-bit counter.  Only a ceiling is stored, once for every ``step`` numbers.

    After a restart it continues at the ceiling.  So no number is given out twice, but some are
    skipped.
    """

    def __init__(self, records: Records, name: bytes, step: int = _STEP) -> None:
        self._records = records
        self._key = CEILINGS + name
        self._step = step
        self._ceiling = 0
        self.reload()

    def reload(self) -> None:
        """Continue at the stored ceiling, or where it was if the ceiling is unchanged."""
        stored = self._records.get(self._key)
        ceiling = 1 if stored is None else U64.unpack(stored)[0]
        if ceiling != self._ceiling:  # otherwise each failing command would cost 65,536 numbers
            self._next = self._ceiling = ceiling

    def take(self, count: int = 1) -> int:
        """The next number, 1 or more; of ``count`` numbers the first, up to ``step``."""
        number = self._next
        if number + count > self._ceiling:
            self._ceiling = number + self._step
            self._records.put(self._key, U64.pack(self._ceiling))
        self._next = number + count
        return number
