"""The interface of the iterators inside a scan: entries in order, a chunk at a time.

Memtable, level and merging iterators implement it.  An iterator belongs to one scan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mypy_extensions import mypyc_attr

Pair = tuple[bytes, bytes]
"""A user key and its value."""
Seen = tuple[bytes, bytes | None]
"""A user key and its value; None for a deletion."""


@mypyc_attr(allow_interpreted_subclasses=True)  # tests merge sources of their own
class InternalIterator(ABC):
    """The entries of a range that are visible at a sequence, a chunk at a time.

    Call order: ``next_chunk*``.

    A chunk holds :data:`Pair`, :data:`Seen`, or the latter followed by its sequence: these are the
    forms of :mod:`lsmkv.table.block_iterator`.  The reader of a store gets pairs only.  Going
    forward, chunks follow each other in rising order; going back, each precedes the one before it,
    and is itself in rising order too.  After an exception it must not be called again: the reader
    starts another one after the last pair.

    Fast path: it is no Python iterator.  In compiled code ``StopIteration`` makes a traceback,
    which costs as much as reading five pairs, and a short scan meets several ends.
    """

    @abstractmethod
    def next_chunk(self) -> list[Any]:
        """The next entries.  At the end the list is empty, and so is every later one."""
