"""Counters of a cache that several processes change: :class:`Counters`.

Each handle has its own key, which it writes in the batch of every change; the counters of the
cache are the sum.  So a kill loses nothing that a batch has counted, and two processes never write
the same counter.  A handle adds its part to that of handle 0 when it is closed.  Parts of handles
that were killed are added when a cache is opened and there are many.  If the handle is alive after
all, its next batch conflicts, and it begins again at 0.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, Self

from lsmkv.cache.keys import COUNTERS
from lsmkv.engine.errors import CorruptionError

_FIELDS: Final = struct.Struct(">qqqq")
BASE: Final = COUNTERS + bytes(4)
"""The key of handle 0, to which the parts of all others are added in the end."""


class Counters(NamedTuple):
    """Counts of entries, of their bytes, and of hits and misses."""

    entries: int = 0
    size: int = 0
    hits: int = 0
    misses: int = 0

    def plus(self, other: Counters) -> Counters:
        """The sum."""
        return Counters(
            self[0] + other[0], self[1] + other[1], self[2] + other[2], self[3] + other[3]
        )

    def encode(self) -> bytes:
        """The bytes of a handle's part."""
        try:
            return _FIELDS.pack(*self)
        except struct.error as error:  # no count gets that far
            raise CorruptionError(f"counters beyond 63 bits: {tuple(self)}") from error

    @classmethod
    def decode(cls, data: bytes | None) -> Self:
        """The part in such bytes; zeros if there are none."""
        if data is None:
            return cls()
        if len(data) != _FIELDS.size:
            raise CorruptionError(f"counters of {len(data)} bytes")
        return cls(*_FIELDS.unpack(data))


ZERO: Final = Counters()
