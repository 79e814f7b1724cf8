"""A mistake that ``plant.py`` plants, and the parts that mistakes are in."""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """One wrong text in one function of the engine."""

    name: str
    """What is wrong, in a few words; unique."""
    part: str
    """The part of the engine that it is in: one of :data:`PARTS`."""
    function: str
    """The qualified name of the function, without its module."""
    right: str
    """What the source says; it occurs once in the function."""
    wrong: str
    """What is planted in its place."""
    harm: str
    """What goes wrong for a user."""


PARTS = (
    *("log", "table", "block", "filter", "memtable", "version", "compaction", "recovery"),
    *("iterators", "locks", "files", "batch", "options"),
    *("repair", "faces", "server", "tools"),
)
