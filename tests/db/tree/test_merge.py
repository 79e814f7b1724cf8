"""lsmkv.db.tree.merge against sorting everything at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orders import COMPARATORS

from lsmkv.db.tree.merge import live_entries, merge
from lsmkv.format.key_order import KeyOrder
from lsmkv.format.keys import (
    KIND_DELETION,
    KIND_VALUE,
    MAX_SEQUENCE,
    Entry,
    pack,
    sequence_in,
)
from lsmkv.util.comparator import BYTEWISE, Comparator

every_comparator = pytest.mark.parametrize("comparator", COMPARATORS, ids=lambda each: each.name)

keys = st.text(alphabet="aAbBc", max_size=3).map(str.encode)
rows = st.lists(
    st.tuples(keys, st.sampled_from([KIND_DELETION, KIND_VALUE, KIND_VALUE])), max_size=30
)


def entry(key: bytes, sequence: int, kind: int = KIND_VALUE, value: bytes = b"") -> Entry:
    return key, pack(b"", sequence, kind) + value


def is_value(each: Entry) -> bool:
    return each[1][0] == KIND_VALUE


def newest_first(entries: list[Entry], order: KeyOrder) -> list[Entry]:
    """Sorted by user key, and the versions of one key newest first."""
    return sorted(entries, key=lambda each: (order.of(each[0]), -sequence_in(each[1])))


@st.composite
def histories(draw: st.DrawFn) -> list[Entry]:
    """Entries as they were written: each has a sequence of its own."""
    step = draw(st.sampled_from([1, 2**40]))
    return [
        entry(key, (at + 1) * step, kind, b"%d" % at if kind == KIND_VALUE else b"")
        for at, (key, kind) in enumerate(draw(rows))
    ]


@st.composite
def chunkings(draw: st.DrawFn, entries: list[Entry]) -> list[list[Entry]]:
    """The entries in chunks, of any size: some empty, some that part the versions of a key."""
    cuts = sorted(draw(st.lists(st.integers(0, len(entries)), max_size=6)))
    return [
        entries[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(entries)], strict=True)
    ]


def source_of(chunks: list[list[Entry]]) -> Iterator[list[Entry]]:
    """Chunks become the merge's own, so it gets copies."""
    return iter([list(chunk) for chunk in chunks])


def sources_of(data: st.DataObject, history: list[Entry], order: KeyOrder) -> list[list[Entry]]:
    """The history dealt out to a few sorted sources."""
    sources: list[list[Entry]] = [[] for _ in range(data.draw(st.integers(0, 5)))]
    if not sources:
        return []
    for each in history:
        sources[data.draw(st.integers(0, len(sources) - 1))].append(each)
    return [newest_first(source, order) for source in sources]


def check_chunks(chunks: list[list[Entry]], order: KeyOrder) -> None:
    """Each rises, none is empty, and none shares a key with its neighbour (in rising order)."""
    assert all(chunks)
    for before, behind in pairwise(chunks):
        assert order.compare(before[-1][0], behind[0][0]) < 0


@every_comparator
@given(history=histories(), data=st.data())
def test_merging_is_sorting(
    comparator: Comparator, history: list[Entry], data: st.DataObject
) -> None:
    """By user key; the versions of one key stay in the order of the sources."""
    order = KeyOrder(comparator)
    sources = sources_of(data, history, order)
    expected = sorted(
        [each for source in sources for each in source], key=lambda each: order.of(each[0])
    )
    chunked = [data.draw(chunkings(source)) for source in sources]
    merged = list(merge([source_of(chunks) for chunks in chunked], order))
    assert [each for chunk in merged for each in chunk] == expected
    check_chunks(merged, order)


# Laziness


def counted(chunks: list[list[Entry]], taken: list[int]) -> Iterator[list[Entry]]:
    for at, chunk in enumerate(chunks):
        taken.append(at)
        yield chunk


def numbered(first: int, last: int) -> list[Entry]:
    return [entry(b"%04d" % number, 1) for number in range(first, last)]


def test_no_source_is_asked_before_its_chunk_is_used_up() -> None:
    order = KeyOrder(BYTEWISE)
    chunks = [numbered(10 * at, 10 * at + 10) for at in range(50)]
    others = [numbered(500 + 10 * at, 510 + 10 * at) for at in range(50)]
    taken: list[int] = []
    taken_others: list[int] = []
    merged = merge([counted(chunks, taken), counted(others, taken_others)], order)
    next(merged)
    assert len(taken) <= 2
    assert len(taken_others) <= 2
    for _ in range(10):
        next(merged)
    assert len(taken) + len(taken_others) <= 14
    # The one that is far away was asked for its first chunk, and for no more.
    assert len(taken_others) == 1


def test_nothing_to_merge() -> None:
    order = KeyOrder(BYTEWISE)
    assert list(merge([], order)) == []
    assert list(merge([iter([]), iter([[], []])], order)) == []


def test_many_versions_of_one_key_across_many_chunks() -> None:
    order = KeyOrder(BYTEWISE)
    versions = [entry(b"k", sequence) for sequence in range(100, 0, -1)]
    singles = [[version] for version in versions]
    rest = [entry(b"l", 1)]
    merged = merge([source_of([*singles, rest]), source_of([[]])], order)
    assert list(merged) == [versions, rest]


def test_an_error_of_a_source_comes_through() -> None:
    def failing() -> Iterator[list[Entry]]:
        yield numbered(0, 5)
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        list(merge([failing(), iter([numbered(2, 9)])], KeyOrder(BYTEWISE)))


