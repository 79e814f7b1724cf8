"""The interface of the iterators inside a scan: entries in order, a chunk at a time.

Memtable, level and merging iterators implement it.  An iterator belongs to one scan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.read.stretch import Stretch
from lsmkv.engine.env.interrupts import allow_interrupts
from lsmkv.engine.table.deletion_run import Unneeded

Pair = tuple[bytes, bytes]
"""A user key and its value."""
Seen = tuple[bytes, bytes | None]
"""A user key and its value; None for a deletion."""


@mypyc_attr(allow_interpreted_subclasses=True)  # tests merge their own sources
class InternalIterator(ABC):
    """The entries of a range that are visible at a sequence, a chunk at a time.

    Call order: ``read_pairs? (may_skip? next_chunk)*``.

    A chunk holds :data:`Pair`, or :data:`Seen` and
    :class:`~lsmkv.engine.table.deletion_run.DeletionRun`, or the latter two with their sequences:
    these are the forms of :mod:`lsmkv.engine.table.block_iterator`.  The reader of a store gets
    pairs only.  Going forward, chunks follow each other in ascending order; going back, each
    precedes the one before it, but is itself in ascending order.  After an exception it must not be
    called again: the reader starts another one after the last pair.

    Fast path: it is not a Python iterator.  In compiled code ``StopIteration`` makes a traceback,
    which costs as much as reading five pairs, and a short scan reaches several ends.
    """

    stretch: Stretch | None = None
    """Notified of empty reads."""

    def note_empty_read(self) -> None:
        """Note that a read has found no pair, and let signals and other threads in."""
        stretch = self.stretch
        if stretch is None:
            allow_interrupts()
        else:
            stretch.note_empty_read()

    def read_pairs(self) -> None:  # noqa: B027 - a source may be unable to
        """Return pairs without deletions: there is no other source that they could hide."""

    def may_skip(self, unneeded: Unneeded) -> None:  # noqa: B027 - a hint
        """Allow chunks to omit these entries until the next call
        (:mod:`lsmkv.engine.table.deletion_run`).

        A hint: a source may return them all the same.  Called in the bytewise order only.
        """

    @abstractmethod
    def next_chunk(self) -> list[Any]:
        """The next entries.  At the end the list is empty, and so is every later one."""
