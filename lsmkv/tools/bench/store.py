"""The interface of engines that workloads use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from lsmkv.tools.bench.settings import Settings

Put = Callable[[bytes, bytes], object]
Get = Callable[[bytes], bytes | None]
Delete = Callable[[bytes], object]
Records = Sequence[tuple[bytes, bytes]]


class Store:
    """An open store, whose handle has ``put``, ``get``, ``delete`` and ``close``.

    What it returns for the timed loops is bound to the calling thread, and is as thin as
    the engine's own idiom allows.  An engine overrides what its idiom does otherwise.  As they
    stand here, the methods suit one without order, levels and background work.
    """

    def __init__(self, db: Any) -> None:
        self._db = db

    def putter(self) -> Put:
        """Sets one key, in a separate write."""
        put: Put = self._db.put
        return put

    def getter(self, live: bool) -> Get:
        """Reads one key.  ``live``: it must see concurrent writes of other threads."""
        get: Get = self._db.get
        return get

    def deleter(self) -> Delete:
        """Removes one key."""
        delete: Delete = self._db.delete
        return delete

    def batch_writer(self) -> Callable[[Records], object]:
        """Sets many keys in one write."""
        raise NotImplementedError

    def scan(self, reverse: bool) -> Iterable[tuple[bytes, bytes]]:
        """All entries, in the order of their keys or against it."""
        raise NotImplementedError

    def seeker(self) -> Callable[[bytes], bytes | None]:
        """Positions a new iterator at the first key that is not before a key, and returns it."""
        raise NotImplementedError

    def range_reader(self, count: int) -> Callable[[bytes], int]:
        """Reads up to ``count`` entries from a key on, and returns how many there were."""
        raise NotImplementedError

    def close(self) -> None:
        """Close it; what was returned for loops is no longer used."""
        self._db.close()

    def flush(self) -> None:
        """Flush the data in memory to a table."""

    def settle(self) -> None:
        """Wait until no background work is left."""

    def compact(self) -> None:
        """Merge all levels, as far as the engine's ``compact_range`` does."""
        raise ValueError("this engine has no levels")

    def levels(self) -> list[int]:
        """The number of tables on each level; empty where there are no levels."""
        return []

    def counters(self) -> dict[str, int]:
        """The engine's counters; empty if it has none."""
        return {}

    def table_bytes_written(self) -> int | None:
        """Bytes that flushes and compactions wrote; None if the engine does not count them."""
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
        """True if several threads may use one store."""

    def open(self, path: str, settings: Settings, sync: bool = False) -> Store:
        """Open the store in the directory ``path``, or make one.

        ``sync``: a write survives a power cut once it is acknowledged; otherwise the death of the
        process, as far as the engine promises that at all.
        """
