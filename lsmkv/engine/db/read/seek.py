"""A seek of an observed store: it ends with the first chunk that an iterator reads from its place.

A seek happens when an iterator looks for an entry at a place that it has not reached by
reading on: it searches every table that may hold the entry.  Steps from there read on, and are not
reported.
"""

from __future__ import annotations

from typing import Any

from lsmkv.engine.db.read.internal_iterator import InternalIterator
from lsmkv.engine.db.tree.listener import CallListener
from lsmkv.engine.format.key_order import Position


class ReportedSeek(InternalIterator):
    """The chunks of a source; the first one ends the seek."""

    def __init__(
        self,
        source: InternalIterator,
        place: Position | None,
        started: int,
        back: bool,
        listener: CallListener,
    ) -> None:
        self._source = source
        self._key = b"" if place is None else place.user_key
        self._started = started
        self._back = back
        self._listener: CallListener | None = listener

    def next_chunk(self) -> list[Any]:
        """The next pairs."""
        pairs = self._source.next_chunk()
        listener = self._listener
        if listener is not None:
            self._listener = None
            value = pairs[-1 if self._back else 0][1] if pairs else None
            listener.sought(self._key, self._started, value)
        return pairs
