"""lsmkv.db.merge against sorting everything at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.db.merge import (
    KeyOrder,
    RowOrder,
    live_entries,
    live_rows,
    merge_back,
    merge_forward,
    oldest_rank_seen,
    visible,
)
from lsmkv.format.keys import (
    KIND_DELETION,
    KIND_VALUE,
    MAX_SEQUENCE,
    Entry,
    is_value,
    oldest_rank_hidden,
    pack_entry,
    rank_of,
    sequence_of,
)
from lsmkv.util.comparator import (
    BYTEWISE,
    REVERSE_BYTEWISE,
    CallableComparator,
    Comparator,
)


def fold(a: bytes, b: bytes) -> int:
    return (a.lower() > b.lower()) - (a.lower() < b.lower())


class Lengthwise:
    """Shorter keys first, then by bytes; brings its own sort key."""

    name = "test.Lengthwise"

    def compare(self, a: bytes, b: bytes, /) -> int:
        x, y = self.sort_key(a), self.sort_key(b)
        return (x > y) - (x < y)

    def sort_key(self, key: bytes, /) -> tuple[int, bytes]:
        return len(key), key

    def find_shortest_separator(self, start: bytes, limit: bytes, /) -> bytes:
        return start

    def find_short_successor(self, key: bytes, /) -> bytes:
        return key


COMPARATORS: list[Comparator] = [
    BYTEWISE,
    REVERSE_BYTEWISE,
    CallableComparator(fold, "test.Folding"),
    Lengthwise(),
]
every_comparator = pytest.mark.parametrize("comparator", COMPARATORS, ids=lambda each: each.name)

keys = st.text(alphabet="aAbBc", max_size=3).map(str.encode)
rows = st.lists(
    st.tuples(keys, st.sampled_from([KIND_DELETION, KIND_VALUE, KIND_VALUE])), max_size=30
)


@st.composite
def histories(draw: st.DrawFn) -> list[Entry]:
    """Entries as they were written: each has a sequence of its own."""
    step = draw(st.sampled_from([1, 2**40]))
    return [
        (key, rank_of((at + 1) * step, kind), b"%d" % at if kind == KIND_VALUE else b"")
        for at, (key, kind) in enumerate(draw(rows))
    ]


@st.composite
def chunkings(draw: st.DrawFn, entries: list[Entry]) -> list[list[Entry]]:
    """The entries in chunks, of any size: some empty, some that part the versions of a key."""
    cuts = sorted(draw(st.lists(st.integers(0, len(entries)), max_size=6)))
    return [
        entries[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(entries)], strict=True)
    ]


def cursor(chunks: list[list[Entry]]) -> Iterator[list[Entry]]:
    """Chunks become the merge's own, so it gets copies."""
    return iter([list(chunk) for chunk in chunks])


def sources_of(data: st.DataObject, history: list[Entry], order: KeyOrder) -> list[list[Entry]]:
    """The history dealt out to a few sorted sources."""
    sources: list[list[Entry]] = [[] for _ in range(data.draw(st.integers(0, 5)))]
    if not sources:
        return []
    for entry in history:
        sources[data.draw(st.integers(0, len(sources) - 1))].append(entry)
    for source in sources:
        order.sort(source)
    return sources


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
    order = KeyOrder(comparator)
    sources = sources_of(data, history, order)
    expected = [entry for source in sources for entry in source]
    order.sort(expected)
    chunked = [data.draw(chunkings(source)) for source in sources]
    forward = list(merge_forward([cursor(chunks) for chunks in chunked], order))
    assert [entry for chunk in forward for entry in chunk] == expected
    check_chunks(forward, order)
    back = list(merge_back([cursor(chunks[::-1]) for chunks in chunked], order))
    back.reverse()
    assert [entry for chunk in back for entry in chunk] == expected
    check_chunks(back, order)


@every_comparator
def test_the_order_of_entries(comparator: Comparator) -> None:
    order = KeyOrder(comparator)
    entries = [
        (key, rank_of(sequence, KIND_VALUE), b"")
        for key in (b"", b"a", b"ab", b"b", b"\xff")
        for sequence in (1, 7, MAX_SEQUENCE)
    ]
    order.sort(entries)
    for one, two in pairwise(entries):
        compared = comparator.compare(one[0], two[0])
        assert compared < 0 or (compared == 0 and one[1] < two[1])
        assert (order.of(one[0]) < order.of(two[0])) == (compared < 0)
        assert order.of_entry(one) == order.of(one[0])
    assert order.is_bytewise == (comparator is BYTEWISE)


