"""Numbers that are given out once, also across a restart."""

from __future__ import annotations

from lsmkv.server.encoding import CEILINGS, U64
from lsmkv.server.overlay import Overlay

_STEP = 1 << 16


class Numbering:
    """A counter of 64 bits, of which only a ceiling is stored, once for ``step`` numbers.

    A new start goes on at the ceiling.  Numbers are never given out twice, but some are left out.
    """

    def __init__(self, overlay: Overlay, name: bytes, step: int = _STEP) -> None:
        self._overlay = overlay
        self._key = CEILINGS + name
        self._step = step
        self._ceiling = 0
        self.reload()

    def reload(self) -> None:
        """Go on at the ceiling that is stored, or where it was if that is still the ceiling."""
        stored = self._overlay.get(self._key)
        ceiling = 1 if stored is None else U64.unpack(stored)[0]
        if ceiling != self._ceiling:  # else each command that fails would cost 65,536 numbers
            self._next = self._ceiling = ceiling

    def take(self) -> int:
        """The next number, 1 or more."""
        number = self._next
        if number >= self._ceiling:
            self._ceiling = number + self._step
            self._overlay.put(self._key, U64.pack(self._ceiling))
        self._next = number + 1
        return number
