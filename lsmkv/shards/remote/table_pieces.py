"""The pieces of a table for META: see :mod:`lsmkv.shards.remote.meta`.

The builder of a shard calls this when a table is written.
"""

from __future__ import annotations

from lsmkv.engine.env.base import Directory, RandomAccessFile
from lsmkv.engine.options import Options
from lsmkv.engine.table.reader import Table
from lsmkv.shards.remote.meta import FilePieces, Piece


def table_pieces(directory: Directory, name: str, options: Options) -> FilePieces:
    """A table's first data block, and everything after its last one.

    ``options`` name its comparator; without a filter policy in them its filters are not decoded.
    Raises :class:`~lsmkv.errors.CorruptionError` for a table that cannot be opened, and
    ``OSError``.  Cost: two reads of its end, one of its first block.
    """
    with directory.open(name) as file:
        index = Table(options, file).index
        count = len(index)
        if count == 0:
            return FilePieces(name, file.size, _piece(file, 0, file.size))
        start = max([index.end(number) for number in range(count)])
        first = index.handle(0).offset
        if first >= start or index.end(0) >= start:  # one block, followed by the table's end
            return FilePieces(name, file.size, _piece(file, first, file.size - first))
        pieces = _piece(file, first, index.end(0) - first) + _piece(file, start, file.size - start)
        return FilePieces(name, file.size, pieces)


def _piece(file: RandomAccessFile, offset: int, length: int) -> list[Piece]:
    """One piece; none if it is empty."""
    return [Piece(offset, file.read(offset, length))] if length > 0 else []
