"""Lab 7: memtable and merging iterators.  ``lsmkv course show 7`` is the text,
``lsmkv course check 7`` checks.

Write the six functions.  Each can be checked as soon as it is written.  The functions that make and
parse internal keys are the engine's; ``from lab1_keys import ...`` takes your own instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lsmkv.files import make_key, parse_key  # noqa: F401 - for you to use

Entry = tuple[bytes, bytes]
"""An internal key, and a value; the value of a deletion is empty."""


def sort_key(internal_key: bytes) -> tuple[bytes, int]:
    """A value that Python compares instead of an internal key, so that they sort correctly."""
    raise NotImplementedError


def insert(memtable: list[Entry], internal_key: bytes, value: bytes) -> None:
    """Put an entry into a memtable, a list of entries in the order of their internal keys."""
    raise NotImplementedError


def look_up(memtable: Sequence[Entry], user_key: bytes, sequence: int) -> Entry | None:
    """The newest version of a user key at or below a sequence; it may be a deletion.

    None if the memtable has no such version.
    """
    raise NotImplementedError


def merge(runs: Sequence[Iterable[Entry]], backwards: bool) -> Iterator[Entry]:
    """The entries of all runs in one order: that of internal keys or, backwards, its reverse.

    Each run is already in that order.  No entry is taken from a run before it is needed.
    """
    raise NotImplementedError


def visible(entries: Iterable[Entry], sequence: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield what a reader at a sequence sees of entries in order: pairs of user key and value,
    ascending."""
    raise NotImplementedError


def visible_backwards(entries: Iterable[Entry], sequence: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield what a reader at a sequence sees of entries in reverse order: pairs of user key and
    value, descending.

    It remembers one version at a time, not a list of them.
    """
    raise NotImplementedError
