"""Which files may hold a key, which overlap, which level needs a compaction."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.counters import NUM_LEVELS
from lsmkv.db.tree.version import (
    Version,
    describe_key,
    max_bytes_for_level,
    max_grandparent_overlap,
    total_size,
)
from lsmkv.errors import CorruptionError
from lsmkv.format.keys import KIND_VALUE, MAX_SEQUENCE, InternalKeyComparator, pack
from lsmkv.format.version_edit import FileMetaData, VersionEdit
from lsmkv.options import Options
from lsmkv.util.comparator import BYTEWISE, REVERSE_BYTEWISE, CallableComparator, Comparator

OPTIONS = Options()
MIB = 1 << 20


def file(
    number: int,
    smallest: bytes,
    largest: bytes,
    *,
    size: int = 1000,
    sequences: tuple[int, int] = (100, 100),
) -> FileMetaData:
    """A table from a first to a last user key."""
    return FileMetaData(
        number, size, pack(smallest, sequences[0], 1), pack(largest, sequences[1], 1)
    )


def version(
    levels: Mapping[int, Iterable[FileMetaData]], comparator: Comparator = BYTEWISE
) -> Version:
    return Version(
        InternalKeyComparator(comparator),
        [list(levels.get(level, [])) for level in range(NUM_LEVELS)],
    )


def numbers(files: Iterable[FileMetaData]) -> list[int]:
    return [each.number for each in files]


def candidates(of: Version, user_key: bytes, sequence: int = MAX_SEQUENCE) -> list[tuple[int, int]]:
    """As a Get at this sequence asks."""
    order = of.comparator.order.of(user_key)
    found: list[tuple[int, int]] = []
    place = of.next_candidate(0, order, sequence)
    while place > 0:
        found.append((int(place) >> 32, of.file_in(place).number))
        place = of.next_candidate(place, order, sequence)
    return found


def covering(of: Version, user_key: bytes) -> list[tuple[int, int]]:
    """All at once, for the newest version."""
    found = of.candidates(of.comparator.order.of(user_key))
    return [(level, each.number) for level, each in found]


# The order of files


def test_level_0_is_newest_first_and_other_levels_by_key() -> None:
    tables = [file(4, b"a", b"b"), file(9, b"c", b"d"), file(7, b"e", b"f")]
    for order in itertools.permutations(tables):
        of = version({0: order, 1: order})
        assert numbers(of.levels[0]) == [9, 7, 4]
        assert numbers(of.levels[1]) == [4, 9, 7]
        assert of.numbers == {4, 7, 9}
        reverse = version({1: order}, REVERSE_BYTEWISE)
        assert numbers(reverse.levels[1]) == [7, 9, 4]


# Candidates


def test_level_0_is_asked_newest_first_then_one_file_of_each_level() -> None:
    of = version(
        {
            0: [file(20, b"a", b"m"), file(25, b"k", b"z"), file(22, b"a", b"z")],
            1: [file(10, b"a", b"f"), file(11, b"h", b"k"), file(12, b"m", b"q")],
            3: [file(3, b"a", b"z")],
        }
    )
    assert candidates(of, b"k") == [(0, 25), (0, 22), (0, 20), (1, 11), (3, 3)]
    assert candidates(of, b"a") == [(0, 22), (0, 20), (1, 10), (3, 3)]
    assert candidates(of, b"g") == [(0, 22), (0, 20), (3, 3)]  # between two files of level 1
    assert candidates(of, b"z") == [(0, 25), (0, 22), (3, 3)]
    assert candidates(of, b"A") == []
    assert candidates(of, b"zz") == []


def test_edges_of_files_belong_to_them() -> None:
    of = version({1: [file(1, b"b", b"d"), file(2, b"e", b"e")], 2: [file(3, b"", b"")]})
    assert candidates(of, b"b") == [(1, 1)]
    assert candidates(of, b"d") == [(1, 1)]
    assert candidates(of, b"e") == [(1, 2)]
    assert candidates(of, b"") == [(2, 3)]
    assert candidates(of, b"d\0") == []


def test_a_user_key_in_two_files_of_a_level_is_looked_up_by_sequence() -> None:
    of = version(
        {1: [file(1, b"a", b"k", sequences=(9, 50)), file(2, b"k", b"z", sequences=(49, 9))]}
    )
    assert candidates(of, b"k") == [(1, 1)]
    assert candidates(of, b"k", 50) == [(1, 1)]
    assert candidates(of, b"k", 49) == [(1, 2)]
    assert candidates(of, b"k", 1) == [(1, 2)]


def test_candidates_in_other_orders() -> None:
    reverse = version({1: [file(1, b"z", b"m"), file(2, b"k", b"a")]}, REVERSE_BYTEWISE)
    assert candidates(reverse, b"n") == [(1, 1)]
    assert candidates(reverse, b"l") == []
    assert candidates(reverse, b"a") == [(1, 2)]
    folding = CallableComparator(
        lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()), "test.Folding"
    )
    of = version({0: [file(3, b"B", b"c")], 1: [file(1, b"A", b"b"), file(2, b"C", b"D")]}, folding)
    assert candidates(of, b"B") == [(0, 3), (1, 1)]
    assert candidates(of, b"d") == [(1, 2)]


class Ranked:
    """Orders by ``<`` alone, as sorting and bisecting do."""

    def __init__(self, key: bytes) -> None:
        self.key = key

    def __lt__(self, other: Ranked) -> bool:
        return self.key < other.key


class ByRank:
    name = "test.ByRank"

    def compare(self, a: bytes, b: bytes) -> int:
        return (a > b) - (a < b)

    def sort_key(self, key: bytes) -> Ranked:
        return Ranked(key)

    def find_shortest_separator(self, start: bytes, limit: bytes) -> bytes:
        return start

    def find_short_successor(self, key: bytes) -> bytes:
        return key


@pytest.mark.parametrize("level", [0, 1])
def test_sort_keys_need_only_less_than(level: int) -> None:
    """A lookup compares a comparator's own sort keys with ``<`` only."""
    of = version({level: [file(1, b"b", b"d")], 2: [file(2, b"f", b"f")]}, ByRank())
    for key in (b"b", b"c", b"d"):
        assert candidates(of, key) == [(level, 1)]
    assert candidates(of, b"f") == [(2, 2)]
    for key in (b"a", b"e", b"g"):
        assert candidates(of, key) == []


