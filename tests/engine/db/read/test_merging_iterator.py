"""lsmkv.engine.db.read.merging_iterator: merged sources against a model, both ways, in every
order.
"""

from __future__ import annotations

import gc
import itertools
import random
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from orders import fold

from lsmkv.engine.db.read.internal_iterator import InternalIterator, Pair, Seen
from lsmkv.engine.db.read.merging_iterator import MergingIterator
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.table.deletion_run import DeletionRun, Unneeded, add_deletion, run_in
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE, CallableComparator, Comparator
from lsmkv.errors import CorruptionError


class ListsIterator(InternalIterator):
    """The lists of an iterator, but for those that are empty."""

    def __init__(self, lists: Iterator[list[Any]]) -> None:
        self._lists = lists

    def next_chunk(self) -> list[Any]:
        for some in self._lists:
            if some:
                return some
        return []


COMPARATORS: list[Comparator] = [
    BYTEWISE,
    REVERSE_BYTEWISE,
    CallableComparator(fold, "test.Folding"),
]
every_comparator = pytest.mark.parametrize("comparator", COMPARATORS, ids=lambda each: each.name)


def name(order: KeyOrder, key: bytes) -> bytes:
    """The same for keys that compare equal."""
    return key.lower() if order.compare(b"a", b"A") == 0 else key


def chunks_of(entries: list[Any], rng: random.Random) -> list[list[Any]]:
    """Cut anywhere."""
    chunks: list[list[Any]] = []
    at = 0
    while at < len(entries):
        size = rng.choice([1, 2, 5, 20])
        chunks.append(entries[at : at + size])
        at += size
    return chunks


def with_empty_lists(chunks: list[list[Any]], rng: random.Random) -> InternalIterator:
    lists: list[list[Any]] = []
    for chunk in chunks:
        if rng.random() < 0.2:
            lists.append([])
        lists.append(chunk)
    return ListsIterator(iter(lists))


def chunks_in(source: InternalIterator) -> Iterator[list[Any]]:
    """Up to the first that is empty."""
    return iter(source.next_chunk, [])


def random_key(rng: random.Random, order: KeyOrder) -> bytes:
    key = b"%02d" % rng.randrange(40) + rng.choice([b"", b"a", b"b"])
    return key if order.is_bytewise or rng.random() < 0.5 else key.upper()


def source_of(rng: random.Random, order: KeyOrder, size: int) -> list[Seen]:
    """Pairs in order; no two keys compare equal."""
    found: dict[bytes, Seen] = {}
    for _ in range(size):
        key = random_key(rng, order)
        found[name(order, key)] = (key, rng.randbytes(3) if rng.random() < 0.7 else None)
    return [found[one] for one in sorted(found, key=order.of)]


@every_comparator
@pytest.mark.parametrize("seed", range(40))
def test_the_newest_source_counts(comparator: Comparator, seed: int) -> None:
    rng = random.Random(seed)
    order = KeyOrder(comparator)
    sources = [source_of(rng, order, rng.choice([0, 1, 10, 60])) for _ in range(rng.randrange(5))]
    model: dict[bytes, Seen] = {}
    for source in reversed(sources):
        model |= {name(order, pair[0]): pair for pair in source}
    expected = [model[one] for one in sorted(model, key=order.of) if model[one][1] is not None]
    chunked = [chunks_of(source, rng) for source in sources]
    sources_of = [with_empty_lists(chunks, rng) for chunks in chunked]
    forward = list(chunks_in(MergingIterator(sources_of, order)))
    assert [pair for pairs in forward for pair in pairs] == expected
    sources_of = [with_empty_lists(chunks[::-1], rng) for chunks in chunked]
    back = list(chunks_in(MergingIterator(sources_of, order, back=True)))
    assert [pair for pairs in reversed(back) for pair in pairs] == expected
    again = MergingIterator([ListsIterator(iter([]))], order)
    assert again.next_chunk() == again.next_chunk() == []


