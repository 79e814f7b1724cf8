"""Verifies every byte of an open store's tables.

``DB.verify`` calls it without a lock; a pinned view keeps the tables from being removed.  The
writer of a store that is read-only here knows no such view: where it has removed a table, the
verification continues with the store's newest version, whose other tables it may have verified
already.  Logs and the MANIFEST are left out: :mod:`lsmkv.repair.survey` reads every file of a store
that is not open.
"""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.errors import CorruptionError, StaleViewError
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.table.inspection import check, check_metadata
from lsmkv.engine.util.progress import Progress


def verify_tables(
    store: Store, progress: Progress | None, move_on: Callable[[StaleViewError], None]
) -> list[CorruptionError]:
    """The damage found in the tables of one version, one error per table; [] if none.

    Every block of every table is read from the file, past the block cache, and decoded.  Its
    checksum, the order of its keys and its index entry are verified, and each table's first and
    last key are compared with those that the MANIFEST states.  O(size of the store).

    ``move_on`` shows a newer version of the store, or raises :class:`CorruptionError` if that also
    needs the missing table.
    """
    damage: list[CorruptionError] = []
    verified: set[FileMetaData] = set()
    while True:
        try:
            _verify_version(store, progress, verified, damage)
            return damage
        except _Missing as missing:
            try:
                move_on(missing.error)
            except CorruptionError as error:
                damage.append(error)
                verified.add(missing.file)


class _Missing(Exception):
    """The store's writer has removed a table."""

    def __init__(self, error: StaleViewError, file: FileMetaData) -> None:
        super().__init__()
        self.error = error
        self.file = file


def _verify_version(
    store: Store,
    progress: Progress | None,
    verified: set[FileMetaData],
    damage: list[CorruptionError],
) -> None:
    """Verify the tables of the store's version that are not in ``verified``, and add them to it.

    Raises :class:`_Missing`.
    """
    read = store.read_view()
    try:
        version = read.view.version
        version.check()
        files = [file for level in version.levels for file in level]
        total = sum(file.size for file in files)
        done = sum(file.size for file in files if file in verified)
        for file in files:
            if file in verified:
                continue
            try:
                _verify_table(store, file)
            except CorruptionError as error:
                damage.append(error)
            except StaleViewError as error:
                raise _Missing(error, file) from None
            verified.add(file)
            done += file.size
            if progress is not None:
                progress(done, total, "tables")
    finally:
        read.release()


def _verify_table(store: Store, file: FileMetaData) -> None:
    table = store.tables.find(file, False)
    check_metadata(table)
    if check(table) != (file.smallest, file.largest):
        raise CorruptionError(
            "the table's first or last key is not the one that the MANIFEST states", table.path
        )
