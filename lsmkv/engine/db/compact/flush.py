"""Flush: writes a memtable to a table, or to several with ``flush_prefix``.

The memtable (a SortedDict) becomes one file: data blocks, the filter block that a
:class:`~lsmkv.engine.table.filter_block.FilterBlockBuilder` makes with the store's filter policy
(by default LevelDB's Bloom policy), the index block and the footer.  The background work calls this
for the immutable memtable, and recovery and repair for one that they have replayed; no lock is
held.  The caller commits the version edit that names the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.merge import live_entries
from lsmkv.engine.db.tree.table_output import Columns, write_tables
from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import Options


def write_memtable(
    memtable: MemTable,
    directory: Directory,
    new_number: Callable[[], int],
    options: Options,
    order: KeyOrder,
    oldest_pinned: int,
) -> list[FileMetaData]:
    """Write the tables, durably, with the versions that a reader can still see.

    ``oldest_pinned`` is the oldest pinned sequence, or the last sequence if none is pinned.  [] if
    the memtable is empty.  Deletions are kept, since tables may hold older values.
    """
    if memtable.empty:
        return []
    chunks = memtable.columns()
    if memtable.keeps_older:
        chunks = _without_hidden(chunks, order, oldest_pinned)
    return write_tables(chunks, directory, new_number, options)


def _without_hidden(
    chunks: Iterator[Columns], order: KeyOrder, oldest_pinned: int
) -> Iterator[Columns]:
    """The same chunks without versions that newer ones hide from every reader."""
    for user_keys, tagged in chunks:
        entries = list(zip(user_keys, tagged, strict=True))
        yield live_entries(entries, oldest_pinned, order, None)