@st.composite
def disjoint(draw: st.DrawFn, first_number: int) -> list[FileMetaData]:
    """Files of a level >= 1, over one-byte keys."""
    edges = sorted(draw(st.sets(st.integers(0, 40), max_size=12)))
    pairs = zip(edges[::2], edges[1::2], strict=False)
    return [
        file(first_number + at, bytes([low]), bytes([high])) for at, (low, high) in enumerate(pairs)
    ]


@st.composite
def overlapping_files(draw: st.DrawFn, first_number: int) -> list[FileMetaData]:
    ranges = draw(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)), max_size=5))
    return [
        file(first_number + at, bytes([low]), bytes([low + width]))
        for at, (low, width) in enumerate(ranges)
    ]


@st.composite
def versions(draw: st.DrawFn) -> Version:
    levels: dict[int, Iterable[FileMetaData]] = {0: draw(overlapping_files(100))}
    for level in range(1, NUM_LEVELS):
        levels[level] = draw(disjoint(10 * level))
    return version(levels)


@given(of=versions())
def test_candidates_are_all_files_that_cover_the_key(of: Version) -> None:
    for probe in range(52):
        key = bytes([probe])
        expected = [
            (level, each.number)
            for level, files in enumerate(of.levels)
            for each in files
            if each.smallest[:-8] <= key <= each.largest[:-8]
        ]
        assert candidates(of, key) == expected
        assert covering(of, key) == expected


