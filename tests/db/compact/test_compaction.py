"""Which files are picked, and that a merge changes no reader's results."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lsmkv.counters import NUM_LEVELS, Counters, ReadCounters
from lsmkv.db.compact.compaction import CompactionJob
from lsmkv.db.compact.picking import Compaction, compaction_of_range, pick_compaction
from lsmkv.db.tree.table_cache import TableCache
from lsmkv.db.tree.table_output import write_entries
from lsmkv.db.tree.version import Version
from lsmkv.env.base import Directory
from lsmkv.env.faulty import FaultyEnv
from lsmkv.filter.bloom import BloomFilterPolicy
from lsmkv.format.filenames import table_name
from lsmkv.format.key_order import KeyOrder
from lsmkv.format.keys import (
    KIND_DELETION,
    KIND_VALUE,
    TAG_SIZE,
    Entry,
    InternalKeyComparator,
    pack,
    sequence_in,
)
from lsmkv.format.version_edit import FileMetaData
from lsmkv.options import Options
from lsmkv.table.inspection import check
from lsmkv.util.comparator import BYTEWISE, REVERSE_BYTEWISE, CallableComparator, Comparator
from lsmkv.util.compression import NO_COMPRESSION

MIB = 1 << 20
OPTIONS = Options(max_file_size=2 * MIB)
NO_POINTERS: list[bytes | None] = [None] * NUM_LEVELS


def file(
    number: int,
    smallest: bytes,
    largest: bytes,
    *,
    size: int = MIB,
    sequences: tuple[int, int] = (100, 100),
) -> FileMetaData:
    return FileMetaData(
        number, size, pack(smallest, sequences[0], 1), pack(largest, sequences[1], 1)
    )


def version(
    levels: Mapping[int, Iterable[FileMetaData]], comparator: Comparator = BYTEWISE
) -> Version:
    made = Version(
        InternalKeyComparator(comparator),
        [list(levels.get(level, [])) for level in range(NUM_LEVELS)],
    )
    made.check()
    return made


def numbers(files: Iterable[FileMetaData]) -> list[int]:
    return [each.number for each in files]


def picked(
    of: Version, pointers: list[bytes | None] | None = None, options: Options = OPTIONS
) -> Compaction:
    compaction = pick_compaction(of, pointers or NO_POINTERS, options)
    assert compaction is not None
    return compaction


def sought(of: Version, number: int) -> Compaction:
    """The seek compaction of this file."""
    for level, files in enumerate(of.levels):
        for each in files:
            if each.number == number:
                of.file_to_compact = (level, each)
    return picked(of)


# Picking: what is due


def test_no_compaction_is_needed() -> None:
    assert pick_compaction(version({}), NO_POINTERS, OPTIONS) is None
    of = version({0: [file(number, b"a", b"b") for number in range(1, 4)]})
    assert pick_compaction(of, NO_POINTERS, OPTIONS) is None
    of = version({1: [file(1, b"a", b"b", size=10 * MIB - 1)]})
    assert pick_compaction(of, NO_POINTERS, OPTIONS) is None
    of = version({6: [file(1, b"a", b"b", size=1 << 50)]})
    assert pick_compaction(of, NO_POINTERS, OPTIONS) is None


def test_four_files_of_level_0() -> None:
    of = version({0: [file(number, b"a", b"z") for number in range(1, 5)]})
    compaction = picked(of)
    assert compaction.level == 0
    assert numbers(compaction.inputs) == [4, 3, 2, 1]
    assert compaction.next_inputs == []
    assert not compaction.by_seeks
    assert compaction.input_size == 4 * MIB


def test_level_0_takes_all_that_overlaps_and_no_more() -> None:
    of = version(
        {
            0: [
                file(1, b"a", b"c"),
                file(2, b"b", b"f"),
                file(3, b"f", b"g"),
                file(4, b"m", b"p"),
                file(5, b"x", b"z"),
            ],
            1: [file(10, b"a", b"b"), file(11, b"g", b"h"), file(12, b"i", b"n")],
        }
    )
    compaction = picked(of)
    assert numbers(compaction.inputs) == [3, 2, 1]
    assert numbers(compaction.next_inputs) == [10, 11]


def test_a_level_that_is_too_large() -> None:
    of = version(
        {
            1: [file(number, b"%d" % number, b"%d5" % number, size=6 * MIB) for number in (1, 2)],
            2: [file(10, b"0", b"1"), file(11, b"15", b"2"), file(12, b"3", b"4")],
            3: [file(20, b"1", b"11"), file(21, b"2", b"3"), file(22, b"8", b"9")],
        }
    )
    compaction = picked(of)
    assert compaction.level == 1
    assert numbers(compaction.inputs) == [1, 2]  # both, since that takes no more of level 2
    assert numbers(compaction.next_inputs) == [10, 11]
    assert numbers(compaction.grandparents) == [20, 21]


def turn_taking() -> Version:
    """A level of five files that are far from each other."""
    return version({1: [file(at, b"%d0" % at, b"%d5" % at, size=4 * MIB) for at in range(1, 6)]})


def test_the_files_of_a_level_are_compacted_in_turn() -> None:
    pointers = list(NO_POINTERS)
    turns = []
    for _ in range(12):
        compaction = picked(turn_taking(), pointers)
        turns += numbers(compaction.inputs)
        ((level, pointer),) = compaction.edit([]).compact_pointers
        assert level == 1
        assert pointer == compaction.inputs[-1].largest
        pointers[1] = pointer
    assert turns == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2]


@pytest.mark.parametrize(
    ("pointer", "number"),
    [
        (pack(b"", 1, 1), 1),
        (pack(b"12", 1, 1), 1),
        (pack(b"15", 101, 1), 1),  # before the end of the first file
        (pack(b"15", 100, 1), 2),  # the very end of it
        (pack(b"2", 1, 1), 2),
        (pack(b"55", 100, 1), 1),
        (pack(b"9", 1, 1), 1),
    ],
)
def test_where_a_turn_begins(pointer: bytes, number: int) -> None:
    pointers = list(NO_POINTERS)
    pointers[1] = pointer
    pointers[2] = pack(b"3", 1, 1)  # of another level
    assert numbers(picked(turn_taking(), pointers).inputs) == [number]


def test_turns_in_level_0_go_by_key() -> None:
    of = version({0: [file(5 - at, b"%d" % at, b"%d" % at) for at in range(5)]})
    pointers = list(NO_POINTERS)
    assert numbers(picked(of, pointers).inputs) == [5]
    pointers[0] = pack(b"2", 100, 1)
    assert numbers(picked(of, pointers).inputs) == [2]


# Picking: what comes along


def wide(next_size: int = MIB, size: int = MIB, extra: FileMetaData | None = None) -> Version:
    """One file of level 2 (a seek compaction); the file below it covers its neighbours too."""
    return version(
        {
            2: [
                file(1, b"a", b"b", size=size),
                file(2, b"c", b"d", size=size),
                file(3, b"e", b"f", size=size),
            ],
            3: [file(10, b"a", b"f", size=next_size), *([] if extra is None else [extra])],
        }
    )


def test_inputs_are_widened_where_that_is_free() -> None:
    compaction = sought(wide(), 2)
    assert numbers(compaction.inputs) == [1, 2, 3]
    assert numbers(compaction.next_inputs) == [10]
    assert compaction.by_seeks


def test_inputs_are_not_widened_where_the_next_level_would_add_files() -> None:
    of = version(
        {
            2: [file(1, b"a", b"d"), file(2, b"e", b"h")],
            3: [file(10, b"c", b"f"), file(11, b"g", b"k")],
        }
    )
    # Widening file 1 by file 2 would bring file 11.
    compaction = sought(of, 1)
    assert numbers(compaction.inputs) == [1]
    assert numbers(compaction.next_inputs) == [10]


def test_inputs_are_widened_up_to_25_files_worth() -> None:
    limit = 25 * OPTIONS.max_file_size
    compaction = sought(wide(next_size=limit - 3 * MIB - 1), 2)
    assert numbers(compaction.inputs) == [1, 2, 3]
    compaction = sought(wide(next_size=limit - 3 * MIB), 2)
    assert numbers(compaction.inputs) == [2]
    assert numbers(compaction.next_inputs) == [10]


def test_level_0_is_widened_too() -> None:
    of = version(
        {
            0: [file(1, b"a", b"b"), file(2, b"e", b"f")],
            1: [file(10, b"a", b"z")],
        }
    )
    compaction = sought(of, 1)
    assert numbers(compaction.inputs) == [2, 1]
    assert numbers(compaction.next_inputs) == [10]


def test_grandparents_of_the_last_levels() -> None:
    of = version({4: [file(1, b"a", b"b")], 6: [file(2, b"b", b"c"), file(3, b"d", b"e")]})
    assert numbers(sought(of, 1).grandparents) == [2]
    of = version({5: [file(1, b"a", b"b")], 6: [file(2, b"b", b"c")]})
    compaction = sought(of, 1)
    assert numbers(compaction.next_inputs) == [2]
    assert compaction.grandparents == []


# Picking: one user key in two files


def split_key() -> list[FileMetaData]:
    """The versions of b"k" go on in the next file, and those of b"p" over three."""
    return [
        file(1, b"a", b"k", sequences=(100, 50)),
        file(2, b"k", b"p", sequences=(49, 30)),
        file(3, b"p", b"p", sequences=(29, 20)),
        file(4, b"p", b"z", sequences=(19, 10)),
    ]


@pytest.mark.parametrize(
    ("first", "taken"), [(1, [1, 2, 3, 4]), (2, [2, 3, 4]), (3, [3, 4]), (4, [4])]
)
def test_newer_versions_never_move_down_alone(first: int, taken: list[int]) -> None:
    assert numbers(sought(version({2: split_key()}), first).inputs) == taken


def test_a_split_key_in_the_next_level_joins_the_inputs() -> None:
    of = version({1: [file(9, b"i", b"j")], 2: [file(5, b"g", b"i"), *split_key()[1:]]})
    assert numbers(sought(of, 9).next_inputs) == [5]
    of = version({1: [file(9, b"b", b"c")], 2: split_key()})
    assert numbers(sought(of, 9).next_inputs) == [1, 2, 3, 4]


def test_a_split_key_where_inputs_are_widened() -> None:
    of = version(
        {
            1: [
                file(20, b"a", b"b"),
                file(21, b"c", b"k", sequences=(100, 50)),
                file(22, b"k", b"l", sequences=(49, 40)),
            ],
            2: [file(30, b"a", b"i")],
        }
    )
    compaction = sought(of, 20)
    assert numbers(compaction.inputs) == [20, 21, 22]
    assert numbers(compaction.next_inputs) == [30]


def test_split_keys_in_another_order() -> None:
    folding = CallableComparator(
        lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()), "test.Folding"
    )
    of = version(
        {2: [file(1, b"a", b"K", sequences=(9, 8)), file(2, b"k", b"z", sequences=(7, 6))]}, folding
    )
    assert numbers(sought(of, 1).inputs) == [1, 2]
    of = version(
        {2: [file(1, b"z", b"k", sequences=(9, 8)), file(2, b"k", b"a", sequences=(7, 6))]},
        REVERSE_BYTEWISE,
    )
    assert numbers(sought(of, 1).inputs) == [1, 2]


# Picking: by seeks


def test_a_seek_compaction_waits_until_no_level_is_too_large() -> None:
    of = version({1: [file(1, b"a", b"b"), file(2, b"c", b"d")]})
    compaction = sought(of, 2)
    assert (compaction.level, numbers(compaction.inputs)) == (1, [2])
    assert compaction.by_seeks
    of = version({0: [file(at, b"a", b"b") for at in range(1, 5)], 1: [file(9, b"c", b"d")]})
    compaction = sought(of, 9)
    assert (compaction.level, numbers(compaction.inputs)) == (0, [4, 3, 2, 1])
    assert not compaction.by_seeks


def test_seeks_in_level_0_take_all_that_overlaps() -> None:
    of = version({0: [file(1, b"a", b"c"), file(2, b"b", b"f"), file(3, b"x", b"z")]})
    assert numbers(sought(of, 2).inputs) == [2, 1]


def test_seek_compaction_can_be_turned_off() -> None:
    of = version({1: [file(1, b"a", b"b")]})
    of.file_to_compact = (1, of.levels[1][0])
    options = Options(seek_compaction=False)
    assert pick_compaction(of, NO_POINTERS, options) is None
    full = version({0: [file(at, b"a", b"b") for at in range(1, 5)]})
    assert picked(full, options=options).level == 0


# Moving a file as it is


def test_trivial_moves() -> None:
    of = version({1: [file(1, b"a", b"b"), file(2, b"c", b"d")]})
    assert sought(of, 1).is_trivial_move(OPTIONS)
    of = version({1: [file(1, b"a", b"k")], 2: [file(10, b"k", b"l")]})
    assert not sought(of, 1).is_trivial_move(OPTIONS)  # something to merge with
    of = version({2: split_key()})
    assert not sought(of, 1).is_trivial_move(OPTIONS)  # more than one
    assert sought(of, 4).is_trivial_move(OPTIONS)


def test_no_trivial_move_over_much_of_the_level_after() -> None:
    limit = 10 * OPTIONS.max_file_size
    for size, trivial in ((limit, True), (limit + 1, False)):
        of = version({1: [file(1, b"a", b"k")], 3: [file(10, b"a", b"l", size=size)]})
        assert sought(of, 1).is_trivial_move(OPTIONS) == trivial


def test_the_edit_of_a_move() -> None:
    of = version({1: [file(1, b"a", b"b"), file(2, b"c", b"d")]})
    compaction = sought(of, 1)
    edit = compaction.edit(compaction.inputs)
    assert edit.deleted_files == {(1, 1)}
    assert edit.new_files == [(2, compaction.inputs[0])]
    after = of.apply(edit)
    after.check()
    assert [numbers(files) for files in after.levels[:3]] == [[], [2], [1]]


def test_the_edit_of_a_merge() -> None:
    of = version({0: [file(2, b"a", b"z"), file(1, b"b", b"c")], 1: [file(3, b"c", b"d")]})
    compaction = sought(of, 1)
    edit = compaction.edit([file(8, b"a", b"k"), file(9, b"l", b"z")])
    assert edit.deleted_files == {(0, 1), (0, 2), (1, 3)}
    assert [(level, each.number) for level, each in edit.new_files] == [(1, 8), (1, 9)]
    assert edit.compact_pointers == [(0, pack(b"z", 100, 1))]


# Ranges by hand


def ranged(
    of: Version, level: int, begin: bytes | None, end: bytes | None
) -> tuple[list[int], bytes | None] | None:
    found = compaction_of_range(of, level, begin, end, OPTIONS)
    if found is None:
        return None
    assert found[0].level == level
    return numbers(found[0].inputs), found[1]


def test_a_range_that_the_level_does_not_hold() -> None:
    of = version({1: [file(1, b"c", b"d")]})
    assert ranged(of, 1, b"a", b"b") is None
    assert ranged(of, 1, b"e", None) is None
    assert ranged(of, 0, None, None) is None
    assert ranged(of, 1, None, b"c") == ([1], None)
    assert ranged(of, 1, b"d", None) == ([1], None)


def test_a_wide_range_goes_in_steps() -> None:
    of = version({1: [file(at, b"%d0" % at, b"%d5" % at, size=MIB) for at in range(1, 8)]})
    begin: bytes | None = None
    steps: list[list[int]] = []
    while True:
        found = ranged(of, 1, begin, b"65")
        assert found is not None
        steps.append(found[0])
        begin = found[1]
        if begin is None:
            break
        gone = set(found[0])
        of = version({1: [each for each in of.levels[1] if each.number not in gone]})
    assert steps == [[1, 2], [3, 4], [5, 6]]


def test_a_step_that_ends_with_the_range() -> None:
    of = version({1: [file(at, b"%d0" % at, b"%d5" % at, size=2 * MIB) for at in range(1, 4)]})
    assert ranged(of, 1, b"2", b"3") == ([2], None)
    assert ranged(of, 1, b"2", b"30") == ([2], b"25")
    assert ranged(of, 1, b"26", b"30") == ([3], None)


def test_level_0_goes_at_once() -> None:
    of = version({0: [file(at, b"a", b"z", size=100 * MIB) for at in range(1, 4)]})
    assert ranged(of, 0, b"k", b"k") == ([3, 2, 1], None)


def test_a_range_is_widened_as_any_compaction_is() -> None:
    of = version({2: split_key(), 3: [file(10, b"a", b"c"), file(11, b"y", b"z")]})
    found = compaction_of_range(of, 2, b"b", b"c", OPTIONS)
    assert found is not None
    assert numbers(found[0].inputs) == [1, 2, 3, 4]
    assert numbers(found[0].next_inputs) == [10, 11]


# Running


def newest_first(entries: Iterable[Entry], order: KeyOrder) -> list[Entry]:
    """Sorted by user key, and the versions of one key newest first."""
    return sorted(entries, key=lambda entry: (order.of(entry[0]), -sequence_in(entry[1])))


def is_value(entry: Entry) -> bool:
    return entry[1][0] == KIND_VALUE


class Bench:
    """Real tables in memory."""

    def __init__(
        self,
        comparator: Comparator = BYTEWISE,
        max_file_size: int = 2 * MIB,
        block_size: int = 4096,
    ) -> None:
        self.env = FaultyEnv()
        self.directory: Directory = self.env.open_directory("db", create=True)
        self.comparator = InternalKeyComparator(comparator)
        self.order = KeyOrder(comparator)
        self.options = Options(
            comparator=comparator,
            filter_policy=BloomFilterPolicy(10),
            max_file_size=max_file_size,
            block_size=block_size,
            compression=NO_COMPRESSION,
        )
        self.tables = TableCache(self.directory, self.options, Counters())
        self.levels: list[list[FileMetaData]] = [[] for _ in range(NUM_LEVELS)]
        self.next_number = 100

    def new_number(self) -> int:
        self.next_number += 1
        return self.next_number

    def add(self, level: int, *entries: Entry) -> FileMetaData:
        """A table of these entries, which come in any order."""
        ordered = newest_first(entries, self.order)
        columns = [key for key, _ in ordered], [tagged for _, tagged in ordered]
        made = write_entries([columns], self.directory, self.new_number(), self.options)
        self.levels[level].append(made)
        return made

    def version(self) -> Version:
        made = Version(self.comparator, [list(files) for files in self.levels])
        made.check()
        return made

    def job(self, compaction: Compaction, oldest_pinned: int) -> CompactionJob:
        return CompactionJob(
            compaction, self.directory, self.tables, self.options, self.new_number, oldest_pinned
        )

    def compact(
        self, level: int, oldest_pinned: int, begin: bytes | None = None, end: bytes | None = None
    ) -> list[list[Entry]]:
        """Merge a range of a level into the next; the entries of the output tables."""
        of = self.version()
        found = compaction_of_range(of, level, begin, end, self.options)
        assert found is not None
        outputs = self.job(found[0], oldest_pinned).run(lambda: None)
        after = of.apply(found[0].edit(outputs))
        after.check()
        self.levels = after.levels
        return [self.entries(each) for each in outputs]

    def entries(self, of: FileMetaData) -> list[Entry]:
        check(self.tables.find(of))
        chunks = self.tables.entries(of, ReadCounters(), 1000, 1000)
        found = [entry for chunk in chunks for entry in chunk]
        assert of.smallest == found[0][0] + found[0][1][:TAG_SIZE]
        assert of.largest == found[-1][0] + found[-1][1][:TAG_SIZE]
        return found

    def tables_left(self) -> set[str]:
        return set(self.directory.names())


def value(key: bytes, sequence: int, data: bytes = b"v") -> Entry:
    return key, pack(b"", sequence, KIND_VALUE) + data


def deletion(key: bytes, sequence: int) -> Entry:
    return key, pack(b"", sequence, KIND_DELETION)


ALL_ARE_OLDER = 1 << 50
"""As the oldest pinned sequence: all writes are older."""


def test_newer_values_win() -> None:
    bench = Bench()
    bench.add(1, value(b"a", 1, b"oldest"), value(b"d", 2, b"oldest"))
    bench.add(0, value(b"a", 3), value(b"b", 4))
    bench.add(0, value(b"b", 5, b"new"), value(b"c", 6))
    assert bench.compact(0, ALL_ARE_OLDER) == [
        [value(b"a", 3), value(b"b", 5, b"new"), value(b"c", 6), value(b"d", 2, b"oldest")]
    ]
    assert [len(files) for files in bench.levels] == [0, 1, 0, 0, 0, 0, 0]


def test_a_deletion_goes_when_nothing_lies_deeper() -> None:
    bench = Bench()
    bench.add(0, deletion(b"k", 9), value(b"l", 10))
    bench.add(1, value(b"k", 5))
    assert bench.compact(0, ALL_ARE_OLDER) == [[value(b"l", 10)]]


def test_a_compaction_may_leave_nothing() -> None:
    bench = Bench()
    bench.add(0, deletion(b"k", 9))
    assert bench.compact(0, ALL_ARE_OLDER) == []
    assert [len(files) for files in bench.levels] == [0] * NUM_LEVELS


@pytest.mark.parametrize("deeper", range(2, NUM_LEVELS))
@pytest.mark.parametrize("reach", ["the key", "a range round it", "its edge"])
def test_a_deletion_stays_while_a_deeper_level_may_hold_the_key(deeper: int, reach: str) -> None:
    bench = Bench()
    bench.add(0, deletion(b"k", 9))
    if reach == "the key":
        bench.add(deeper, value(b"k", 5))
    elif reach == "a range round it":
        bench.add(deeper, value(b"a", 5), value(b"z", 5))
    else:
        bench.add(deeper, value(b"a", 5), value(b"k", 5))
    assert bench.compact(0, ALL_ARE_OLDER) == [[deletion(b"k", 9)]]


@pytest.mark.parametrize("deeper", range(2, NUM_LEVELS))
def test_a_deletion_goes_past_deeper_files_that_cannot_hold_the_key(deeper: int) -> None:
    bench = Bench()
    bench.add(0, deletion(b"k", 9))
    bench.add(deeper, value(b"a", 5), value(b"j", 5))
    bench.add(deeper, value(b"l", 5), value(b"z", 5))
    assert bench.compact(0, ALL_ARE_OLDER) == []


def test_the_last_level_has_nothing_below() -> None:
    bench = Bench()
    bench.add(5, deletion(b"k", 9), value(b"z", 1))
    bench.add(6, value(b"k", 5))
    assert bench.compact(5, ALL_ARE_OLDER) == [[value(b"z", 1)]]


@pytest.mark.parametrize(
    ("oldest_pinned", "kept"),
    [(8, [8]), (7, [8, 6]), (6, [8, 6]), (5, [8, 6, 4]), (4, [8, 6, 4]), (3, [8, 6, 4, 2])],
)
def test_visible_versions_are_kept(oldest_pinned: int, kept: list[int]) -> None:
    """A version at the very sequence of the oldest reader is the one that it sees."""
    bench = Bench()
    bench.add(0, value(b"k", 8), value(b"k", 6))
    bench.add(1, value(b"k", 4), value(b"k", 2))
    assert bench.compact(0, oldest_pinned) == [[value(b"k", sequence) for sequence in kept]]


@pytest.mark.parametrize(
    ("oldest_pinned", "kept"),
    [
        (9, []),  # visible to every reader: it goes with what it hides
        (8, []),
        (7, [deletion(b"k", 8), value(b"k", 5)]),
        (5, [deletion(b"k", 8), value(b"k", 5)]),
        (4, [deletion(b"k", 8), value(b"k", 5)]),
    ],
)
def test_a_deletion_newer_than_a_pinned_sequence_stays(
    oldest_pinned: int, kept: list[Entry]
) -> None:
    bench = Bench()
    bench.add(0, deletion(b"k", 8))
    bench.add(1, value(b"k", 5))
    assert bench.compact(0, oldest_pinned) == ([kept] if kept else [])


def test_outputs_are_split_by_size() -> None:
    bench = Bench(max_file_size=5000, block_size=500)
    bench.add(1, *(value(b"%04d" % number, 5, bytes(90)) for number in range(0, 1000, 2)))
    bench.add(2, *(value(b"%04d" % number, 3, bytes(90)) for number in range(1, 1000, 2)))
    outputs = bench.compact(1, ALL_ARE_OLDER)
    assert [row[0] for rows in outputs for row in rows] == [b"%04d" % n for n in range(1000)]
    sizes = [each.size for each in bench.levels[2]]
    assert len(sizes) > 15
    assert all(5000 < size < 7500 for size in sizes[:-1])


def test_one_user_key_is_never_split_over_two_files() -> None:
    bench = Bench(max_file_size=2000, block_size=200)
    rows = [
        value(b"%02d" % key, sequence, bytes(100)) for key in range(6) for sequence in range(1, 60)
    ]
    bench.add(0, *rows)
    outputs = bench.compact(0, 0)  # a reader sees each version
    assert len(outputs) == 6
    assert [{row[0] for row in rows} for rows in outputs] == [{b"%02d" % key} for key in range(6)]
    assert sum(map(len, outputs)) == 6 * 59


def test_one_user_key_in_several_spellings_is_not_split_either() -> None:
    folding = CallableComparator(
        lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()), "test.Folding"
    )
    bench = Bench(folding, max_file_size=1000, block_size=100)
    spellings = [b"abc", b"Abc", b"aBc", b"abC", b"ABC"]
    rows = [value(spellings[number % 5], number, bytes(100)) for number in range(1, 50)]
    bench.add(0, *rows, *(value(b"x", number, bytes(100)) for number in range(1, 30)))
    outputs = bench.compact(0, 0)
    assert [{row[0].lower() for row in rows} for rows in outputs] == [{b"abc"}, {b"x"}]


@pytest.mark.parametrize("comparator", [BYTEWISE, REVERSE_BYTEWISE], ids=lambda each: each.name)
def test_outputs_are_cut_where_they_cover_much_of_the_level_after(comparator: Comparator) -> None:
    """No output may overlap more than ten files' worth of the grandparents."""
    bench = Bench(comparator, max_file_size=1024, block_size=200)
    names = [b"%03d" % number for number in range(0, 60)]
    if comparator is REVERSE_BYTEWISE:
        names.reverse()
    compare = comparator.compare
    for at in range(0, 60, 2):  # 30 grandparents of about a file's worth and a half
        bench.add(2, *(value(names[at + step], 1, bytes(700)) for step in range(2)))
    sizes = {each.size for each in bench.levels[2]}
    assert len(sizes) == 1
    size = sizes.pop()
    bench.add(0, *(value(name, 9, b"") for name in names))
    compacted = bench.compact(0, ALL_ARE_OLDER)
    outputs = bench.levels[1]
    assert len(outputs) > 1
    for each in outputs:
        covered = [
            other
            for other in bench.levels[2]
            if compare(other.largest[:-8], each.smallest[:-8]) >= 0
            and compare(other.smallest[:-8], each.largest[:-8]) <= 0
        ]
        assert (len(covered) - 1) * size <= 10 * 1024 + size
    assert [row[0] for rows in compacted for row in rows] == names
    few = Bench(comparator, max_file_size=1 << 20)
    few.add(0, *(value(name, 9, b"") for name in names))
    assert len(few.compact(0, ALL_ARE_OLDER)) == 1


