"""Which files may hold a key, which overlap, which level needs a compaction."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

import pytest
import trees
from hypothesis import given
from hypothesis import strategies as st
from states import Case, Drawing, states
from trees import file, key_of, level_of, numbers, version

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.tree.version import Version, describe_key, total_size
from lsmkv.engine.format.keys import KIND_VALUE, MAX_SEQUENCE, pack
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.options import Options
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE
from lsmkv.errors import CorruptionError


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


# States


def answer(drawing: Drawing, words: list[str]) -> str:
    """Of the tables that are drawn by level."""
    of = trees.version_of(drawing) if words[0] != "on" else version({})
    match words:
        case ["on", *_]:
            return trees.on_each_level(drawing, words, answer)
        case ["levels"]:
            return trees.levels_text(of)
        case ["get", key]:
            name, sequence = trees.lookup_of(key)
            found = candidates(of, name, sequence)
            assert sequence < MAX_SEQUENCE or found == covering(of, name)
            return trees.words_text(f"L{level}:{number}" for level, number in found)
        case ["scan", level, "from" | "after" as side, key]:
            name, sequence = trees.lookup_of(key)
            files = of.levels[level_of(level)]
            bound = -1 if side == "after" else sequence
            at = of.file_from(level_of(level), of.comparator.order.of(name), bound)
            return str(files[at].number) if at < len(files) else "end"
        case ["overlap", level, *between]:
            begin, end = trees.range_of(between)
            taken = of.overlapping(level_of(level), begin, end)
            assert of.overlaps(level_of(level), begin, end) == bool(taken)
            return trees.words_text(numbers(taken))
        case ["flush", smallest, "..", largest]:
            return f"L{of.level_for_flush(key_of(smallest), key_of(largest), Options())}"
        case ["score"]:
            due = ", due" if of.compaction_score >= 1 else ""
            return f"L{of.compaction_level} {of.compaction_score:.9g}{due}"
        case ["size", level]:
            return str(total_size(of.levels[level_of(level)]))
        case ["seek", *pairs]:
            return seeks_of(of, pairs)
        case ["edit", *changes]:
            return trees.levels_text(of.apply(edit_of(changes)))
        case ["check"]:
            of.check()
            return "sound"
        case ["sstables"]:
            return str(of)
    raise NotImplementedError


def seeks_of(of: Version, words: list[str]) -> str:
    """``a 3 b 1``: so many reads at each key find nothing."""
    seeks, due = 0, []
    for key, times in zip(words[::2], words[1::2], strict=True):
        for _ in range(int(times)):
            seeks += 1
            if of.charge_seek(of.next_candidate(0, key_of(key), MAX_SEQUENCE)):
                due.append(f"at the {seeks}th")
    if of.file_to_compact is None:
        assert not due
        return "no compaction"
    level, chosen = of.file_to_compact
    return f"L{level}:{chosen.number} {trees.words_text(due)}"


def edit_of(words: list[str]) -> VersionEdit:
    """``L0 -5 L1 +6:[a .. b]``: tables that leave a level, or come."""
    edit = VersionEdit()
    for level, changes in re.findall(r"(L\d)((?: (?!L\d).*?)*)(?= L\d|$)", " ".join(words)):
        for number in re.findall(r" -(\d+)", changes):
            edit.delete_file(level_of(level), int(number))
        for added in trees.files_of(re.sub(r" -\d+", "", changes).replace("+", "")):
            edit.add_file(level_of(level), added)
    return edit


@states("version.txt")
def test_states(case: Case) -> None:
    case.check(answer, draws="L[0-6*]|order")


# Candidates


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


# Invariants


def test_check_finds_an_overlap_among_many_files() -> None:
    files = [file(at, b"%03d" % (2 * at), b"%03d" % (2 * at + 1)) for at in range(99)]
    version({3: files}).check()
    rng = random.Random(1)
    for _ in range(20):
        at = rng.randrange(98)
        wide = file(1000, files[at].smallest[:-8], files[at + 1].smallest[:-8])
        with pytest.raises(CorruptionError, match="overlap on level 3"):
            version({3: [*files[:at], wide, *files[at + 1 :]]}).check()


# Text


def test_a_key_that_is_too_short_has_no_text() -> None:
    with pytest.raises(CorruptionError):
        describe_key(b"short")