# What a flush or a compaction keeps


def seen_at(history: list[Entry], sequence: int, order: KeyOrder) -> list[tuple[bytes, bytes]]:
    """The naive way: for each key, the newest version that is old enough."""
    newest: list[Entry] = []
    for each in sorted(history, key=lambda one: -sequence_in(one[1])):
        if sequence_in(each[1]) > sequence:
            continue
        if not any(order.is_same(each[0], other[0]) for other in newest):
            newest.append(each)
    newest.sort(key=lambda one: order.of(one[0]))
    return [(each[0], each[1][8:]) for each in newest if is_value(each)]


def kept_of(
    entries: list[Entry], oldest: int, order: KeyOrder, drop: Callable[[bytes], bool]
) -> list[Entry]:
    user_keys, tagged = live_entries(entries, oldest, order, drop)
    return list(zip(user_keys, tagged, strict=True))


@every_comparator
@given(history=histories(), data=st.data())
def test_live_entries(comparator: Comparator, history: list[Entry], data: st.DataObject) -> None:
    """Every reader sees the same as before, and nothing is kept that no reader sees."""
    order = KeyOrder(comparator)
    entries = newest_first(history, order)
    numbers = sorted({0, *(sequence_in(each[1]) for each in history)})
    oldest = data.draw(st.sampled_from(numbers))
    for droppable in (True, False):
        kept = kept_of(entries, oldest, order, lambda key, drop=droppable: drop)  # type: ignore[misc]
        for sequence in [number for number in [*numbers, MAX_SEQUENCE] if number >= oldest]:
            assert seen_at(kept, sequence, order) == seen_at(history, sequence, order)
        expected: list[Entry] = []
        for each in entries:
            sequence = sequence_in(each[1])
            newer = [
                sequence_in(other[1])
                for other in entries
                if order.is_same(other[0], each[0]) and sequence_in(other[1]) > sequence
            ]
            shadowed = any(number <= oldest for number in newer)
            dropped = droppable and not is_value(each) and sequence <= oldest
            if not shadowed and not dropped:
                expected.append(each)
        assert kept == expected


@every_comparator
@given(history=histories(), data=st.data())
def test_the_versions_of_a_key_may_come_in_any_order(
    comparator: Comparator, history: list[Entry], data: st.DataObject
) -> None:
    """Merged from any number of sources, whichever of them have the newer versions."""
    order = KeyOrder(comparator)
    sources = sources_of(data, history, order)
    entries = newest_first([each for source in sources for each in source], order)
    oldest = data.draw(st.sampled_from([0, *(sequence_in(each[1]) for each in history)]))
    chunked = [data.draw(chunkings(source)) for source in sources]
    merged = list(merge([source_of(chunks) for chunks in chunked], order))
    for droppable in (True, False):
        kept: list[Entry] = []
        for chunk in merged:
            kept += kept_of(chunk, oldest, order, lambda key, drop=droppable: drop)  # type: ignore[misc]
        expected = kept_of(entries, oldest, order, lambda key, drop=droppable: drop)  # type: ignore[misc]
        assert kept == expected


def test_one_version_twice_goes_through_once() -> None:
    """No sound store has it; it must end all the same."""
    one = entry(b"k", 5, KIND_VALUE, b"v")
    order = KeyOrder(BYTEWISE)
    assert kept_of([one, one], 9, order, lambda key: True) == [one]
    assert kept_of([one, one], 4, order, lambda key: True) == [one, one]


def test_at_the_very_sequence_of_the_oldest_reader() -> None:
    """A version at that sequence is the one that the reader sees: it hides what is older."""
    order = KeyOrder(BYTEWISE)
    versions = [entry(b"k", sequence, KIND_VALUE, b"%d" % sequence) for sequence in (6, 5, 4)]
    assert kept_of(versions, 5, order, lambda key: True) == versions[:2]
    assert kept_of(versions, 6, order, lambda key: True) == versions[:1]
    assert kept_of(versions, 4, order, lambda key: True) == versions
    assert kept_of(versions, 3, order, lambda key: True) == versions


def test_a_deletion_goes_only_where_nothing_older_lies_deeper() -> None:
    order = KeyOrder(BYTEWISE)
    asked: list[bytes] = []

    def drop(key: bytes) -> bool:
        asked.append(key)
        return key != b"deeper"

    def of(key: bytes) -> list[Entry]:
        return [entry(key, 5, KIND_DELETION), entry(key, 3, KIND_VALUE, b"v")]

    entries = [*of(b"deeper"), *of(b"gone"), entry(b"young", 9, KIND_DELETION)]
    assert kept_of(entries, 5, order, drop) == [entries[0], entries[4]]
    assert asked == [b"deeper", b"gone"]  # the young one is seen by a reader: it is not asked
    assert kept_of(entries, 4, order, drop) == entries


@pytest.mark.parametrize("sequence", [1, 2**32, 2**55 - 1, 2**55, MAX_SEQUENCE - 1])
def test_the_boundary_of_what_every_reader_sees(sequence: int) -> None:
    order = KeyOrder(BYTEWISE)
    newer = entry(b"k", sequence + 1)
    older = entry(b"k", sequence)
    assert kept_of([newer, older], sequence, order, lambda key: True) == [newer, older]
    assert kept_of([newer, older], sequence + 1, order, lambda key: True) == [newer]