# Running: durability and failures


def prepared() -> tuple[Bench, Compaction]:
    """A compaction of a few blocks into a few tables."""
    bench = Bench(max_file_size=3000, block_size=300)
    rows = [value(b"%04d" % number, 5, bytes(50)) for number in range(200)]
    bench.add(0, *rows[::2])
    bench.add(1, *rows[1::2])
    found = compaction_of_range(bench.version(), 0, None, None, bench.options)
    assert found is not None
    return bench, found[0]


def test_outputs_are_durable_when_run_returns() -> None:
    bench, compaction = prepared()
    outputs = bench.job(compaction, ALL_ARE_OLDER).run(lambda: None)
    assert len(outputs) > 3
    assert bench.env.history[-1] == "dir_sync"
    with bench.env.power_cut().open_directory("db") as survived:
        for each in outputs:
            assert survived.size(table_name(each.number)) == each.size


def test_file_numbers_are_taken_when_an_output_begins() -> None:
    bench, compaction = prepared()
    before = bench.next_number
    outputs = bench.job(compaction, ALL_ARE_OLDER).run(lambda: None)
    assert numbers(outputs) == list(range(before + 1, bench.next_number + 1))


def test_reads_are_counted_and_go_past_the_block_cache() -> None:
    bench, compaction = prepared()
    job = bench.job(compaction, ALL_ARE_OLDER)
    job.run(lambda: None)
    blocks = sum(
        bench.tables.find(each).num_blocks for each in compaction.inputs + compaction.next_inputs
    )
    assert job.reads.blocks_read == blocks
    assert job.reads.block_cache_hits == 0


