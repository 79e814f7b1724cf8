"""The interface through which a handle writes: to the store's own writer, or to another process."""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.engine.format.batch import Operation


class WritePath:
    """The calls that ``DB`` makes.  Any thread may call any method."""

    @property
    def log_is_mapped(self) -> bool:
        """True if the current log is mapped into memory."""
        raise NotImplementedError

    def write(
        self,
        operations: list[Operation],
        sync: bool,
        condition: Callable[[], None] | None = None,
    ) -> None:
        """Apply a batch, atomically: see :meth:`Writer.write`."""
        raise NotImplementedError

    def write_unless_changed(
        self, operations: list[Operation], sequence: int, keys: list[bytes]
    ) -> None:
        """Apply a batch, unless one of these keys was written after ``sequence``: then, or if a
        table has appeared since, :class:`~lsmkv.errors.ConflictError`.

        It is for a caller that has read the keys just now, after it has asked for this object and
        then for the sequence, and that can read them again.  Cost: one write, and a lookup of
        each key in memory.
        """
        raise NotImplementedError

    def sync(self) -> None:
        """Make every write that has returned durable."""
        raise NotImplementedError

    def flush_memtable(self) -> None:
        """Let what is in memory become a table, and wait for it."""
        raise NotImplementedError
