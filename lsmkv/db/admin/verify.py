"""Verifies every byte of an open store's tables.

``DB.verify`` calls it without a lock; a pinned view keeps the tables from being removed.  Logs
and the MANIFEST are left out: :mod:`lsmkv.repair.survey` reads every file of a store that is not
open.
"""

from __future__ import annotations

from lsmkv.db.store import Store
from lsmkv.errors import CorruptionError
from lsmkv.table.inspection import check, check_metadata
from lsmkv.util.progress import Progress


def verify_tables(store: Store, progress: Progress | None) -> list[CorruptionError]:
    """The damage found in the tables of the current version, one error per table; [] if none.

    Every block of every table is read from the file, past the block cache, and decoded.  Its
    checksum, the order of its keys and its index entry are verified, and each table's first and
    last key are compared with those that the MANIFEST states.  O(size of the store).
    """
    read = store.read_view()
    damage: list[CorruptionError] = []
    try:
        version = read.view.version
        version.check()
        files = [file for level in version.levels for file in level]
        total = sum(file.size for file in files)
        done = 0
        for file in files:
            try:
                table = store.tables.find(file)
                check_metadata(table)
                if check(table) != (file.smallest, file.largest):
                    raise CorruptionError(
                        "the table's first or last key is not the one that the MANIFEST states",
                        table.path,
                    )
            except CorruptionError as error:
                damage.append(error)
            done += file.size
            if progress is not None:
                progress(done, total, "tables")
    finally:
        read.release()
    return damage
