"""Writes table files: flushes, compactions, ingests and repairs use this.

The caller runs it in its own thread, under no lock: no version names the file yet.

Fast path: every 512 KiB, the system is asked to start writing out.  The disk then works while the
next blocks are built, and the sync at the end is short.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.filenames import table_name
from lsmkv.engine.format.keys import TAG_SIZE
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import Options
from lsmkv.engine.table.builder import TableBuilder

if TYPE_CHECKING:
    from mypy_extensions import i64

_NO_LIMIT = 1 << 62
_ENTRIES = 512  # added at once; a write-out may be requested after each
_SYNC_EVERY = 512 * 1024
"""After this many bytes the system is asked to start writing them out."""
Columns = tuple[list[bytes], list[bytes]]
"""User keys and their tagged values, in order."""


class TableOutput:
    """One table that is being written.

    Call order: ``add_entries* (finish | abandon)``.

    ``finish`` makes the content durable.  The *name* is durable once the caller has synced the
    directory, which it does before any version edit names the file.
    """

    def __init__(self, directory: Directory, number: int, options: Options) -> None:
        self.number = number
        self._directory = directory
        self._file = directory.create(table_name(number))
        self._builder = TableBuilder(options, self._file)
        self._smallest = b""
        self._sync_at = _SYNC_EVERY

    @property
    def size(self) -> int:
        """Bytes written so far, without the block that is being built."""
        return self._builder.file_size

    def add_entries(
        self, user_keys: list[bytes], tagged: list[bytes], at: i64, stop: i64, limit: i64
    ) -> i64:
        """Append entries from ``at`` to ``stop``, or until the file has ``limit`` bytes.

        The entries are two lists: user keys, and tagged values.  Returns the index of the first
        entry that was not added.
        """
        if self._builder.num_entries == 0 and at < stop:
            self._smallest = user_keys[at] + tagged[at][:TAG_SIZE]
        done = self._builder.add_entries(user_keys, tagged, at, stop, limit)
        self._begin_sync()
        return done

    def _begin_sync(self) -> None:
        size = self._builder.file_size
        if size >= self._sync_at:
            self._sync_at = size + _SYNC_EVERY
            self._file.begin_sync()

    def finish(self) -> FileMetaData:
        """Complete the file and sync it."""
        self._builder.finish()
        self._file.sync()
        self._file.close()
        return FileMetaData(
            self.number, self._builder.file_size, self._smallest, self._builder.last_key
        )

    def abandon(self) -> None:
        """Close and remove the file.  If it cannot be removed now, the next open removes it."""
        self._file.close()
        remove_table(self._directory, self.number)


def remove_table(directory: Directory, number: int) -> None:
    """Remove a table that no version names; if that fails, the next open removes it."""
    remove_file(directory, table_name(number))


def remove_file(directory: Directory, name: str) -> None:
    """Remove a file that the store does not use; if that fails, the next open removes it."""
    try:
        directory.remove(name)
    except OSError:
        pass


def write_entries(
    chunks: Iterable[Columns],
    directory: Directory,
    number: int,
    options: Options,
) -> FileMetaData:
    """Write the table ``number`` with these user keys and tagged values, in order, durably."""
    output = TableOutput(directory, number, options)
    try:
        for user_keys, tagged in chunks:
            at = 0
            while at < len(user_keys):
                stop = min(len(user_keys), at + _ENTRIES)
                at = output.add_entries(user_keys, tagged, at, stop, _NO_LIMIT)
        file = output.finish()
        directory.sync()
    except BaseException:
        output.abandon()
        raise
    return file
