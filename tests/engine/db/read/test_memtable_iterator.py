"""lsmkv.engine.db.read.memtable_iterator: a memtable read both ways, from anywhere, against a
model.
"""

from __future__ import annotations

import random
from functools import cmp_to_key

import pytest
from orders import FOLDING, lies_before
from runs import pairs_of, single_entries

from lsmkv.engine.db.read.internal_iterator import Seen
from lsmkv.engine.db.read.level_iterator import FIRST_CHUNK
from lsmkv.engine.db.read.memtable_iterator import MemTableIterator
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.key_order import KeyOrder, Position
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE, Comparator

every_comparator = pytest.mark.parametrize(
    "comparator", [BYTEWISE, REVERSE_BYTEWISE, FOLDING], ids=lambda each: each.name
)


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
        assert [pair for some in reversed(chunks) for pair in single_entries(some)] == expected
        assert back.next_chunk() == []
        as_list += table._sorted._list is not None
        if rng.random() < 0.3:
            write(1)  # which the readers do not see
    assert (as_list > 0) == (comparator is BYTEWISE)


def test_a_memtable_is_read_by_more_and_more() -> None:
    table = MemTable(BYTEWISE, StoreLock())
    operations: list[Operation] = [(b"%04d" % number, b"") for number in range(5000)]
    table.add(1, operations, -1)
    for back in (False, True):
        run = MemTableIterator(table, KeyOrder(BYTEWISE), 5000, None, None, back, 1)
        sizes = [len(chunk) for chunk in iter(run.next_chunk, [])]
        assert sizes == [1 << n for n in range(11)] + [1024, 1024, 905]
