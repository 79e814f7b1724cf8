"""From which files a table was made, by the edits of a MANIFEST."""

from __future__ import annotations

from lsmkv.engine.format.keys import KIND_VALUE, pack
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.files.repair.lineage import Lineage


def table(number: int) -> FileMetaData:
    return FileMetaData(number, 100, pack(b"a", 1, KIND_VALUE), pack(b"b", 2, KIND_VALUE))


def edit(
    *added: tuple[int, int], removed: tuple[tuple[int, int], ...] = (), log: int | None = None
) -> VersionEdit:
    """An edit that adds tables to levels and removes others."""
    made = VersionEdit()
    made.log_number = log
    for level, number in added:
        made.add_file(level, table(number))
    for level, number in removed:
        made.delete_file(level, number)
    return made


def origins(*edits: VersionEdit) -> dict[int, tuple[list[int], int, int]]:
    """The inputs, and the first and the next log, of each table."""
    lineage = Lineage()
    for one in edits:
        lineage.note(one)
    return {
        number: (origin.inputs, origin.first_log, origin.next_log)
        for number, origin in lineage.origins.items()
    }


def test_a_flush_wrote_the_logs_before_the_one_that_follows() -> None:
    assert origins(edit(log=3), edit((0, 5), log=6), edit((0, 9), log=8)) == {
        5: ([], 3, 6),
        9: ([], 6, 8),
    }


def test_a_compaction_made_tables_of_those_that_it_removed() -> None:
    made = origins(edit((0, 5), log=3), edit((1, 7), (1, 8), removed=((0, 5), (1, 4))))
    assert made[7] == made[8] == ([4, 5], 0, 0)


def test_a_table_that_is_moved_keeps_its_origin() -> None:
    made = origins(edit(log=3), edit((0, 5), log=6), edit((1, 5), removed=((0, 5),)))
    assert made == {5: ([], 3, 6)}


def test_the_origin_of_the_tables_of_the_first_record_is_unknown() -> None:
    assert origins(edit((2, 4)), edit(log=9)) == {4: ([], 0, 0)}
    assert origins(edit((2, 4), log=9)) == {4: ([], 0, 0)}


def test_sequences_end_with_those_of_the_edit() -> None:
    lineage = Lineage()
    first, second = edit((0, 5), log=3), edit((0, 7), log=6)
    first.last_sequence = 40
    lineage.note(first)
    lineage.note(second)
    assert [one.last_sequence for one in lineage.origins.values()] == [40, 40]


def test_tables_are_older_than_the_log_that_begins_with_or_after_their_edit() -> None:
    lineage = Lineage()
    first = edit((2, 4), (0, 5), log=3)
    first.comparator = "leveldb.BytewiseComparator"
    ingested = edit((1, 11))
    for one in (
        first,
        edit((0, 7), log=6),
        edit((0, 9), log=8),
        edit((1, 10), removed=((0, 7), (0, 5))),
        ingested,
        edit(log=12),
        edit((1, 13)),
    ):
        lineage.note(one)
    bounds = {number: origin.older_than_log for number, origin in lineage.origins.items()}
    assert bounds == {4: 6, 5: 6, 7: 6, 9: 8, 10: 6, 11: 12, 13: 0}
    assert [lineage.origins[number].level for number in (4, 5, 10)] == [2, 0, 1]


def test_a_flush_whose_first_log_is_unknown_is_older_than_the_log_that_its_edit_names() -> None:
    lineage = Lineage()
    lineage.note(edit((0, 4)))
    lineage.note(edit((0, 5), log=7))
    assert {one: lineage.origins[one].older_than_log for one in (4, 5)} == {4: 7, 5: 7}
