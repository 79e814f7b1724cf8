"""Bytes as a file that is read."""

from __future__ import annotations

from lsmkv.engine.env.base import RandomAccessFile


class BytesFile(RandomAccessFile):
    """``data``, in a file that was ``size`` bytes long when it was opened."""

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self.path = "db/000005.ldb"
        self.data = data
        self.size = len(data) if size is None else size
        self.reads: list[tuple[int, int]] = []
        """The offset and the length of each read."""
        self.closed = False

    def read(self, offset: int, length: int) -> bytes:
        self.reads.append((offset, length))
        return self.data[offset : offset + length]

    def close(self) -> None:
        self.closed = True