def test_between_is_called_often_and_may_end_the_job() -> None:
    bench = Bench(max_file_size=60_000)
    rows = [value(b"%04d" % number, 5, bytes(150)) for number in range(3000)]
    bench.add(0, *rows[::2])
    bench.add(1, *rows[1::2])
    found = compaction_of_range(bench.version(), 0, None, None, bench.options)
    assert found is not None
    compaction = found[0]
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1

    before = bench.tables_left()
    for each in bench.job(compaction, ALL_ARE_OLDER).run(count):
        bench.directory.remove(table_name(each.number))
    assert calls > 10
    for stop_at in range(1, calls + 1):
        calls = 0

        def stop(stop_at: int = stop_at) -> None:
            nonlocal calls
            calls += 1
            if calls == stop_at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            bench.job(compaction, ALL_ARE_OLDER).run(stop)
        assert bench.tables_left() == before
    assert len(bench.job(compaction, ALL_ARE_OLDER).run(count)) > 3


@pytest.mark.parametrize("short", [False, True])
def test_a_failed_job_leaves_no_output(short: bool) -> None:
    n = 0
    failed = True
    while failed:
        n += 1
        bench, compaction = prepared()
        before = bench.tables_left()
        bench.env.fail_at(n, OSError(errno.ENOSPC, "no room"), short=short)
        try:
            outputs = bench.job(compaction, ALL_ARE_OLDER).run(lambda: None)
        except OSError as error:
            code = error.errno
            assert code == errno.ENOSPC
            assert bench.tables_left() == before
            outputs = bench.job(compaction, ALL_ARE_OLDER).run(lambda: None)
        failed = bench.env.failures > 0
        bench.env.heal()
        assert sum(len(bench.entries(each)) for each in outputs) == 200
    assert n > 20


