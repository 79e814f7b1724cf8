"""Makes the META of a finished directory: see :mod:`lsmkv.format.meta`.

The builder of a shard calls it once the shard's files are written.
"""

from __future__ import annotations

from lsmkv.env.base import Directory, RandomAccessFile
from lsmkv.format.filenames import CURRENT, FileType, parse_filename, read_current
from lsmkv.format.meta import FilePieces, Piece, encode_meta
from lsmkv.options import Options
from lsmkv.table.reader import Table


def meta_of(directory: Directory, options: Options) -> bytes:
    """The META of a database directory that nobody writes to.

    It covers CURRENT, the MANIFEST in force, and all tables and logs; other files are not the
    reader's.  ``options`` name the tables' comparator; their filters are not decoded.  Raises
    :class:`~lsmkv.errors.CorruptionError` for a table that cannot be opened, and ``OSError``.
    Cost: two reads of each table's end, one of its first block.
    """
    plain = options._replace(filter_policy=None, prefix_extractor=None, block_cache=None)
    manifest = read_current(directory)
    files: list[FilePieces] = []
    for name in directory.names():
        parsed = parse_filename(name)
        kind = None if parsed is None else parsed[1]
        if kind is FileType.TABLE:
            files.append(table_pieces(directory, name, plain))
        elif kind is FileType.LOG or name in (CURRENT, manifest):
            with directory.open(name) as file:
                files.append(FilePieces(name, file.size, _piece(file, 0, file.size)))
    return encode_meta(files)


def table_pieces(directory: Directory, name: str, options: Options) -> FilePieces:
    """A table's first data block, and all behind its last one."""
    with directory.open(name) as file:
        index = Table(options, file).index
        count = len(index)
        if count == 0:
            return FilePieces(name, file.size, _piece(file, 0, file.size))
        start = max([index.end(number) for number in range(count)])
        first = index.handle(0).offset
        if first >= start or index.end(0) >= start:  # one block, which the table's end follows
            return FilePieces(name, file.size, _piece(file, first, file.size - first))
        pieces = _piece(file, first, index.end(0) - first) + _piece(file, start, file.size - start)
        return FilePieces(name, file.size, pieces)


def _piece(file: RandomAccessFile, offset: int, length: int) -> list[Piece]:
    """One piece; none if it is empty."""
    return [Piece(offset, file.read(offset, length))] if length > 0 else []
