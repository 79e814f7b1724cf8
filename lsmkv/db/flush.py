"""From a memtable to a table."""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.db.memtable import MemTable
from lsmkv.db.merge import KeyOrder, live_rows
from lsmkv.db.table_output import write_columns
from lsmkv.env.base import Directory
from lsmkv.format.version_edit import FileMetaData
from lsmkv.options import Options


def write_memtable(
    memtable: MemTable,
    directory: Directory,
    number: int,
    options: Options,
    order: KeyOrder,
    oldest_seen: int,
) -> FileMetaData | None:
    """Write the table ``number`` with what of ``memtable`` anyone can still see, durably.

    ``oldest_seen`` is the oldest sequence at which someone looks.  None if there is nothing to
    write.  Deletions are kept: older values may lie in tables.
    """
    if memtable.empty:
        return None
    columns = memtable.columns()
    if memtable.keeps_older:
        columns = _without_hidden(columns, order, oldest_seen)
    return write_columns(columns, directory, number, options)


def _without_hidden(
    columns: Iterator[tuple[list[bytes], list[bytes]]], order: KeyOrder, oldest_seen: int
) -> Iterator[tuple[list[bytes], list[bytes]]]:
    for keys, rows in columns:
        versions = list(zip(keys, rows, strict=True))
        yield live_rows(versions, oldest_seen, order, _keep_deletions)


def _keep_deletions(_user_key: bytes) -> bool:
    return False
