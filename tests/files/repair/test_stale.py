"""lsmkv.repair.stale: which entries a lost block may have replaced."""

from __future__ import annotations

import pytest

from lsmkv.engine.format.keys import KIND_VALUE, InternalKeyComparator, pack
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE
from lsmkv.files.repair.damaged_table import Hole
from lsmkv.files.repair.report import TableSurvey
from lsmkv.files.repair.stale import Shadow, StaleTest, shadows_on

ORDER = InternalKeyComparator(BYTEWISE)


def hole(lower: bytes | None, upper: bytes | None) -> Hole:
    """A lost block whose entries have the sequences 10 to 20."""
    return Hole(
        0,
        100,
        "bad checksum",
        None if lower is None else pack(lower, 20, KIND_VALUE),
        None if upper is None else pack(upper, 10, KIND_VALUE),
        [],
    )


def table(number: int, level: int, *holes: Hole, keys: bytes = b"az") -> TableSurvey:
    survey = TableSurvey(f"{number:06d}.ldb", number, 1000, level)
    survey.entries = 26
    survey.smallest = pack(keys[:1], 5, KIND_VALUE)
    survey.largest = pack(keys[1:], 5, KIND_VALUE)
    survey.holes = list(holes)
    return survey


def stale_keys(shadows: list[Shadow], keys: bytes = b"abcdefghij", sequence: int = 5) -> bytes:
    test = StaleTest(ORDER)
    test.add(shadows)
    assert bool(test) == bool(shadows)
    found = bytes(key for key in keys if test.is_stale(pack(bytes([key]), sequence, KIND_VALUE)))
    test.restart()
    assert found == bytes(
        key for key in keys if test.is_stale(pack(bytes([key]), sequence, KIND_VALUE))
    )
    return found


@pytest.mark.parametrize(
    ("holes", "expected"),
    [
        ([hole(b"c", b"e")], b"cde"),
        ([hole(None, b"b")], b"ab"),
        ([hole(b"i", None)], b"ij"),
        ([hole(None, None)], b"abcdefghij"),
        ([hole(b"b", b"c"), hole(b"c", b"d"), hole(b"h", b"h")], b"bcdh"),
    ],
)
def test_older_tables_have_stale_entries_within_a_holes_bounds(
    holes: list[Hole], expected: bytes
) -> None:
    newer, older = table(9, 1, *holes), table(5, 2)
    assert stale_keys(shadows_on(older, newer, newer.holes, True, ORDER)) == expected


def test_an_entry_that_sorts_before_the_hole_is_not_stale() -> None:
    """The lower bound is the last entry before the hole: what is newer than it lies before, too."""
    shadows = shadows_on(table(5, 2), table(9, 1), [hole(b"c", b"e")], True, ORDER)
    assert stale_keys(shadows, b"c", sequence=25) == b""
    assert stale_keys(shadows, b"d", sequence=25) == b"d"


@pytest.mark.parametrize(
    ("asked", "damaged", "is_older"),
    [
        ((5, 2), (9, 1), True),  # a deeper level
        ((5, 1), (9, 2), False),
        ((5, 1), (9, 1), False),  # the same level: disjoint
        ((5, 0), (9, 0), True),  # level 0 goes by the numbers
        ((9, 0), (5, 0), False),
        ((5, 1), (9, 0), True),
    ],
)
def test_the_level_tells_which_table_is_older(
    asked: tuple[int, int], damaged: tuple[int, int], is_older: bool
) -> None:
    found = shadows_on(table(*asked), table(*damaged), [hole(b"c", b"d")], True, ORDER)
    assert (b"c" in stale_keys(found)) == is_older


def test_without_levels_every_other_table_counts_as_older() -> None:
    for level in (0, 1, 2):
        found = shadows_on(table(9, level), table(5, 1), [hole(b"c", b"e")], False, ORDER)
        assert stale_keys(found) == b"cde"


def test_a_hole_outside_a_tables_range_says_nothing_of_it() -> None:
    damaged = table(9, 1, hole(b"c", b"e"))
    assert shadows_on(table(5, 2, keys=b"fz"), damaged, damaged.holes, True, ORDER) == []
    assert shadows_on(table(5, 2, keys=b"ab"), damaged, damaged.holes, True, ORDER) == []
    empty = table(5, 2)
    empty.entries = 0
    assert shadows_on(empty, damaged, damaged.holes, True, ORDER) == []


@pytest.mark.parametrize("level", [0, 1])
def test_versions_of_the_last_key_may_go_on_behind_a_hole(level: int) -> None:
    """In the damaged table itself: those versions are older than the ones that are lost."""
    damaged = table(9, level, hole(b"c", b"e"))
    shadows = shadows_on(damaged, damaged, damaged.holes, True, ORDER)
    assert stale_keys(shadows, sequence=5) == b"e"
    assert stale_keys(shadows, sequence=15) == b""  # not behind the hole


def test_bounds_go_by_the_comparator() -> None:
    order = InternalKeyComparator(REVERSE_BYTEWISE)
    damaged = table(9, 1, hole(b"e", b"c"))
    test = StaleTest(order)
    test.add(shadows_on(table(5, 2, keys=b"za"), damaged, damaged.holes, True, order))
    asked = [key for key in b"fedcb" if test.is_stale(pack(bytes([key]), 5, KIND_VALUE))]
    assert asked == list(b"edc")
