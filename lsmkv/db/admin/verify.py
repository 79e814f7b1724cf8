"""Looking at every byte: are the tables what they must be?"""

from __future__ import annotations

from lsmkv.db.store import Store
from lsmkv.errors import CorruptionError
from lsmkv.table.inspection import check, check_metadata
from lsmkv.util.progress import Progress


def verify_tables(store: Store, progress: Progress | None) -> list[CorruptionError]:
    """The damage found in the tables of the current version, one error a table; [] if all is well.

    Every block of every table is read and decoded, past the block cache; its checksum, its order
    and its place in the index are verified, and its keys against the range that the MANIFEST
    states.  O(size of the store).
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
                        "the table's keys are not those that the MANIFEST states", table.path
                    )
            except CorruptionError as error:
                damage.append(error)
            done += file.size
            if progress is not None:
                progress(done, total, "tables")
    finally:
        read.release()
    return damage
