"""One of the databases of a store, and its record: ``docs/reference/serve.md`` describes that."""

from __future__ import annotations

from lsmkv.server.encoding import DATABASE, KEY, U32, U64

DATABASES = 16
_SUM = 16
"""Bytes of the sum of times."""


Counts = tuple[int, int, int, int]
"""The changing fields of a database: its id, size, ``expiring`` and ``times``."""


class Database:
    """One of the 16 databases.  Its keys are stored under its id, which FLUSHDB replaces."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.name = DATABASE + bytes((index,))
        """The key of its record."""
        self.id = 0
        self.size = 0
        """The number of keys, including expired ones that are not removed yet."""
        self.expiring = 0
        """The number of keys that expire."""
        self.times = 0
        """The sum of these times, in milliseconds since 1970."""
        self.prefix = b""

    def load(self, counts: Counts) -> None:
        self.id, self.size, self.expiring, self.times = counts
        self.prefix = KEY + U32.pack(self.id)

    @property
    def counts(self) -> Counts:
        """For :meth:`load`."""
        return self.id, self.size, self.expiring, self.times

    def encode(self) -> bytes:
        """Its record."""
        sizes = U32.pack(self.id) + U64.pack(self.size) + U64.pack(self.expiring)
        return sizes + self.times.to_bytes(_SUM, "big")

    def decode(self, record: bytes) -> bool:
        """Load what a record says.  Returns whether it has the expiring keys: an older release
        leaves them out."""
        (id_,), (size,) = U32.unpack_from(record), U64.unpack_from(record, 4)
        if len(record) < 20 + _SUM:
            self.load((id_, size, 0, 0))
            return False
        (expiring,) = U64.unpack_from(record, 12)
        self.load((id_, size, expiring, int.from_bytes(record[20 : 20 + _SUM], "big")))
        return True
