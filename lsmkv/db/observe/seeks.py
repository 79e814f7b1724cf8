"""The scan of an iterator that is observed: it times each seek.

A seek is what happens when an iterator looks for an entry at a place that it has not come to by
reading on: it searches every table that may hold the entry.  Steps from there read on, and are not
noted.
"""

from __future__ import annotations

import time
from typing import Any

from lsmkv.db.observe.observer import Observer
from lsmkv.db.observe.trace import SEEK
from lsmkv.db.read.internal_iterator import InternalIterator
from lsmkv.db.read.scan import Scan
from lsmkv.format.key_order import Position


class ObservedScan(Scan):
    """A scan that goes where another one goes, and notes where it begins."""

    def __init__(self, scan: Scan, observer: Observer) -> None:
        super().__init__(scan._store, scan._read, scan._bounds, scan._fill_cache)
        self._observer = observer

    def forward(self, start: Position | None) -> InternalIterator:
        """As in the base class."""
        started = time.perf_counter_ns()
        return _Seek(super().forward(start), start, started, False, self._observer)

    def backward(self, before: Position | None) -> InternalIterator:
        """As in the base class."""
        started = time.perf_counter_ns()
        return _Seek(super().backward(before), before, started, True, self._observer)


class _Seek(InternalIterator):
    """The chunks of a source; the first one ends the seek."""

    def __init__(
        self,
        source: InternalIterator,
        place: Position | None,
        started: int,
        back: bool,
        observer: Observer,
    ) -> None:
        self._source = source
        self._key = b"" if place is None else place.user_key
        self._started = started
        self._back = back
        self._observer: Observer | None = observer

    def next_chunk(self) -> list[Any]:
        """The next pairs."""
        pairs = self._source.next_chunk()
        if self._observer is not None:
            size = len(pairs[-1 if self._back else 0][1]) if pairs else -1
            self._observer.note(SEEK, self._key, self._started, size, 1)
            self._observer = None
        return pairs
