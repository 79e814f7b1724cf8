"""The times at which fields of a hash expire: by field, and in the order of the times.

Both stand under the version of the hash, so they are removed and renamed with it.  The entry of the
hash has the earliest time: ``Keyspace.note_field_times`` updates it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lsmkv.server.encoding import U64, Entry, field_order_prefix, field_time_prefix
from lsmkv.server.records import Records


class FieldTimes:
    """A view of the times of a hash, whose entry it does not change."""

    def __init__(self, records: Records, entry: Entry) -> None:
        self._records = records
        self._by_field = field_time_prefix(entry)
        self._order = field_order_prefix(entry)

    def get(self, field: bytes) -> int:
        """The expiration time of a field in milliseconds since 1970; 0 if it has none.  A Get."""
        record = self._records.get(self._by_field + field)
        return 0 if record is None else int(U64.unpack(record)[0])

    def set(self, field: bytes, time: int) -> bool:
        """Set the time of a field; 0 for never.  Returns whether it had one before."""
        old = self.get(field)
        if old:
            self._records.delete(self._order + U64.pack(old) + field)
        if time:
            self._records.put(self._by_field + field, U64.pack(time))
            self._records.put(self._order + U64.pack(time) + field, b"")
        elif old:
            self._records.delete(self._by_field + field)
        return old > 0

    def earliest(self) -> int:
        """The earliest time; 0 if no field expires.  A seek."""
        for name, _ in self._records.under(self._order):
            return int(U64.unpack_from(name)[0])
        return 0

    def due(self, now: int, limit: int) -> list[bytes]:
        """Up to ``limit`` fields whose time has come."""
        return list(islice(self._due(now), limit))

    def _due(self, now: int) -> Iterator[bytes]:
        for name, _ in self._records.under(self._order):
            if U64.unpack_from(name)[0] > now:
                return
            yield name[8:]