# Laziness


def counted(chunks: list[list[Entry]], taken: list[int]) -> Iterator[list[Entry]]:
    for at, chunk in enumerate(chunks):
        taken.append(at)
        yield chunk


def numbered(first: int, last: int) -> list[Entry]:
    return [(b"%04d" % number, rank_of(1, KIND_VALUE), b"") for number in range(first, last)]


@pytest.mark.parametrize("forward", [True, False])
def test_no_source_is_asked_before_its_chunk_is_used_up(forward: bool) -> None:
    order = KeyOrder(BYTEWISE)
    chunks = [numbered(10 * at, 10 * at + 10) for at in range(50)]
    others = [numbered(500 + 10 * at, 510 + 10 * at) for at in range(50)]
    taken: list[int] = []
    taken_others: list[int] = []
    merge = merge_forward if forward else merge_back
    cursors = [counted(chunks if forward else chunks[::-1], taken)]
    cursors.append(counted(others if forward else others[::-1], taken_others))
    merged = merge(cursors, order)
    next(merged)
    assert len(taken) <= 2
    assert len(taken_others) <= 2
    for _ in range(10):
        next(merged)
    assert len(taken) + len(taken_others) <= 14
    # The one that is far away was asked for its first chunk, and for no more.
    assert len(taken_others if forward else taken) == 1


def test_nothing_to_merge() -> None:
    order = KeyOrder(BYTEWISE)
    assert list(merge_forward([], order)) == []
    assert list(merge_back([], order)) == []
    assert list(merge_forward([iter([]), iter([[], []])], order)) == []
    assert list(merge_back([iter([]), iter([[], []])], order)) == []


def test_many_versions_of_one_key_across_many_chunks() -> None:
    order = KeyOrder(BYTEWISE)
    versions = [(b"k", rank_of(sequence, KIND_VALUE), b"") for sequence in range(100, 0, -1)]
    singles = [[version] for version in versions]
    rest = [(b"l", rank_of(1, KIND_VALUE), b"")]
    before = [(b"j", rank_of(1, KIND_VALUE), b"")]
    forward = merge_forward([cursor([*singles, rest]), cursor([[]])], order)
    assert list(forward) == [versions, rest]
    assert list(merge_back([cursor([*singles[::-1], before])], order)) == [versions, before]


def test_an_error_of_a_source_comes_through() -> None:
    def failing() -> Iterator[list[Entry]]:
        yield numbered(0, 5)
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        list(merge_forward([failing(), iter([numbered(2, 9)])], KeyOrder(BYTEWISE)))
    with pytest.raises(OSError, match="disk"):
        list(merge_back([failing(), iter([numbered(2, 9)])], KeyOrder(BYTEWISE)))


# What a reader sees


def seen_at(history: list[Entry], sequence: int, order: KeyOrder) -> list[tuple[bytes, bytes]]:
    """The naive way: for each key, the newest version that is old enough."""
    newest: list[Entry] = []
    for entry in sorted(history, key=lambda each: each[1]):  # newest first
        if sequence_of(entry[1]) > sequence:
            continue
        if not any(order.compare(entry[0], other[0]) == 0 for other in newest):
            newest.append(entry)
    order.sort(newest)
    return [(key, value) for key, rank, value in newest if is_value(rank)]


@every_comparator
@given(history=histories())
def test_visible(comparator: Comparator, history: list[Entry]) -> None:
    order = KeyOrder(comparator)
    entries = list(history)
    order.sort(entries)
    for sequence in {0, MAX_SEQUENCE, *(sequence_of(rank) for _, rank, _ in history)}:
        hidden = oldest_rank_hidden(sequence)
        assert visible(entries, hidden, order) == seen_at(history, sequence, order)


# What a flush or a compaction keeps


@every_comparator
@given(history=histories(), data=st.data())
def test_live_entries(comparator: Comparator, history: list[Entry], data: st.DataObject) -> None:
    """Everyone who looks sees the same as before, and nothing is kept that nobody sees."""
    order = KeyOrder(comparator)
    entries = list(history)
    order.sort(entries)
    numbers = sorted({0, *(sequence_of(rank) for _, rank, _ in history)})
    oldest = data.draw(st.sampled_from(numbers))
    for droppable in (True, False):
        kept = live_entries(entries, oldest, order, lambda key, drop=droppable: drop)  # type: ignore[misc]
        assert [entry for entry in entries if entry in kept] == kept
        for sequence in [number for number in [*numbers, MAX_SEQUENCE] if number >= oldest]:
            assert seen_at(kept, sequence, order) == seen_at(history, sequence, order)
        expected: list[Entry] = []
        for entry in entries:
            newer = [
                other
                for other in entries
                if order.compare(other[0], entry[0]) == 0 and other[1] < entry[1]
            ]
            shadowed = any(sequence_of(other[1]) <= oldest for other in newer)
            dropped = droppable and not is_value(entry[1]) and sequence_of(entry[1]) <= oldest
            if not shadowed and not dropped:
                expected.append(entry)
        assert kept == expected