class SkippingIterator(ListsIterator):
    """Skips what is not needed, or some of it, and puts deletions in a row together."""

    def __init__(self, lists: Iterator[list[Any]], rng: random.Random) -> None:
        super().__init__(lists)
        self._rng = rng
        self._unneeded = Unneeded(None)

    def may_skip(self, unneeded: Unneeded) -> None:
        self._unneeded = unneeded

    def next_chunk(self) -> list[Any]:
        while chunk := super().next_chunk():
            kept = [entry for entry in chunk if not self._is_skipped(entry)]
            if kept:
                return with_runs(kept, self._rng)
        return []

    def _is_skipped(self, entry: Any) -> bool:
        run, before = self._unneeded.hidden_by, self._unneeded.before
        if self._rng.random() < 0.2:
            return False
        if run is not None and entry[0] in run.keys:
            newer = run.sequences
            return newer is None or len(entry) == 2 or newer[run.keys.index(entry[0])] > entry[2]
        return (
            self._unneeded.deletions and entry[1] is None and (before is None or entry[0] < before)
        )


def with_runs(chunk: list[Any], rng: random.Random) -> list[Any]:
    """Several deletions in a row as one entry, perhaps after a few of them."""
    found: list[Any] = []
    for is_deletion, some in itertools.groupby(chunk, lambda entry: entry[1] is None):
        entries = list(some)
        if not is_deletion or rng.random() < 0.2:
            found += entries
            continue
        user_keys = [entry[0] for entry in entries]
        sequences = [entry[2] for entry in entries] if len(entries[0]) == 3 else None
        first = rng.randrange(len(entries))
        found += entries[:first]
        found.append((user_keys[first], None, -1, DeletionRun(user_keys, first, sequences)))
    return found


@every_comparator
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_sources_that_skip_what_they_may(comparator: Comparator, back: bool, seed: int) -> None:
    """A memtable, tables of level 0 whose order is not that of their sequences, deeper levels."""
    rng = random.Random(seed)
    order = KeyOrder(comparator)
    numbers = list(range(1, 300))
    rng.shuffle(numbers)
    sources: list[list[Any]] = [list(source_of(rng, order, rng.choice([0, 10, 90])))]
    level_0 = [
        [(*pair, numbers.pop()) for pair in source_of(rng, order, rng.choice([10, 60]))]
        for _ in range(rng.choice([0, 2, 3]))
    ]
    sources += level_0
    sources += [list(source_of(rng, order, rng.choice([10, 90]))) for _ in range(rng.randrange(3))]
    model: dict[bytes, Any] = {}
    for source in reversed(sources):
        for entry in source:
            there = model.get(name(order, entry[0]), ())
            if not (len(there) == len(entry) == 3 and there[2] > entry[2]):
                model[name(order, entry[0])] = entry
    ordered = [model[one] for one in sorted(model, key=order.of)]
    expected = [entry[:2] for entry in ordered if entry[1] is not None]
    step = -1 if back else 1
    merged = MergingIterator(
        [SkippingIterator(iter(chunks_of(source, rng)[::step]), rng) for source in sources],
        order,
        back,
    )
    chunks = list(chunks_in(merged))
    assert [pair for pairs in chunks[::step] for pair in pairs] == expected


class RecordingIterator(ListsIterator):
    """Notes what it may skip, and skips nothing."""

    def __init__(self, *lists: list[Any]) -> None:
        super().__init__(iter(lists))
        self.unneeded: list[Unneeded] = []

    def may_skip(self, unneeded: Unneeded) -> None:
        self.unneeded.append(unneeded)


def two(number: int) -> bytes:
    return b"%02d" % number


def values(first: int, last: int, value: bytes) -> list[Pair]:
    return [(two(number), value) for number in range(first, last + 1)]


