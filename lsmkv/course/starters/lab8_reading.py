"""Lab 8: the read path.  ``lsmkv course show 8`` is the text, ``lsmkv course check 8`` checks.

Write the five functions.  Each can be checked as soon as it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Table(Protocol):
    """An open table.  These fields are in memory; only ``read_block`` reads the disk."""

    number: int
    """The number of its file: the larger, the newer."""
    smallest: bytes
    """Its first key."""
    largest: bytes
    """Its last key."""
    index_keys: Sequence[bytes]
    """One key for each data block: at or above all keys of the block, below all keys of the
    next."""

    def key_may_match(self, block: int, key: bytes) -> bool:
        """Ask the filter of a data block, by its number from 0, whether the block may hold the
        key."""

    def read_block(self, block: int) -> Sequence[tuple[bytes, bytes | None]]:
        """Read a data block: its keys, in ascending order, and their values.

        A value of None is a deletion.  If a key occurs more than once, its newest version comes
        first.
        """


def find_table(level: Sequence[Table], key: bytes) -> Table | None:
    """The table of a level whose range covers the key, or None.

    The tables are those of level 1 or deeper: sorted by key, and disjoint.
    """
    raise NotImplementedError


def tables_to_ask(levels: Sequence[Sequence[Table]], key: bytes) -> list[Table]:
    """All tables whose ranges cover the key, in the order in which a Get asks them."""
    raise NotImplementedError


def block_for(index_keys: Sequence[bytes], key: bytes) -> int | None:
    """The number of the data block that may hold the key, or None if the key is above them all."""
    raise NotImplementedError


def get(levels: Sequence[Sequence[Table]], key: bytes) -> bytes | None:
    """The value of a key, or None if there is none.  It reads as few blocks as possible."""
    raise NotImplementedError


def expected_reads(misses: int, rate: float, is_present: bool) -> float:
    """Return the average number of data blocks that a Get reads.

    It asks the filters of ``misses`` tables that do not hold the key, each of which errs at this
    rate, and then, if the key is present, one table that holds it.
    """
    raise NotImplementedError