def test_a_damaged_input_ends_the_job() -> None:
    bench, compaction = prepared()
    name = table_name(compaction.inputs[0].number)
    data = bytearray(bench.directory.read_file(name, MIB))
    data[len(data) // 3] ^= 1
    bench.directory.remove(name)
    with bench.directory.create(name) as out:
        out.append(bytes(data))
    before = bench.tables_left()
    with pytest.raises(Exception, match="checksum") as caught:
        bench.job(compaction, ALL_ARE_OLDER).run(lambda: None)
    assert name in str(caught.value)
    assert bench.tables_left() == before


# Running: nobody sees a difference

FOLDING = CallableComparator(
    lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()), "test.Folding"
)


def all_entries(bench: Bench) -> list[Entry]:
    found = [entry for files in bench.levels for each in files for entry in bench.entries(each)]
    return newest_first(found, bench.order)


def seen_at(entries: list[Entry], sequence: int, order: KeyOrder) -> list[tuple[bytes, bytes]]:
    """The entries visible at ``sequence``: for each key the newest version at or before it."""
    found: list[Entry] = []
    for entry in entries:
        is_known = bool(found) and order.compare(found[-1][0], entry[0]) == 0
        if sequence_in(entry[1]) <= sequence and not is_known:
            found.append(entry)
    return [(entry[0], entry[1][TAG_SIZE:]) for entry in found if is_value(entry)]


