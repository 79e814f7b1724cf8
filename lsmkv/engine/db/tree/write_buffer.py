"""The writes to a memtable that were not read yet: a part of :mod:`lsmkv.engine.db.tree.memtable`.

A program that loads a store reads nothing, and a worker process that flushes reads the log.  So the
writes wait here, in two lists, and become tagged values only when a reader or a flush needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from librt.strings import BytesWriter

from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.keys import entry_overhead, tagged_operation

if TYPE_CHECKING:
    from mypy_extensions import i64


class WriteBuffer:
    """The writes to a memtable before its first read, in the order of their sequences.

    :meth:`add` is called under the store's lock.  It appends a key, then its value, so that after
    an interrupt ``keys`` may be one longer than ``values``: that write was not completed and will
    be done again, elsewhere.  Both lists only grow: :meth:`find` needs no lock.
    """

    __slots__ = ("first", "keys", "overhead", "values")

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.values: list[bytes | None] = []
        """None for a deletion."""
        self.first: i64 = 0
        """The sequence of the first write; each following one has the next sequence."""
        self.overhead: i64 = 0
        """Bytes that LevelDB's arena uses for the operations of the last :meth:`add`, in addition
        to those of their keys and values."""

    def add(self, sequence: i64, operations: list[Operation]) -> i64:
        """Append operations, the first of them with ``sequence``; returns the bytes of their keys
        and values.

        Returns -1, and changes nothing, if there is a gap before them, or if an interrupted call
        has appended some of them.
        """
        keys = self.keys
        values = self.values
        count: i64 = len(keys)
        if count == 0:
            self.first = sequence
        if count != sequence - self.first or count != len(values):
            return -1
        total: i64 = 0
        overhead: i64 = 0
        for key, value in operations:
            key_size: i64 = len(key)
            size: i64 = 0 if value is None else len(value)
            keys.append(key)
            values.append(value)
            total += key_size + size
            overhead += entry_overhead(key_size, size)
        self.overhead = overhead
        return total

    def find(self, key: bytes, sequence: int) -> bytes | None:
        """The tagged value of the newest write to exactly this key at or before ``sequence``.

        Any thread, without a lock.  O(number of writes).
        """
        keys = self.keys
        values = self.values
        at: i64 = min(len(keys), len(values)) - 1
        while at >= 0:
            if keys[at] == key:
                found = self.first + at
                if found <= sequence:
                    return tagged_operation(BytesWriter(), found, values[at])
            at -= 1
        return None

    def tagged_values(self, writer: BytesWriter) -> list[bytes]:
        """The tagged values of all writes, put together in ``writer``."""
        tagged: list[bytes] = []
        sequence: i64 = self.first
        for value in self.values:
            tagged.append(tagged_operation(writer, sequence, value))
            sequence += 1
        return tagged