def deletions(first: int, last: int) -> list[Any]:
    """With a run."""
    found: list[Any] = []
    run = None
    for number in range(first, last + 1):
        run = add_deletion(found, run, number - first + 1, two(number), -1, False)
    return found


@pytest.mark.parametrize("back", [False, True])
def test_entries_under_a_run_are_not_needed(back: bool) -> None:
    """The first example of ``deletion_run.py``; and the same backward."""
    gone = deletions(0, 99)
    newer = [*gone, (b"A", b"v")]
    blocks = [values(0, 59, b"x"), [*values(60, 99, b"y"), (b"B", b"w")]]
    older = RecordingIterator(*(blocks[::-1] if back else blocks))
    sources: list[InternalIterator] = [RecordingIterator(newer), older]
    merging = MergingIterator(sources, KeyOrder(BYTEWISE), back)
    found = list(itertools.chain.from_iterable(chunks_in(merging)))
    assert sorted(found) == [(b"A", b"v"), (b"B", b"w")]
    first = older.unneeded[0]
    assert first.hidden_by is run_in(gone[-1]) is not None
    assert (first.deletions, first.before) == (False, None)


@pytest.mark.parametrize("back", [False, True])
def test_deletions_before_the_next_key_of_the_others_are_not_needed(back: bool) -> None:
    """The second example of ``deletion_run.py``; backward, nothing is said of them."""
    blocks = [values(0, 0, b"a"), [*deletions(1, 49), (b"60", b"b")]]
    older = RecordingIterator(*(blocks[::-1] if back else blocks))
    newer = RecordingIterator([(b"00", b"v"), (b"50", b"w")])
    merging = MergingIterator([newer, older], KeyOrder(BYTEWISE), back)
    found = list(itertools.chain.from_iterable(chunks_in(merging)))
    assert sorted(found) == [(b"00", b"v"), (b"50", b"w"), (b"60", b"b")]
    first = older.unneeded[0]
    assert (first.hidden_by, first.deletions) == (None, not back)
    if not back:
        assert first.before == b"50"


def test_nothing_is_skipped_while_another_source_may_have_keys_anywhere() -> None:
    """Both have nothing left of their chunks; and at last one of them is alone."""
    newer = RecordingIterator([(b"05", b"v")])
    older = RecordingIterator([(b"05", None)], deletions(10, 30))
    merging = MergingIterator([newer, older], KeyOrder(BYTEWISE))
    assert list(itertools.chain.from_iterable(chunks_in(merging))) == [(b"05", b"v")]
    noted = [(each.hidden_by, each.deletions) for each in newer.unneeded + older.unneeded]
    assert (None, False) in noted
    assert noted[-1] == (None, True)


@pytest.mark.parametrize("back", [False, True])
def test_what_lies_before_damage_is_handed_out(back: bool) -> None:
    """Though it is met while reading ahead."""

    def source(step: int, end: int) -> Iterator[list[Seen]]:
        for at in range(0, end, step):
            yield [(b"%04d" % (4000 - at if back else at), b"v")]
        raise CorruptionError("damaged")

    sources: list[InternalIterator] = [
        ListsIterator(source(1, 777)),
        ListsIterator(source(500, 4000)),
    ]
    merging = MergingIterator(sources, KeyOrder(BYTEWISE), back)
    found: list[Pair] = []
    with pytest.raises(CorruptionError, match="damaged"):
        found.extend(itertools.chain.from_iterable(chunks_in(merging)))
    assert len(found) == 777
    with pytest.raises(CorruptionError, match="damaged"):
        merging.next_chunk()


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_keys_out_of_order_come_to_an_end(seed: int, back: bool) -> None:
    """As those of a table that someone has tampered with: what is taken is stepped over."""
    rng = random.Random(seed)
    sources: list[list[list[Any]]] = []
    for _ in range(rng.randrange(2, 5)):
        keys = [bytes([rng.choice(b"abck")]) for _ in range(rng.randrange(1, 12))]
        values = [rng.choice([None, b"v", b"v"]) for _ in keys]
        sources.append(chunks_of(list(zip(keys, values, strict=True)), rng))
    most = sum(len(chunk) for source in sources for chunk in source)
    merging = MergingIterator(
        [ListsIterator(iter(source)) for source in sources], KeyOrder(BYTEWISE), back
    )
    taken = [pair for _ in range(most + 1) for pair in merging.next_chunk()]
    assert len(taken) <= most
    assert merging.next_chunk() == []


