"""The files of an open store at one moment, which a checkpoint copies.

The store's writer takes them between two writes, or the follower of another process's store up to
where it has read the logs.
"""

from __future__ import annotations

from lsmkv.engine.db.tree.store import View
from lsmkv.engine.env.base import RandomAccessFile


class CheckpointSource:
    """The files of a checkpoint, taken at one moment between two writes."""

    def __init__(
        self, view: View, last_sequence: int, logs: list[tuple[int, RandomAccessFile, int]]
    ) -> None:
        self.view = view
        """Its tables are not removed as long as it is referenced."""
        self.last_sequence = last_sequence
        self.logs = logs
        """Number, file and bytes to copy; an open file can be read after it was removed."""

    def close(self) -> None:
        """Close the logs."""
        for _, file, _ in self.logs:
            file.close()
