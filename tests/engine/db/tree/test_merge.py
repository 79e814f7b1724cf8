"""lsmkv.engine.db.tree.merge against sorting everything at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orders import COMPARATORS
from states import Case, Drawing, states
from trees import (
    entries_of,
    is_value,
    key_text,
    newest_first,
    order_of,
    seen_at,
    table_text,
    words_text,
)

from lsmkv.engine.db.tree.merge import live_entries, merge
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import (
    KIND_DELETION,
    KIND_VALUE,
    MAX_SEQUENCE,
    Entry,
    pack,
    sequence_in,
)
from lsmkv.engine.util.comparator import BYTEWISE, Comparator

every_comparator = pytest.mark.parametrize("comparator", COMPARATORS, ids=lambda each: each.name)

keys = st.text(alphabet="aAbBc", max_size=3).map(str.encode)
rows = st.lists(
    st.tuples(keys, st.sampled_from([KIND_DELETION, KIND_VALUE, KIND_VALUE])), max_size=30
)


def entry(key: bytes, sequence: int, kind: int = KIND_VALUE, value: bytes = b"") -> Entry:
    return key, pack(b"", sequence, kind) + value


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
    """Each rises, none is empty, and none shares a key with its neighbor (in rising order)."""
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


def test_an_error_of_a_source_comes_through() -> None:
    def failing() -> Iterator[list[Entry]]:
        yield numbered(0, 5)
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        list(merge([failing(), iter([numbered(2, 9)])], KeyOrder(BYTEWISE)))


# What a flush or a compaction keeps


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


# States


def answer(drawing: Drawing, words: list[str]) -> str:
    """Of the sources that are drawn, the newest first."""
    order = KeyOrder(order_of(drawing))
    sources = [entries_of(text) for label, text in drawing if label == "source"]
    match words:
        case ["merge"]:
            chunks = list(merge([source_of(chunks) for chunks in sources], order))
            check_chunks(chunks, order)
            return " ".join(map(table_text, chunks)) or "none"
        case ["keep", "oldest", oldest, *below]:
            asked: list[bytes] = []

            def drop(key: bytes) -> bool:
                asked.append(key)
                return key_text(key) not in below[1:]

            (chunk,) = sources[0]
            kept = table_text(kept_of(chunk, int(oldest), order, drop))
            return f"{kept}, asked for {words_text(map(key_text, asked))}" if asked else kept
    raise NotImplementedError


@states("merge.txt")
def test_states(case: Case) -> None:
    case.check(answer, draws="source|order")
