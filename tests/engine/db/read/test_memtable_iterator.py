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
from lsmkv.engine.db.tree.pinned import Pin, PinnedSequences
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.key_order import KeyOrder, Position
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE, Comparator

ORDER = KeyOrder(BYTEWISE)

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
        as_list += table._key_list is not None
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


def test_keys_are_listed_once_that_pays_and_until_many_are_merged() -> None:
    table = MemTable(BYTEWISE, StoreLock())
    operations: list[Operation] = [(b"%04d" % number, b"") for number in range(3200)]
    table.add(1, operations, -1)

    def after_2000() -> list[Seen]:
        found: list[Seen] = []
        last = table.visible(Position(b"2000", after=True), 1, 4000, False, found)
        assert [last] == [key for key, _ in found]
        table.check()
        return found

    for asked in range(1, 101):
        assert table._key_list is None, asked
        assert after_2000() == [(b"2001", b"")]
    assert table._key_list is not None
    table.add(3201, [(b"20005", b"")], 3200)
    table.add(3202, [(b"2002", None)], 3200)
    assert after_2000() == [(b"20005", b"")]
    assert table._key_list is not None
    table.add(3203, [(b"20003%02d" % number, b"") for number in range(30)], 3200)
    assert after_2000() == [(b"2000300", b"")]
    assert table._key_list is None


def test_one_scan_of_all_keys_makes_a_list_pay() -> None:
    table = MemTable(BYTEWISE, StoreLock())
    table.add(1, [(b"%06d" % number, b"") for number in range(50_000)], -1)
    for _ in range(2):
        assert len(pairs_of(MemTableIterator(table, ORDER, 50_000, None, None, False, 4))) == 50_000
    assert table._key_list is not None


def test_a_list_pays_where_each_scan_finds_a_key_written() -> None:
    """As in a queue, whose scans begin before all that was deleted."""
    table = MemTable(BYTEWISE, StoreLock())
    keys = [b"%04d" % number for number in range(4000)]
    table.add(1, [(key, b"") for key in keys], -1)
    for taken in range(1000):
        iterator = MemTableIterator(table, ORDER, 4000 + taken, None, None, False, 4)
        iterator.read_pairs()
        assert iterator.next_chunk()[0][0] == keys[taken]
        table.add(4001 + taken, [(keys[taken], None)], -1)
    table.check()
    assert table._key_list is not None
    assert table._key_list.first_left(0) == 999


def test_keys_of_which_only_a_deletion_is_left_are_not_looked_at_again() -> None:
    """Until they are written to; and they are looked at for readers that see older versions."""
    table = MemTable(BYTEWISE, StoreLock())
    keys = [b"%04d" % number for number in range(3000)]
    table.add(1, [(key, b"v") for key in keys], -1)
    table.add(3001, [(key, None) for key in keys[:2000]], 3000)

    def keys_read(sequence: int) -> list[bytes]:
        iterator = MemTableIterator(table, ORDER, sequence, None, None, False, 4)
        iterator.read_pairs()
        table.check()
        return [key for key, _ in pairs_of(iterator)]

    for _ in range(40):
        assert keys_read(5000) == keys[2000:]
    assert table._key_list is not None
    assert table._key_list.first_left(0) == 0  # the first reader's versions are still kept
    assert keys_read(3000) == keys
    table.add(5001, [(key, None) for key in keys[:2000]], -1)
    for _ in range(40):
        assert keys_read(8000) == keys[2000:]
    assert table._key_list.first_left(0) == 2000
    table.add(7001, [(keys[1000], b"again"), (b"1000a", b"new")], -1)
    for _ in range(2):
        assert keys_read(8000) == [keys[1000], b"1000a", *keys[2000:]]
        assert keys_read(7000) == keys[2000:]
    assert table._key_list.first_left(0) == 1000


def test_versions_that_no_reader_sees_any_more_are_dropped() -> None:
    table = MemTable(BYTEWISE, StoreLock())
    pinned = PinnedSequences()
    keys = [b"%02d" % number for number in range(20)]
    table.add(1, [(key, b"v") for key in keys], -1)
    old = Pin(pinned, 20)
    table.add(21, [(key, None) for key in keys], pinned.newest())
    new = Pin(pinned, 40)

    def keys_read(pin: Pin) -> list[bytes]:
        iterator = MemTableIterator(table, ORDER, pin.sequence, None, None, False, 4, pinned)
        iterator.read_pairs()
        table.check()
        return [key for key, _ in pairs_of(iterator)]

    for _ in range(5):
        assert (keys_read(new), keys_read(old)) == ([], keys)
    assert table.keeps_older
    old.release()
    assert keys_read(new) == []
    assert not table.keeps_older