@st.composite
def touching_files(draw: st.DrawFn) -> list[FileMetaData]:
    """Files of a level >= 1 whose user keys may continue from one to the next."""
    versions = sorted(
        draw(
            st.sets(
                st.tuples(st.sampled_from([b"", b"a", b"b", b"c" * 9]), st.integers(-9, -1)),
                max_size=16,
            )
        )
    )
    files: list[FileMetaData] = []
    while versions:
        size = draw(st.integers(1, min(4, len(versions))))
        low, high = versions[0], versions[size - 1]
        files.append(file(len(files) + 1, low[0], high[0], sequences=(-low[1], -high[1])))
        versions = versions[size + draw(st.integers(0, 2)) :]
    return files


@given(
    upper=touching_files(),
    lower=touching_files(),
    order=st.sampled_from(["bytewise", "reverse"]),
)
def test_candidates_where_versions_of_a_key_are_spread(
    upper: list[FileMetaData], lower: list[FileMetaData], order: str
) -> None:
    """The file with the first version at or after the one asked for, if its user keys cover it."""
    if order == "reverse":
        upper, lower = upper[:1], lower[:1]
    of = version({1: upper, 4: lower}, REVERSE_BYTEWISE if order == "reverse" else BYTEWISE)
    compare = of.comparator.compare
    order_of = of.comparator.order.of
    for key in (b"", b"\0", b"a", b"aa", b"b", b"c", b"c" * 9, b"d"):
        for sequence in (MAX_SEQUENCE, *range(10)):
            wanted = pack(key, sequence, KIND_VALUE)
            expected: list[tuple[int, int]] = []
            for level, files in ((1, of.levels[1]), (4, of.levels[4])):
                first = next((each for each in files if compare(each.largest, wanted) >= 0), None)
                if first is not None and not order_of(key) < order_of(first.smallest[:-8]):
                    expected.append((level, first.number))
            assert candidates(of, key, sequence) == expected
            if sequence == MAX_SEQUENCE:
                assert covering(of, key) == expected


@given(
    st.lists(st.tuples(st.binary(max_size=2), st.binary(max_size=2)), max_size=6),
    st.binary(max_size=2),
)
def test_lookups_in_unsorted_files_end(ranges: list[tuple[bytes, bytes]], key: bytes) -> None:
    """A MANIFEST that was not checked may name such files."""
    of = version({3: [file(at, low, high) for at, (low, high) in enumerate(ranges)]})
    for found in (candidates(of, key), candidates(of, key, 7), covering(of, key)):
        assert len(found) <= 1
    for sequence in (MAX_SEQUENCE, 7, -1):
        assert 0 <= of.file_from(3, key, sequence) <= len(ranges)


def test_where_a_scan_of_a_level_begins() -> None:
    of = version({2: [file(1, b"b", b"d"), file(2, b"f", b"h")]})
    for key, expected in ((b"a", 0), (b"d", 0), (b"e", 1), (b"h", 1), (b"i", 2)):
        assert of.file_from(2, key, MAX_SEQUENCE) == expected
    assert of.file_from(2, b"d", 100) == 0  # the file ends with (d, 100)
    assert of.file_from(2, b"d", 99) == 1
    assert of.file_from(5, b"d", 99) == 0
    for key, expected in ((b"a", 0), (b"b", 0), (b"d", 1), (b"e", 1), (b"h", 2)):
        assert of.file_from(2, key, -1) == expected  # behind all versions of the key


# Overlaps


