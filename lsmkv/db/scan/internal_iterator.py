"""What every part of a scan is: entries in order, a handful at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

Pair = tuple[bytes, bytes]
"""A user key and its value."""
Seen = tuple[bytes, bytes | None]
"""A user key and its value; None for a deletion."""


class InternalIterator(ABC):
    """What is seen of a range, a handful at a time: ``next_chunk*``.

    A chunk holds :data:`Pair`, :data:`Seen`, or the latter with its sequence behind it, as the
    forms of :mod:`lsmkv.table.block_iterator` have it; a reader of a store gets pairs alone.  Going
    forward, chunks follow each other in rising order; going back, each precedes the one before it,
    and is itself in rising order too.  After an exception it must not be asked again: the reader
    starts another one behind the last pair.

    It is no Python iterator.  What ends in ``StopIteration`` ends, compiled, in a traceback, which
    costs as much as reading five pairs; and a short scan comes to several ends.
    """

    @abstractmethod
    def next_chunk(self) -> list[Any]:
        """The next ones.  An empty list is the end, and so is every one after it."""
