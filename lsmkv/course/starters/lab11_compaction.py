"""Lab 11: compaction.  ``lsmkv course show 11`` is the text, ``lsmkv course check 11`` checks.

Write the seven functions.  Each can be checked as soon as it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

MIB = 2**20

File = tuple[int, int, bytes, bytes]
"""A table: its number, its size in bytes, its smallest and its largest user key."""
Levels = Sequence[Sequence[File]]
"""The tables of levels 0 to 6.  Level 0 has the highest number first, the others the smallest key
first, and their tables share no keys."""
Entry = tuple[bytes, int, bytes | None]
"""A version: user key, sequence, value; the value of a deletion is None."""


def level_scores(levels: Levels) -> list[float]:
    """Return how urgently each of the levels 0 to 5 needs a compaction: at 1.0 or more it does."""
    raise NotImplementedError


def overlapping(levels: Levels, level: int, begin: bytes, end: bytes) -> list[File]:
    """The tables of a level that a compaction of the keys from begin to end, both inclusive, must
    take, in the order of the level."""
    raise NotImplementedError


def pick(
    levels: Levels, pointers: Sequence[bytes | None]
) -> tuple[int, list[File], list[File]] | None:
    """The compaction that is needed most: its level, its tables of that level, and those of the
    next; None if no level needs one.

    For each level, ``pointers`` has the largest key of its last compaction, None before the first.
    """
    raise NotImplementedError


def held_deeper(levels: Levels, output_level: int, key: bytes) -> bool:
    """Return True if a level below that of the outputs may hold a version of the key."""
    raise NotImplementedError


def compact(
    runs: Sequence[Sequence[Entry]],
    oldest_snapshot: int,
    may_be_deeper: Callable[[bytes], bool],
) -> list[Entry]:
    """The entries that remain of the runs, sorted by key and, for each key, the newest first.

    Each run is already in that order.  Each reader sees the versions up to some sequence, which is
    never below ``oldest_snapshot``.  ``may_be_deeper`` says whether a deeper level may hold a key.
    """
    raise NotImplementedError


def split(entries: Sequence[Entry], limit: int) -> list[list[Entry]]:
    """The entries in outputs, each of which ends after the first key with which it has ``limit``
    bytes or more."""
    raise NotImplementedError


def write_amplification(user_bytes: int, flush_bytes: int, compaction_bytes: int) -> float:
    """The bytes that flushes and compactions wrote for each byte that the user wrote."""
    raise NotImplementedError
