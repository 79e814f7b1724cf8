"""Expiring keys by time: a queue in the store's key order.

One short scan finds the earliest.  It begins at a bound before which there are no entries, so it
skips the deletions of keys that expired earlier.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.server.encoding import EXPIRY, EXPIRY_BOUND, U32, U64, successor
from lsmkv.server.records import Records

_HEAD = 1 + 8 + 4


class ExpiryQueue:
    """The times of keys that expire, each with the id of its database and its key.

    ``mark`` begins the names of its entries, and the bound stands under ``bound_name``.
    """

    def __init__(
        self, records: Records, mark: bytes = EXPIRY, bound_name: bytes = EXPIRY_BOUND
    ) -> None:
        self._records = records
        self._mark = mark
        self._end = successor(mark)
        self._bound_name = bound_name
        self.reload()

    def reload(self) -> None:
        """Use the bound that is stored."""
        self._bound = self._records.get(self._bound_name) or self._mark
        self._earliest: int | None = 0
        """No key is due before this time; None if the queue was found empty."""

    def add(self, expires: int, id_: int, key: bytes) -> None:
        """Set the expiration time of a key, in milliseconds since 1970."""
        name = self._mark + U64.pack(expires) + U32.pack(id_) + key
        self._records.put(name, b"")
        if name < self._bound:  # the clock was set back
            self._set_bound(name)
        if self._earliest is None or expires < self._earliest:
            self._earliest = expires

    def remove(self, expires: int, id_: int, key: bytes) -> None:
        """Remove the entry of a key that gets another time, or none, or is removed."""
        self._records.delete(self._mark + U64.pack(expires) + U32.pack(id_) + key)

    def all(self) -> Iterator[tuple[int, int, bytes]]:
        """Every time with the id of its database and its key, earliest first."""
        for name, _ in self._records.scan(self._bound, self._end):
            yield U64.unpack_from(name, 1)[0], U32.unpack_from(name, 9)[0], name[_HEAD:]

    def take_due(self, now: int, limit: int) -> list[tuple[int, int, bytes]]:
        """Take out up to ``limit`` keys that are due, earliest first.

        Costs nothing while none is due.  The next scan begins where this one ends, at the first key
        that is left, so each deleted entry is passed over only once.
        """
        if self._earliest is None or self._earliest > now:
            return []
        due: list[tuple[int, int, bytes]] = []
        self._earliest = None
        for name, _ in self._records.scan(self._bound, self._end):
            (expires,) = U64.unpack_from(name, 1)
            if expires > now or len(due) == limit:
                self._earliest = expires
                self._bound = name
                break
            self._records.delete(name)
            due.append((expires, U32.unpack_from(name, 9)[0], name[_HEAD:]))
        else:
            if due:
                last, id_, key = due[-1]
                self._bound = self._mark + U64.pack(last) + U32.pack(id_) + key
        if due:
            self._set_bound(self._bound)
        return due

    def _set_bound(self, name: bytes) -> None:
        self._bound = name
        self._records.put(self._bound_name, name)