@given(of=versions(), low=st.integers(0, 51), high=st.integers(0, 51))
def test_overlapping_at_the_levels_below_0(of: Version, low: int, high: int) -> None:
    for begin, end in ((bytes([low]), bytes([high])), (None, bytes([high])), (bytes([low]), None)):
        for level in range(1, NUM_LEVELS):
            expected = [
                each
                for each in of.levels[level]
                if (begin is None or each.largest[:-8] >= begin)
                and (end is None or each.smallest[:-8] <= end)
            ]
            if begin is not None and end is not None and begin > end:
                continue
            assert of.overlapping(level, begin, end) == expected
            assert of.overlaps(level, begin, end) == bool(expected)


@given(of=versions(), low=st.integers(0, 51), width=st.integers(0, 20))
def test_overlapping_at_level_0_is_closed(of: Version, low: int, width: int) -> None:
    """No file that is left out touches the range of those that are taken."""
    begin, end = bytes([low]), bytes([low + width])
    taken = of.overlapping(0, begin, end)
    touched = [
        each for each in of.levels[0] if each.largest[:-8] >= begin and each.smallest[:-8] <= end
    ]
    assert set(numbers(touched)) <= set(numbers(taken))
    assert of.overlaps(0, begin, end) == bool(touched)
    if not taken:
        return
    begin = min([begin, *(each.smallest[:-8] for each in taken)])
    end = max([end, *(each.largest[:-8] for each in taken)])
    for each in of.levels[0]:
        if each not in taken:
            assert each.largest[:-8] < begin or each.smallest[:-8] > end
    assert numbers(taken) == sorted(numbers(taken), reverse=True)


def test_level_0_expands_step_by_step() -> None:
    of = version(
        {
            0: [
                file(1, b"a", b"c"),
                file(2, b"c", b"f"),
                file(3, b"f", b"k"),
                file(4, b"m", b"p"),
                file(5, b"k", b"l"),
            ]
        }
    )
    assert numbers(of.overlapping(0, b"b", b"b")) == [5, 3, 2, 1]
    assert numbers(of.overlapping(0, b"l", b"l")) == [5, 3, 2, 1]
    assert numbers(of.overlapping(0, b"n", b"z")) == [4]
    assert numbers(of.overlapping(0, b"q", b"z")) == []
    assert numbers(of.overlapping(0, None, None)) == [5, 4, 3, 2, 1]
    assert of.overlaps(0, b"la", b"lz") is False
    assert of.overlaps(0, None, b"a") is True
    assert of.overlaps(0, b"p", None) is True
    assert of.overlaps(0, b"q", None) is False


def test_overlaps_of_the_smallest_and_largest_ranges() -> None:
    of = version({3: [file(1, b"b", b"d"), file(2, b"h", b"m")]})
    assert of.overlaps(3, None, None)
    assert not of.overlaps(3, None, b"a")
    assert of.overlaps(3, None, b"b")
    assert not of.overlaps(3, b"n", None)
    assert of.overlaps(3, b"m", None)
    assert not of.overlaps(3, b"e", b"g")
    assert of.overlaps(3, b"e", b"h")
    assert not of.overlaps(4, None, None)
    assert not of.overlaps(0, None, None)


# Where a flush goes


def test_a_table_that_overlaps_nothing_goes_to_level_2() -> None:
    assert version({}).level_for_flush(b"a", b"z", OPTIONS) == 2


def test_a_table_stays_above_what_it_overlaps() -> None:
    for level in range(4):
        of = version({level: [file(1, b"k", b"p")]})
        expected = max(0, min(level - 1, 2))
        assert of.level_for_flush(b"m", b"n", OPTIONS) == expected
        assert of.level_for_flush(b"a", b"k", OPTIONS) == expected
        assert of.level_for_flush(b"p", b"z", OPTIONS) == expected
        assert of.level_for_flush(b"a", b"j", OPTIONS) == 2
        assert of.level_for_flush(b"q", b"z", OPTIONS) == 2