class Lists:
    """A source that can be watched going away."""

    def __init__(self, lists: list[list[Any]], fails: bool = False) -> None:
        self.lists = lists
        self.fails = fails

    def __iter__(self) -> Lists:
        return self

    def __next__(self) -> list[Any]:
        if self.lists:
            return self.lists.pop(0)
        if self.fails:
            raise CorruptionError("damaged")
        raise StopIteration


@pytest.mark.parametrize("where", [0, 1, 2])
@pytest.mark.parametrize("count", [0, 1])
def test_an_error_lets_go_of_the_sources_that_did_not_fail(where: int, count: int) -> None:
    """They hold tables, and these hold files: nothing of that is for the garbage collector.
    Some were not asked for anything yet, if the first list of one fails."""
    sources = [Lists([[(b"%d" % n, b"v")]] * count, fails=n == where) for n in range(3)]
    others = [weakref.ref(one) for one in sources if not one.fails]
    merging = MergingIterator([ListsIterator(source) for source in sources], KeyOrder(BYTEWISE))
    del sources
    gc.disable()
    try:
        with pytest.raises(CorruptionError) as caught:
            list(chunks_in(merging))
        del merging
        assert [one() for one in others] == [None, None]
    finally:
        gc.enable()
    assert caught.value.reason == "damaged"


@pytest.mark.parametrize("back", [False, True])
def test_no_list_is_asked_for_too_early(back: bool) -> None:
    """A source is asked for no more than is handed out, and that at most doubles each time."""
    asked = {"dense": 0, "sparse": 0}

    def source(called: str, step: int) -> Iterator[list[Seen]]:
        for at in range(0, 4001, step):
            asked[called] += 1
            yield [(b"%04d" % (4000 - at if back else at), b"v")]

    order = KeyOrder(BYTEWISE)
    delivered = 0
    times = 0
    most = 1
    sources: list[InternalIterator] = [
        ListsIterator(source("dense", 1)),
        ListsIterator(source("sparse", 500)),
    ]
    for pairs in chunks_in(MergingIterator(sources, order, back)):
        delivered += len(pairs)
        times += 1
        assert len(pairs) <= most
        most = min(2 * len(pairs), 512)
        assert asked["dense"] <= delivered + 1
        assert asked["sparse"] <= delivered // 500 + 2
    assert delivered == 4001
    assert times < 30


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_long_lists_come_in_parts(back: bool, count: int) -> None:
    """This bounds how long a reader waits, and how many entries it holds."""
    keys = [b"%05d" % at for at in range(5000)]
    sources: list[InternalIterator] = [
        ListsIterator(iter([[(key, b"v") for key in keys[at::count]]])) for at in range(count)
    ]
    lists = list(chunks_in(MergingIterator(sources, KeyOrder(BYTEWISE), back)))
    assert all(0 < len(pairs) <= 512 for pairs in lists)
    if back:
        lists.reverse()
    assert [key for pairs in lists for key, _ in pairs] == keys


def test_a_stretch_of_deletions_is_passed_over() -> None:
    deletions: list[Seen] = [(b"%05d" % at, None) for at in range(5000)]
    below: list[Seen] = [*((key, b"old") for key, _ in deletions), (b"05000", b"v")]
    merging = MergingIterator(
        [ListsIterator(iter([deletions])), ListsIterator(iter([below]))], KeyOrder(BYTEWISE)
    )
    assert list(chunks_in(merging)) == [[(b"05000", b"v")]]
