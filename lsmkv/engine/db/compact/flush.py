"""Flush: writes a memtable to a table, or to several with ``flush_prefix``.

The memtable (a SortedDict) becomes one file: data blocks, the filter block (a FilterBlockBuilder
makes it by the store's policy), the index block and the footer.  The caller commits the edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from lsmkv.engine.db.tree.merge import live_entries
from lsmkv.engine.db.tree.table_output import Columns, remove_table, write_entries
from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import Options

if TYPE_CHECKING:  # a worker needs none
    from lsmkv.engine.db.tree.memtable import MemTable


def write_memtable(
    memtable: MemTable,
    directory: Directory,
    new_number: Callable[[], int],
    options: Options,
    order: KeyOrder,
    oldest_pinned: int,
) -> list[FileMetaData]:
    """Write the tables, durably, with the versions that a reader can still see, and deletions.

    ``oldest_pinned`` is the oldest pinned sequence, or the last one.  [] for an empty memtable.
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


# Beyond the tour: several tables


def write_tables(
    chunks: Iterable[Columns],
    directory: Directory,
    new_number: Callable[[], int],
    options: Options,
) -> list[FileMetaData]:
    """Write these user keys and tagged values, in order, durably: to one table, or to several
    disjoint ones if ``options.flush_prefix`` asks for that."""
    prefix = options.flush_prefix.encode()
    files: list[FileMetaData] = []
    try:
        for part in _parts(chunks, prefix) if prefix else [chunks]:
            files.append(write_entries(part, directory, new_number(), options))
    except BaseException:
        for file in files:
            remove_table(directory, file.number)
        raise
    return files


def _parts(chunks: Iterable[Columns], prefix: bytes) -> list[list[Columns]]:
    """The content of each table; see :func:`write_tables`."""
    parts: list[list[Columns]] = []
    last: bool | None = None
    for user_keys, tagged in chunks:
        begin = 0
        for at, key in enumerate(user_keys):
            group = key.startswith(prefix)
            if group != last:
                if at > begin:
                    parts[-1].append((user_keys[begin:at], tagged[begin:at]))
                begin = at
                last = group
                parts.append([])
        parts[-1].append((user_keys[begin:], tagged[begin:]))
    return parts