def test_a_table_does_not_go_where_it_covers_much_of_the_level_after() -> None:
    limit = max_grandparent_overlap(OPTIONS)
    assert limit == 10 * OPTIONS.max_file_size
    for size, level in ((limit, 1), (limit + 1, 0)):
        of = version({2: [file(1, b"k", b"p", size=size)]})
        assert of.level_for_flush(b"a", b"z", OPTIONS) == level
    # Two levels below its own: it may go to level 1, not to level 2.
    of = version({3: [file(1, b"k", b"p", size=limit + 1)]})
    assert of.level_for_flush(b"a", b"z", OPTIONS) == 1


# Scores


def test_level_0_needs_a_compaction_at_four_files() -> None:
    for count in range(1, 9):
        of = version({0: [file(number, b"a", b"b", size=100 * MIB) for number in range(count)]})
        assert of.compaction_level == 0
        assert of.compaction_score == count / 4


def test_other_levels_need_a_compaction_by_size() -> None:
    assert [max_bytes_for_level(level) for level in (1, 2, 5)] == [
        10 * MIB,
        100 * MIB,
        100_000 * MIB,
    ]
    for level in range(1, 6):
        half = max_bytes_for_level(level) // 2
        of = version({level: [file(1, b"a", b"b", size=half), file(2, b"c", b"d", size=half)]})
        assert (of.compaction_level, of.compaction_score) == (level, 1.0)
        of = version({level: [file(1, b"a", b"b", size=2 * half - 1)]})
        assert of.compaction_score < 1


def test_the_last_level_never_needs_a_compaction() -> None:
    of = version({6: [file(1, b"a", b"b", size=1 << 50)]})
    assert of.compaction_score == 0


def test_the_neediest_level_comes_first() -> None:
    level0 = [file(number, b"a", b"b") for number in range(5)]
    of = version({0: level0, 1: [file(10, b"a", b"b", size=13 * MIB)]})
    assert (of.compaction_level, of.compaction_score) == (1, 1.3)
    of = version({0: level0, 1: [file(10, b"a", b"b", size=12 * MIB)]})
    assert (of.compaction_level, of.compaction_score) == (0, 1.25)
    assert version({}).compaction_score == 0


def test_total_size() -> None:
    assert total_size([]) == 0
    assert total_size([file(1, b"a", b"b", size=3), file(2, b"a", b"b", size=4)]) == 7


# Seeks


def test_a_file_with_too_many_seeks_is_compacted() -> None:
    wanted, other = file(1, b"a", b"b"), file(2, b"c", b"d")
    of = version({1: [wanted, other]})

    def place(key: bytes) -> int:
        return int(of.next_candidate(0, key, MAX_SEQUENCE))

    for _ in range(99):
        assert not of.charge_seek(place(b"a"))
    assert of.file_to_compact is None
    assert of.charge_seek(place(b"a"))
    assert of.file_to_compact == (1, wanted)
    for _ in range(200):  # one at a time
        assert not of.charge_seek(place(b"c"))
    assert of.file_to_compact == (1, wanted)


# Edits


def test_apply() -> None:
    of = version({0: [file(5, b"a", b"c")], 1: [file(3, b"a", b"b"), file(4, b"c", b"d")]})
    edit = VersionEdit()
    edit.delete_file(0, 5)
    edit.delete_file(1, 3)
    edit.add_file(1, file(6, b"a", b"b", size=7))
    edit.add_file(2, file(5, b"a", b"c"))  # moved down as it is
    after = of.apply(edit)
    assert [numbers(files) for files in after.levels] == [[], [6, 4], [5], [], [], [], []]
    assert [numbers(files) for files in of.levels] == [[5], [3, 4], [], [], [], [], []]
    assert after.numbers == {4, 5, 6}
    after.check()


def test_a_deletion_counts_for_its_level_alone() -> None:
    of = version({1: [file(3, b"a", b"b")], 2: [file(4, b"a", b"b")]})
    edit = VersionEdit()
    edit.delete_file(2, 3)
    edit.delete_file(5, 99)
    assert of.apply(edit).numbers == {3, 4}


# Invariants