def rows_of(entries: list[Entry]) -> list[tuple[bytes, bytes]]:
    return [(key, pack_entry(b"", rank) + value) for key, rank, value in entries]


@every_comparator
@given(history=histories(), data=st.data())
def test_rows_are_kept_as_entries_are(
    comparator: Comparator, history: list[Entry], data: st.DataObject
) -> None:
    """Merged from any number of sources, whichever of them have the newer versions."""
    order = KeyOrder(comparator)
    row_order = RowOrder(comparator)
    sources = sources_of(data, history, order)
    entries = [entry for source in sources for entry in source]
    order.sort(entries)
    oldest = data.draw(st.sampled_from([0, *(sequence_of(rank) for _, rank, _ in history)]))
    chunked = [[rows_of(chunk) for chunk in data.draw(chunkings(source))] for source in sources]
    merged = list(merge_forward([iter(chunks) for chunks in chunked], row_order))
    for droppable in (True, False):
        kept: list[tuple[bytes, bytes]] = []
        for chunk in merged:
            heads, rests = live_rows(chunk, oldest, row_order, lambda key, drop=droppable: drop)  # type: ignore[misc]
            kept += zip(heads, rests, strict=True)
        expected = live_entries(entries, oldest, order, lambda key, drop=droppable: drop)  # type: ignore[misc]
        assert kept == rows_of(expected)


def test_one_version_twice_goes_through_once() -> None:
    """No sound store has it; it must end all the same."""
    row = rows_of([(b"k", rank_of(5, KIND_VALUE), b"v")])[0]
    order = RowOrder(BYTEWISE)
    assert live_rows([row, row], 9, order, lambda key: True) == ([row[0]], [row[1]])
    assert live_rows([row, row], 4, order, lambda key: True) == ([row[0]] * 2, [row[1]] * 2)


def test_at_the_very_sequence_of_the_oldest_reader() -> None:
    """A version at that sequence is the one that the reader sees: it hides what is older."""
    order = KeyOrder(BYTEWISE)
    value = [(b"k", rank_of(sequence, KIND_VALUE), b"%d" % sequence) for sequence in (6, 5, 4)]
    assert live_entries(value, 5, order, lambda key: True) == value[:2]
    assert live_entries(value, 6, order, lambda key: True) == value[:1]
    assert live_entries(value, 4, order, lambda key: True) == value
    assert live_entries(value, 3, order, lambda key: True) == value


def test_a_deletion_goes_only_with_leave() -> None:
    order = KeyOrder(BYTEWISE)
    asked: list[bytes] = []

    def drop(key: bytes) -> bool:
        asked.append(key)
        return key != b"deeper"

    def of(key: bytes) -> list[Entry]:
        return [(key, rank_of(5, KIND_DELETION), b""), (key, rank_of(3, KIND_VALUE), b"v")]

    entries = [*of(b"deeper"), *of(b"gone"), (b"young", rank_of(9, KIND_DELETION), b"")]
    assert live_entries(entries, 5, order, drop) == [entries[0], entries[4]]
    assert asked == [b"deeper", b"gone"]  # the young one is seen by a reader: it is not asked
    assert live_entries(entries, 4, order, drop) == entries
    asked.clear()
    rows = rows_of(entries)
    heads, rests = live_rows(rows, 5, RowOrder(BYTEWISE), drop)
    assert list(zip(heads, rests, strict=True)) == [rows[0], rows[4]]
    assert asked == [b"deeper", b"gone"]


@pytest.mark.parametrize("sequence", [0, 1, 2**32, 2**55 - 1, 2**55, MAX_SEQUENCE - 1])
def test_the_boundary_of_what_every_snapshot_sees(sequence: int) -> None:
    for kind in (KIND_DELETION, KIND_VALUE):
        assert rank_of(sequence, kind) >= oldest_rank_seen(sequence)
        assert rank_of(sequence + 1, kind) < oldest_rank_seen(sequence)
