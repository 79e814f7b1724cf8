"""Keys by the time when they expire: a queue in the order of the store's keys.

The earliest are found by one short scan.  It begins at a bound before which nothing stands, so that
it does not go over the deleted entries of keys that have expired before.
"""

from __future__ import annotations

from lsmkv.server.encoding import EXPIRY, EXPIRY_BOUND, U32, U64
from lsmkv.server.overlay import Overlay

_HEAD = 1 + 8 + 4
_END = bytes((EXPIRY[0] + 1,))


class ExpiryQueue:
    """The times of keys that expire, each with the id of its database and its key."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self.reload()

    def reload(self) -> None:
        """Go by the bound that is stored."""
        self._bound = self._overlay.get(EXPIRY_BOUND) or EXPIRY
        self._earliest: int | None = 0
        """Nothing is due before this time; None if the queue was seen to be empty."""

    def add(self, expires: int, id_: int, key: bytes) -> None:
        """Let a key expire at a time, in milliseconds since 1970."""
        name = EXPIRY + U64.pack(expires) + U32.pack(id_) + key
        self._overlay.put(name, b"")
        if name < self._bound:  # the clock was set back
            self._set_bound(name)
        if self._earliest is None or expires < self._earliest:
            self._earliest = expires

    def remove(self, expires: int, id_: int, key: bytes) -> None:
        """The key has another time, or none, or is removed."""
        self._overlay.delete(EXPIRY + U64.pack(expires) + U32.pack(id_) + key)

    def take_due(self, now: int, limit: int) -> list[tuple[int, int, bytes]]:
        """Take out up to ``limit`` of those whose time has come, earliest first.

        Costs nothing while none is due.  The next scan begins where this one ends, at the first
        that is left: entries that were deleted before their time are passed over once, too.
        """
        if self._earliest is None or self._earliest > now:
            return []
        due: list[tuple[int, int, bytes]] = []
        self._earliest = None
        for name, _ in self._overlay.scan(self._bound, _END):
            (expires,) = U64.unpack_from(name, 1)
            if expires > now or len(due) == limit:
                self._earliest = expires
                self._bound = name
                break
            self._overlay.delete(name)
            due.append((expires, U32.unpack_from(name, 9)[0], name[_HEAD:]))
        else:
            if due:
                last, id_, key = due[-1]
                self._bound = EXPIRY + U64.pack(last) + U32.pack(id_) + key
        if due:
            self._set_bound(self._bound)
        return due

    def _set_bound(self, name: bytes) -> None:
        self._bound = name
        self._overlay.put(EXPIRY_BOUND, name)