def test_a_sound_version_passes() -> None:
    version({}).check()
    version(
        {
            0: [file(1, b"a", b"z"), file(2, b"a", b"z")],
            1: [file(3, b"a", b"b"), file(4, b"c", b"c")],
            # One user key may end one file and begin the next, its newer versions first.
            6: [file(5, b"a", b"k", sequences=(9, 5)), file(6, b"k", b"z", sequences=(4, 9))],
        }
    ).check()


@pytest.mark.parametrize(
    "second",
    [
        file(2, b"d", b"f"),  # begins with the key that the first one ends with, same version
        file(2, b"c", b"f"),
        file(2, b"b", b"c"),
        file(2, b"a", b"z"),
        file(2, b"d", b"z", sequences=(101, 1)),  # versions in the wrong order
    ],
)
def test_check_finds_overlaps(second: FileMetaData) -> None:
    first = file(1, b"b", b"d")
    for level in range(1, NUM_LEVELS):
        with pytest.raises(CorruptionError, match=f"overlap on level {level}"):
            version({level: [first, second]}).check()
    version({0: [first, second]}).check()


def test_check_finds_an_overlap_among_many_files() -> None:
    files = [file(at, b"%03d" % (2 * at), b"%03d" % (2 * at + 1)) for at in range(99)]
    version({3: files}).check()
    rng = random.Random(1)
    for _ in range(20):
        at = rng.randrange(98)
        wide = file(1000, files[at].smallest[:-8], files[at + 1].smallest[:-8])
        with pytest.raises(CorruptionError, match="overlap on level 3"):
            version({3: [*files[:at], wide, *files[at + 1 :]]}).check()


def test_check_finds_duplicates() -> None:
    for one, two in ((0, 0), (0, 1), (2, 5)):
        levels: dict[int, list[FileMetaData]] = {one: [file(7, b"a", b"b")]}
        levels.setdefault(two, []).append(file(7, b"c", b"d"))
        with pytest.raises(CorruptionError, match="table 7 is listed twice"):
            version(levels).check()


def test_check_finds_a_file_that_ends_before_it_begins() -> None:
    for level in range(NUM_LEVELS):
        for bad in (file(7, b"b", b"a"), file(7, b"a", b"a", sequences=(1, 2))):
            with pytest.raises(CorruptionError, match="table 7 ends before it begins"):
                version({level: [bad]}).check()


# Text


def test_the_text_is_leveldbs() -> None:
    of = version(
        {
            0: [file(17, b"a", b"d", size=123, sequences=(5, 9)), file(20, b"e", b"g", size=43)],
            2: [FileMetaData(3, 7, pack(b"\0\xff'", 2, 0), pack(b"~ \x7f", MAX_SEQUENCE, 1))],
        }
    )
    assert str(of) == (
        "--- level 0 ---\n"
        " 20:43['e' @ 100 : 1 .. 'g' @ 100 : 1]\n"
        " 17:123['a' @ 5 : 1 .. 'd' @ 9 : 1]\n"
        "--- level 1 ---\n"
        "--- level 2 ---\n"
        " 3:7['\\x00\\xff'' @ 2 : 0 .. '~ \\x7f' @ 72057594037927935 : 1]\n"
        "--- level 3 ---\n"
        "--- level 4 ---\n"
        "--- level 5 ---\n"
        "--- level 6 ---\n"
    )


def test_keys_as_text() -> None:
    key = pack(b"The \"key\" in 'single quotes'", 42, KIND_VALUE)
    assert describe_key(key) == "'The \"key\" in 'single quotes'' @ 42 : 1"
    odd = pack(bytes(range(0x1E, 0x22)) + b"~\x7f\x80", 1, KIND_VALUE)
    assert describe_key(odd) == "'\\x1e\\x1f !~\\x7f\\x80' @ 1 : 1"
    with pytest.raises(CorruptionError):
        describe_key(b"short")
