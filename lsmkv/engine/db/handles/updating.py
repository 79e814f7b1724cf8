"""Update: one call of ``DB.update``, which reads a key, decides, and writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsmkv.engine.util.arguments import BytesLike, as_bytes


class Update:
    """Sets a key to a function's result on its value.  ``ConflictError`` asks for another attempt.

    The first attempt is a Get, and a write that pins nothing: half the cost of a transaction.  It
    also conflicts with the end of a flush, so the later ones are transactions.  With ``sync`` all
    are.
    """

    def __init__(
        self,
        db: Any,  # a DB, which imports this module
        key: bytes,
        function: Callable[[bytes | None], BytesLike | None],
        sync: bool,
    ) -> None:
        self._db = db
        self._key = key
        self._function = function
        self._sync = sync
        self._begun = sync

    def attempt(self) -> bytes | None:
        """The new value, once it is written."""
        if self._begun:
            return self._in_transaction()
        self._begun = True
        return self._at_once()

    def _at_once(self) -> bytes | None:
        db, key = self._db, self._key
        writer = db._open_writer()  # before the sequence: see write_unless_changed
        sequence = db.sequence
        old: bytes | None = db.get(key)
        new = self._function(old)
        if new is old:
            return old
        value = None if new is None else as_bytes(new, "value")
        writer.write_unless_changed([(key, value)], sequence, [key])
        return value

    def _in_transaction(self) -> bytes | None:
        with self._db.transaction(sync=self._sync) as transaction:
            old: bytes | None = transaction.get(self._key)
            new = self._function(old)
            if new is old and not self._sync:
                return old
            value = None if new is None else as_bytes(new, "value")
            if value is not None:
                transaction.put(self._key, value)
            elif old is not None:
                transaction.delete(self._key)
            return value