def found_first(bench: Bench, of: Version, key: bytes, sequence: int) -> bytes | None:
    """The result of a lookup, which stops at the first file with a version at or before."""
    compare = bench.order.compare
    order = bench.order.of(key)
    place = of.next_candidate(0, order, sequence)
    while place > 0:
        for entry in bench.entries(of.file_in(place)):
            if compare(entry[0], key) == 0 and sequence_in(entry[1]) <= sequence:
                return entry[1][TAG_SIZE:] if is_value(entry) else None
        place = of.next_candidate(place, order, sequence)
    return None


def spread(data: st.DataObject, bench: Bench, history: Sequence[Entry]) -> None:
    """Put a history into levels: the older, the deeper; files cut anywhere."""
    levels = sorted(data.draw(st.sets(st.integers(1, 4), min_size=1, max_size=3)), reverse=True)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(history)), min_size=5, max_size=5)))
    parts = [history[begin:end] for begin, end in zip([0, *cuts], [*cuts, None], strict=True)]
    for level in levels:
        ordered = newest_first(parts.pop(0), bench.order)
        at = 0
        while at < len(ordered):
            step = data.draw(st.integers(1, 5))
            bench.add(level, *ordered[at : at + step])
            at += step
    for part in parts:
        if part:
            bench.add(0, *part)


