"""UnchangedKeys: the condition of a write that depends on keys which were read just before.

A transaction keeps its sequence pinned, and its check may look into tables
(``handles/transaction.py``).  This is the cheap way for a read and a write in one step: nothing
is pinned, and the memtables must have all that came after the sequence.  A table that has appeared
since counts as a change.
"""

from __future__ import annotations

from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.errors import ConflictError
from lsmkv.engine.format.keys import MAX_SEQUENCE, sequence_in


class UnchangedKeys:
    """The condition that none of some keys was written after a sequence."""

    def __init__(self, store: Store, sequence: int, keys: list[bytes]) -> None:
        self._store = store
        self._sequence: int = sequence
        self._keys = keys

    def require(self) -> None:
        """Raise :class:`~lsmkv.errors.ConflictError` if one was, or perhaps was.

        Caller holds the writers' lock.  Cost: a lookup of each key in the memtables.
        """
        store = self._store
        sequence = self._sequence
        view = store.open_view()
        if sequence < store.installed_at:  # asked after the view was taken
            raise ConflictError("a table has appeared since the keys were read")
        for key in self._keys:
            tagged = view.memtable.get(key, MAX_SEQUENCE)
            if tagged is None and view.immutable is not None:
                tagged = view.immutable.get(key, MAX_SEQUENCE)
            if tagged is not None and sequence_in(tagged) > sequence:
                raise ConflictError(f"{key!r} was written since it was read")
