"""What a workload asks of an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from lsmkv.tools.bench.settings import Settings

Put = Callable[[bytes, bytes], object]
Get = Callable[[bytes], bytes | None]
Delete = Callable[[bytes], object]
Records = Sequence[tuple[bytes, bytes]]


NO_LEVELS = {"compact": "it has no levels"}
FOREIGN_FILES = dict.fromkeys(
    ("footprint", "absent"), "its files and their levels are not LevelDB's"
)
"""What engines of other kinds cannot do, and why."""


class Store(Protocol):
    """An open store.

    What it gives for the timed loops is bound to the thread that asks for it, and is as thin as
    the engine's own idiom allows.  The methods that have a body here do what suits an engine
    without levels and background work.
    """

    def putter(self) -> Put:
        """Sets one key, in a write of its own."""

    def getter(self, live: bool) -> Get:
        """Reads one key.  ``live``: it must see what other threads write meanwhile."""

    def deleter(self) -> Delete:
        """Removes one key."""

    def batch_writer(self) -> Callable[[Records], object]:
        """Sets many keys in one write."""

    def scan(self, reverse: bool) -> Iterable[tuple[bytes, bytes]]:
        """All entries, in the order of their keys or against it."""

    def seeker(self) -> Callable[[bytes], bytes | None]:
        """Positions a new iterator at the first key that is not before a key, and tells that."""

    def range_reader(self, count: int) -> Callable[[bytes], int]:
        """Reads up to ``count`` entries from a key on, and tells how many there were."""

    def close(self) -> None:
        """Close it; what was given for loops is not used any more."""

    def flush(self) -> None:
        """What is in memory goes into a table."""
        return

    def settle(self) -> None:
        """Wait until no background work is left."""
        return

    def compact(self) -> None:
        """Merge all levels, as far as the engine's ``compact_range`` does."""
        raise ValueError("this engine has no levels")

    def levels(self) -> list[int]:
        """How many tables each level holds; empty where there are no levels."""
        return []

    def counters(self) -> dict[str, int]:
        """What the engine counts; empty if it does not tell."""
        return {}

    def table_bytes_written(self) -> int | None:
        """Bytes that flushes and compactions wrote; None if the engine does not tell."""
        return None


class Engine(Protocol):
    """A kind of store."""

    @property
    def version(self) -> str:
        """The version of the engine, as text for a reader."""

    @property
    def cannot(self) -> dict[str, str]:
        """The workloads that it cannot do, and why."""

    @property
    def threads(self) -> bool:
        """Whether several threads may use one store."""

    def open(self, path: str, settings: Settings, sync: bool = False) -> Store:
        """Open the store in the directory ``path``, or make one.

        ``sync``: a write survives a power cut once it is acknowledged; otherwise the death of the
        process, as far as the engine promises that at all.
        """


class Unordered(Store):
    """A store without what needs an order, or batches."""

    def batch_writer(self) -> Callable[[Records], object]:
        raise NotImplementedError

    def scan(self, reverse: bool) -> Iterable[tuple[bytes, bytes]]:
        raise NotImplementedError

    def seeker(self) -> Callable[[bytes], bytes | None]:
        raise NotImplementedError

    def range_reader(self, count: int) -> Callable[[bytes], int]:
        raise NotImplementedError
