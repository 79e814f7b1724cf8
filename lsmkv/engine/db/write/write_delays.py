"""Delays of writers, after their write, for background work to keep up and readers to go on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lsmkv.engine.counters import BLOCK_READS
from lsmkv.engine.db.tree.store import Store, View
from lsmkv.engine.format.batch import Operation, encoded_size
from lsmkv.engine.util.delay_debt import DelayDebt
from lsmkv.engine.util.threads import pause

if TYPE_CHECKING:
    from mypy_extensions import i64

_FLUSH_DELAY = 60e-9  # seconds a byte for a full memtable while the one before is flushed
_SMALL_BATCH = 16 * 1024  # bytes; a larger one takes long in any case
_LONGEST_DELAY = 0.001  # seconds for which a write sleeps because level 0 has many files
_TURN = 0.002  # seconds after which writers give way to readers again
_WAY = 0.00005  # seconds of a pause that is long enough for a thread that waits for the interpreter


class WriteDelays:
    """Delays the writers of one store.  Callers hold no lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._full_usage: int = store.options.write_buffer_size
        self._debt = DelayDebt(_LONGEST_DELAY)
        """Delays that writers still owe."""
        self._turn_ends = 0.0
        """The time at which writers give way to readers again."""
        self._reads_before: i64 = 0
        """Number of block reads that had ended when writers last gave way."""

    def after_write(self, operations: list[Operation]) -> None:
        """Delay the writer of a batch, if level 0 has many files or two memtables are filling."""
        view = self._store.view
        if view is not None and (
            view.delay > 0.0
            or (view.immutable is not None and 2 * view.memtable.usage > self._full_usage)
        ):
            seconds = self._delay_of(view, operations)
            view = None  # a sleep must not keep its tables on disk
            if self._debt.owe(seconds):
                self._store.counters.slowdowns += 1

    def _delay_of(self, view: View, operations: list[Operation]) -> float:
        """For how many seconds a write is delayed, so that background work gains on the writers
        before they have to wait for it.

        Before level 0 has 12 files and writes stop, the delay of a byte grows with these files and
        with the memtable, which will be one.  Before the memtable is full and writes wait for the
        flush of the one before, the delay of a small batch also grows.  So writes become as slow as
        flushes and compactions are, with a delay that is never much longer than that of the write
        before.
        """
        full = min(view.memtable.usage / self._full_usage, 1.0)
        size = encoded_size(operations)
        delay = view.delay * (1.0 + 3.0 * full)
        if view.immutable is not None and full > 0.5 and size < _SMALL_BATCH:
            delay += _FLUSH_DELAY * (2.0 * full - 1.0) ** 2
        return delay * size

    def give_way(self) -> None:
        """Let the readers go on that wait for the interpreter, unless they had their turn just now.

        A reader lets others run while it reads or decompresses a block.  A writer that takes over
        then would keep the interpreter for its switch interval, 5 ms.  If no read has ended since
        the last turn, they wait for a file.
        """
        reads = BLOCK_READS.ended
        now = time.monotonic()
        if reads != self._reads_before and now >= self._turn_ends:
            self._reads_before = reads
            self._turn_ends = now + _TURN
            pause(_WAY)
            self._turn_ends = time.monotonic() + _TURN
