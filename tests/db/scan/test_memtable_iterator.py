"""lsmkv.db.scan.memtable_iterator: a memtable read both ways, from anywhere, against a model."""

from __future__ import annotations

import random
from functools import cmp_to_key

import pytest
from orders import FOLDING

from lsmkv.db.memtable import MemTable
from lsmkv.db.scan.internal_iterator import InternalIterator, Seen
from lsmkv.db.scan.level_iterator import FIRST_CHUNK
from lsmkv.db.scan.memtable_iterator import MemTableIterator
from lsmkv.db.store_lock import StoreLock
from lsmkv.format.batch import Operation
from lsmkv.format.key_order import KeyOrder, Position
from lsmkv.util.comparator import BYTEWISE, REVERSE_BYTEWISE, Comparator

every_comparator = pytest.mark.parametrize(
    "comparator", [BYTEWISE, REVERSE_BYTEWISE, FOLDING], ids=lambda each: each.name
)


def pairs_of(run: InternalIterator) -> list[Seen]:
    """All of them, in the order in which they come."""
    return [pair for chunk in iter(run.next_chunk, []) for pair in chunk]


def lies_before(key: bytes, position: Position, comparator: Comparator) -> bool:
    compared = comparator.compare(key, position.user_key)
    return compared < 0 or (compared == 0 and position.after)


def random_key(rng: random.Random, first: int, stop: int, comparator: Comparator) -> bytes:
    key = b"k%04d" % rng.randrange(first, stop)
    return key.upper() if comparator is FOLDING and rng.random() < 0.5 else key


@every_comparator
@pytest.mark.parametrize("seed", range(40))
def test_a_memtable_both_ways_from_anywhere(comparator: Comparator, seed: int) -> None:
    rng = random.Random(seed)
    order = KeyOrder(comparator)
    table = MemTable(comparator, StoreLock())
    keys = rng.choice([5, 40, 3000] if comparator is BYTEWISE else [5, 40, 400])
    history: dict[bytes, list[tuple[int, Seen]]] = {}
    readers: list[int] = []
    sequence = 0

    def write(count: int) -> None:
        nonlocal sequence
        operations: list[Operation] = []
        for number in range(sequence + 1, sequence + count + 1):
            key = random_key(rng, 0, keys, comparator)
            value = b"%d" % number if rng.random() < 0.7 else None
            operations.append((key, value))
            name = key.lower() if comparator is FOLDING else key
            history.setdefault(name, []).insert(0, (number, (key, value)))
        table.add(sequence + 1, operations, max(readers, default=-1))
        sequence += count

    for _ in range(rng.randrange(1, 6)):
        write(rng.choice([1, 20, keys]))
        if rng.random() < 0.7:
            readers.append(sequence)
    readers.append(sequence)
    as_list = 0
    for _ in range(60):
        reader = rng.choice(readers)
        low, high = (
            Position(random_key(rng, -1, keys + 1, comparator), rng.random() < 0.5)
            for _ in range(2)
        )
        lower, upper = rng.choice([None, low]), rng.choice([None, high])
        expected = [
            next(pair for number, pair in history[key] if number <= reader)
            for key in sorted(history, key=cmp_to_key(comparator.compare))
            if history[key][-1][0] <= reader
            and (lower is None or not lies_before(key, lower, comparator))
            and (upper is None or lies_before(key, upper, comparator))
        ]
        chunk = rng.choice([1, FIRST_CHUNK])
        run = MemTableIterator(table, order, reader, lower, upper, False, chunk)
        assert pairs_of(run) == expected
        assert run.next_chunk() == []
        back = MemTableIterator(table, order, reader, upper, lower, True, chunk)
        chunks = list(iter(back.next_chunk, []))
        assert [pair for some in reversed(chunks) for pair in some] == expected
        assert back.next_chunk() == []
        as_list += table._key_list is not None
        if rng.random() < 0.3:
            write(1)  # which the readers do not see
    assert (as_list > 0) == (comparator is BYTEWISE)


def test_a_scan_shows_the_spelling_that_the_version_was_written_under() -> None:
    table = MemTable(FOLDING, StoreLock())
    table.add(1, [(b"Key", b"old"), (b"other", b"")], -1)
    table.add(3, [(b"KEY", b"new")], 2)
    table.add(4, [(b"keY", None)], 3)
    for reader, pair in [(2, (b"Key", b"old")), (3, (b"KEY", b"new")), (4, (b"keY", None))]:
        for back in (False, True):
            run = MemTableIterator(table, KeyOrder(FOLDING), reader, None, None, back, 4)
            assert pairs_of(run) == [pair, (b"other", b"")]


def test_a_memtable_is_read_by_more_and_more() -> None:
    table = MemTable(BYTEWISE, StoreLock())
    operations: list[Operation] = [(b"%04d" % number, b"") for number in range(5000)]
    table.add(1, operations, -1)
    for back in (False, True):
        run = MemTableIterator(table, KeyOrder(BYTEWISE), 5000, None, None, back, 1)
        sizes = [len(chunk) for chunk in iter(run.next_chunk, [])]
        assert sizes == [1 << n for n in range(11)] + [1024, 1024, 905]


def test_keys_are_listed_once_that_pays_and_until_one_is_merged() -> None:
    table = MemTable(BYTEWISE, StoreLock())
    operations: list[Operation] = [(b"%04d" % number, b"") for number in range(3200)]
    table.add(1, operations, -1)
    for asked in range(1, 101):
        assert table._key_list is None
        found: list[Seen] = []
        assert table.visible(Position(b"2000", after=True), 1, 3200, False, found) == b"2001"
        assert found == [(b"2001", b"")], asked
    assert table._key_list is not None
    table.add(3201, [(b"20005", b"")], 3200)
    found = []
    assert table.visible(Position(b"2000", after=True), 1, 3201, False, found) == b"20005"
    assert table._key_list is None


def test_a_long_stretch_of_which_nothing_is_seen_is_not_gone_through_deaf() -> None:
    """Compiled, signals and other threads are heeded where interpreted code runs: in the
    ``SortedDict``, which is asked again and again though the keys are listed."""
    table = MemTable(BYTEWISE, StoreLock())
    operations: list[Operation] = [(b"%06d" % number, b"") for number in range(20_000)]
    table.add(1, operations, -1)
    found: list[Seen] = []
    while table._key_list is None:
        table.visible(None, 1, 20_000, False, found)
    asked = 0
    irange = table._sorted.irange

    def counted(*arguments: object, **keywords: object) -> object:
        nonlocal asked
        asked += 1
        return irange(*arguments, **keywords)

    table._sorted.irange = counted
    for back in (False, True):
        assert (
            MemTableIterator(table, KeyOrder(BYTEWISE), 0, None, None, back, 1).next_chunk() == []
        )
    assert asked >= 2 * 18
