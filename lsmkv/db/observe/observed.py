"""The reader and the writer of a store that is observed: they time each operation.

:class:`~lsmkv.db.observe.observation.Observation` makes them in place of the plain ones.  So a
store that is not observed has no test of it anywhere on its way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from lsmkv.db.compact.background import Background
from lsmkv.db.observe.observer import Observer
from lsmkv.db.observe.seeks import ObservedScan
from lsmkv.db.observe.trace import DELETE, GET, PUT, WRITE
from lsmkv.db.read.iterator import Iterator, IteratorArguments
from lsmkv.db.read.raw_iterator import RawIterator
from lsmkv.db.read.reader import Reader
from lsmkv.db.tree.store import Store, View
from lsmkv.db.write.wal import WriteAheadLog
from lsmkv.db.write.writer import Writer
from lsmkv.format.batch import Operation
from lsmkv.format.keys import MAX_SEQUENCE
from lsmkv.util.arguments import BytesLike


class ObservedReader(Reader):
    """A reader whose Gets and seeks are observed; those of ``multi_get`` and of snapshots, too."""

    def __init__(self, store: Store, background: Background | None, observer: Observer) -> None:
        super().__init__(store, background)
        self._observer = observer

    def get(
        self, key: bytes, sequence: int, fill_cache: bool, view: View | None = None
    ) -> bytes | None:
        """As in the base class.  A Get that raises is not noted."""
        started = time.perf_counter_ns()
        value = super().get(key, sequence, fill_cache, view)
        self._observer.note(GET, key, started, -1 if value is None else len(value), 1)
        return value

    def iterator(
        self,
        owner: object,
        arguments: IteratorArguments,
        sequence: int = MAX_SEQUENCE,
        fixed: View | None = None,
    ) -> Iterator[Any]:
        """As in the base class."""
        made = super().iterator(owner, arguments, sequence, fixed)
        made._scan = ObservedScan(made._open_scan(), self._observer)
        return made

    def raw_iterator(
        self,
        owner: object,
        prefix: BytesLike | None,
        fill_cache: bool,
        sequence: int = MAX_SEQUENCE,
        fixed: View | None = None,
    ) -> RawIterator:
        """As in the base class."""
        made = super().raw_iterator(owner, prefix, fill_cache, sequence, fixed)
        made._scan = ObservedScan(made._open_scan(), self._observer)
        return made


class ObservedWriter(Writer):
    """A writer whose batches and stalls are observed."""

    def __init__(
        self, store: Store, background: Background, wal: WriteAheadLog, observer: Observer
    ) -> None:
        super().__init__(store, background, wal)
        self._observer = observer

    def write(
        self,
        operations: list[Operation],
        sync: bool,
        condition: Callable[[], None] | None = None,
    ) -> None:
        """As in the base class.  A batch that raises is not noted."""
        started = time.perf_counter_ns()
        super().write(operations, sync, condition)
        if len(operations) == 1:
            key, value = operations[0]
            if value is None:
                self._observer.note(DELETE, key, started, -1, 1)
            else:
                self._observer.note(PUT, key, started, len(value), 1)
        elif operations:
            size = sum(len(key) + (0 if value is None else len(value)) for key, value in operations)
            self._observer.note(WRITE, operations[0][0], started, size, len(operations))

    def _stall(self, view: View) -> None:
        """As in the base class."""
        self._observer.stalled_since = time.monotonic()
        try:
            super()._stall(view)
        finally:
            self._observer.stalled_since = 0.0
