"""The data blocks of a table whose footer or index is damaged: :func:`find_blocks`.

``lsmkv dump`` shows them.  A survey of a store counts the same blocks (``damaged_table.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.engine.options import make_options
from lsmkv.engine.table.format import BLOCK_TRAILER_SIZE
from lsmkv.files import Block, BlockPlace, FileSource
from lsmkv.files.readable import open_source
from lsmkv.files.repair.damaged_table import OUT_OF_ORDER, Hole, Salvage
from lsmkv.files.repair.survey import check_internal_keys


def find_blocks(source: FileSource) -> Iterator[Block | Hole]:
    """The data blocks of a table that can be read, and the holes between them, in their order.

    Where the index is damaged or missing, the blocks are searched for from the first byte on: a
    block ends in a checksum of all of it.  The order of its keys is not checked.  ``source`` stays
    open.  Raises ``OSError`` and :class:`UnsupportedCompressionError`; damage is a hole.  Cost: the
    file is read once, and a damaged part of it a few times.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
    ...     db.put(b"ant", b"six")
    ...     db.flush()
    >>> directory = env.open_directory("store")
    >>> data = directory.read_file("000006.ldb", 1 << 20)
    >>> [block.entries()[0].value for block in find_blocks(data[:60]) if isinstance(block, Block)]
    [b'six']
    """
    file = open_source(source)
    for piece in Salvage(make_options(), file, check_internal_keys).pieces():
        if isinstance(piece, Hole) and piece.reason != OUT_OF_ORDER:
            yield piece
        else:
            place = BlockPlace(piece.offset, piece.size - BLOCK_TRAILER_SIZE, "data")
            yield Block(place, file.read(piece.offset, piece.size), file.path)