@pytest.mark.parametrize("comparator", [BYTEWISE, REVERSE_BYTEWISE, FOLDING], ids=lambda c: c.name)
@given(data=st.data())
def test_a_compaction_changes_nothing_that_a_reader_sees(
    comparator: Comparator, data: st.DataObject
) -> None:
    keys = st.text(alphabet="aAbBc", min_size=1, max_size=2).map(str.encode)
    written = data.draw(st.lists(st.tuples(keys, st.booleans()), min_size=1, max_size=25))
    history = [
        value(key, at + 1, b"%d" % at) if is_put else deletion(key, at + 1)
        for at, (key, is_put) in enumerate(written)
    ]
    max_file_size = data.draw(st.sampled_from([1, 300, MIB]))
    bench = Bench(comparator, max_file_size, block_size=64)
    spread(data, bench, history)
    oldest = data.draw(st.integers(0, len(history)))
    for _ in range(data.draw(st.integers(1, 3))):
        of = bench.version()
        level = data.draw(st.sampled_from([at for at in range(6) if of.levels[at]] or [0]))
        assume(of.levels[level])
        compaction: Compaction | None
        if data.draw(st.booleans()):
            begin, end = data.draw(st.none() | keys), data.draw(st.none() | keys)
            found = compaction_of_range(of, level, begin, end, bench.options)
            if found is None:
                continue
            compaction = found[0]
        else:
            of.file_to_compact = (level, data.draw(st.sampled_from(of.levels[level])))
            compaction = pick_compaction(of, NO_POINTERS, bench.options)
            assert compaction is not None
        outputs = bench.job(compaction, oldest).run(lambda: None)
        after = of.apply(compaction.edit(outputs))
        after.check()
        for each, follower in pairwise(outputs):
            assert bench.order.compare(each.largest[:-8], follower.smallest[:-8]) < 0
        bench.levels = after.levels
        kept = all_entries(bench)
        expected = newest_first(history, bench.order)
        for sequence in range(oldest, len(history) + 1):
            pairs = seen_at(expected, sequence, bench.order)
            assert seen_at(kept, sequence, bench.order) == pairs
            for key in {key for key, _ in history}:
                seen = [data for name, data in pairs if bench.order.is_same(name, key)]
                assert found_first(bench, after, key, sequence) == (seen[0] if seen else None)
