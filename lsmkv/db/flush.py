"""From a memtable to a table."""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.db.memtable import MemTable
from lsmkv.db.merge import live_entries
from lsmkv.db.table_output import write_entries
from lsmkv.env.base import Directory
from lsmkv.format.key_order import KeyOrder
from lsmkv.format.version_edit import FileMetaData
from lsmkv.options import Options


def write_memtable(
    memtable: MemTable,
    directory: Directory,
    number: int,
    options: Options,
    order: KeyOrder,
    oldest_pinned: int,
) -> FileMetaData | None:
    """Write the table ``number`` with what of ``memtable`` anyone can still see, durably.

    ``oldest_pinned`` is the oldest sequence at which someone looks.  None if there is nothing to
    write.  Deletions are kept: older values may lie in tables.
    """
    if memtable.empty:
        return None
    chunks = memtable.columns()
    if memtable.keeps_older:
        chunks = _without_hidden(chunks, order, oldest_pinned)
    return write_entries(chunks, directory, number, options)


def _without_hidden(
    chunks: Iterator[tuple[list[bytes], list[bytes]]], order: KeyOrder, oldest_pinned: int
) -> Iterator[tuple[list[bytes], list[bytes]]]:
    for user_keys, tagged in chunks:
        entries = list(zip(user_keys, tagged, strict=True))
        yield live_entries(entries, oldest_pinned, order, _keep_deletions)


def _keep_deletions(_user_key: bytes) -> bool:
    return False
