"""One of the databases of a store, and its record: ``docs/serve.md`` describes that."""

from __future__ import annotations

from lsmkv.server.encoding import DATABASE, KEY, U32, U64

DATABASES = 16


class Database:
    """One of the 16 databases.  Its keys are stored under its id, which FLUSHDB replaces."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.name = DATABASE + bytes((index,))
        """The key of its record."""
        self.id = 0
        self.size = 0
        """The number of keys, including expired ones that are not removed yet."""
        self.prefix = b""

    def load(self, id_: int, size: int) -> None:
        self.id = id_
        self.size = size
        self.prefix = KEY + U32.pack(id_)

    def encode(self) -> bytes:
        """Its record."""
        return U32.pack(self.id) + U64.pack(self.size)

    def decode(self, record: bytes) -> None:
        """Load what a record says."""
        self.load(U32.unpack_from(record)[0], U64.unpack_from(record, 4)[0])
