"""The cursors of SCAN, HSCAN, SSCAN and ZSCAN: numbers that stand for positions in the key order.

Every scan walks over the keys in order, so a key that exists throughout is returned exactly once,
whatever else changes.  A cursor is a 64-bit number.  Its position is a record in the store, so a
scan continues after a restart of the server.  The last 65,536 cursors are kept.  Three stores keep
them in memory only: one that is open for reading only, one that is served with ``--raw``, and one
that takes no writes because its disk is full.  Their scans start again after a restart.
"""

from __future__ import annotations

import random
import re

from lsmkv.server.encoding import CURSOR, U16, U32, U64
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.resp import CommandError

_KEPT = 1 << 16
_NUMBER = re.compile(rb"(?:[+-]?[0-9]+)?")
"""The whitespace and sign that C's strtoul accepts, and Redis with it."""


def cursor_number(text: bytes) -> int:
    """The number of a cursor.  Raises ``CommandError`` unless it fits in 64 bits."""
    digits = text.partition(b"\0")[0]
    short = _NUMBER.fullmatch(digits) and len(digits) < 100
    if not short or abs(int(digits or b"0")) >= 1 << 64:
        raise CommandError("ERR invalid cursor")
    return int(digits or b"0") % (1 << 64)


class Cursors:
    """Positions by their numbers."""

    def __init__(self, space: Keyspace) -> None:
        self._space = space
        self._in_memory: dict[bytes, bytes] = {}
        self._count = random.getrandbits(60)
        """Differs after each start, so a cursor from before a restart is unknown.  Far above the
        stored cursors, which count from 1."""

    def make(self, scope: bytes, position: bytes) -> int:
        """Make a cursor for a scan of ``scope`` that continues at ``position``."""
        stored = self._space.stores_cursors and not self._space.reading
        if stored:
            number = self._space.cursors.take()
        else:
            self._count += 1
            number = self._count
        name = CURSOR + U16.pack(number % _KEPT)
        record = U64.pack(number) + U32.pack(len(scope)) + scope + position
        if stored:
            self._space.records.put(name, record)
        else:
            self._in_memory[name] = record
        return number

    def position(self, number: int, scope: bytes) -> bytes:
        """The position at which a scan continues; empty at its beginning.

        With a cursor of another scope, or one that is no longer kept, the scan starts again, so no
        key is missed.
        """
        if number == 0:
            return b""
        name = CURSOR + U16.pack(number % _KEPT)
        record = self._in_memory.get(name)
        if record is None or U64.unpack_from(record)[0] != number:
            record = self._space.records.get(name) if self._space.stores_cursors else None
            if record is None or U64.unpack_from(record)[0] != number:
                return b""
        (length,) = U32.unpack_from(record, 8)
        if record[12 : 12 + length] != scope:
            return b""
        return record[12 + length :]
