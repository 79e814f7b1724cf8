from __future__ import annotations

from lsmkv.files import Edit, TableFile, parse_key
from lsmkv.tools.inspect.edits import change_of, why, words_for


def table(number: int, size: int = 1000) -> TableFile:
    return TableFile(number, size, parse_key(b"a" + bytes(8)), parse_key(b"b" + bytes(8)))


def edit(added: list[tuple[int, int]] = [], removed: list[tuple[int, int]] = []) -> Edit:  # noqa: B006
    files = tuple((level, table(number)) for level, number in added)
    return Edit(0, 0, b"", None, None, None, None, None, (), tuple(sorted(removed)), files)


def test_the_first_edit_writes_nothing() -> None:
    first = edit(added=[(1, 5)])
    assert change_of(first, True) == ("start", 0, 0)
    assert words_for(first, change_of(first, True)) == "the MANIFEST begins: 1 table on level 1"


def test_a_compaction_writes_what_it_adds() -> None:
    merged = edit(added=[(1, 9), (1, 10)], removed=[(0, 5), (0, 6), (1, 7)])
    assert change_of(merged, False) == ("compaction", 0, 2000)
    assert words_for(merged, change_of(merged, False)) == (
        "compaction: 3 tables of levels 0 and 1 become 2 tables on level 1, 2.0 KiB"
    )


def test_a_move_writes_nothing() -> None:
    moved = edit(added=[(2, 5)], removed=[(1, 5)])
    assert change_of(moved, False) == ("move", 0, 0)
    assert "without writing" in words_for(moved, change_of(moved, False))


def test_a_compaction_may_leave_nothing() -> None:
    dropped = edit(removed=[(1, 5)])
    assert change_of(dropped, False) == ("compaction", 0, 0)
    assert "with no entries left" in words_for(dropped, change_of(dropped, False))


def test_counters_alone() -> None:
    assert change_of(edit(), False).kind == "counters"
    assert words_for(edit(), change_of(edit(), False)) == "counters only: no table changes"


def test_only_a_flush_past_level_0_needs_a_reason() -> None:
    deep, deeper, flat = edit(added=[(1, 5)]), edit(added=[(2, 5)]), edit(added=[(0, 5)])
    assert why(deep, change_of(deep, False)).startswith("It skips level 0, because no table of")
    assert why(deeper, change_of(deeper, False)).startswith("It skips levels 0 and 1, because")
    assert why(flat, change_of(flat, False)) == ""
    merged = edit(added=[(1, 9)], removed=[(0, 5)])
    assert why(merged, change_of(merged, False)) == ""
    assert why(deep, change_of(deep, True)) == ""
