"""The parts of a table that opening it reads, for a reader that has the table elsewhere."""

from __future__ import annotations

from lsmkv.env.base import RandomAccessFile
from lsmkv.format.meta import FilePieces
from lsmkv.options import Options
from lsmkv.table.reader import Table


def table_pieces(name: str, file: RandomAccessFile, options: Options) -> FilePieces:
    """The first data block of a table, and all that follows its data blocks.

    Opens the table, so that what is damaged raises :class:`~lsmkv.errors.CorruptionError`.  Cost:
    that of opening, and a read of the two pieces.
    """
    table = Table(options, file)
    blocks: int = table.num_blocks
    if blocks == 0:
        return FilePieces(name, file.size, ((0, file.read(0, file.size)),))
    head: int = table.index.end(0)
    data_end: int = table.index.end(blocks - 1)
    first = (0, file.read(0, head))
    rest = (data_end, file.read(data_end, file.size - data_end))
    return FilePieces(name, file.size, (first, rest))
