"""lsmkv.engine.db.tree.memtable_scan: what a scan of a memtable does with a list of its keys, and
with keys of which nothing but a deletion is left.

What a scan finds is compared with a model in ``tests/engine/db/read/test_memtable_iterator.py``.
"""

from __future__ import annotations

import pytest
from runs import pairs_of

from lsmkv.engine.db.read.internal_iterator import Seen
from lsmkv.engine.db.read.memtable_iterator import MemTableIterator
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.pinned import Pin, PinnedSequences
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.key_order import KeyOrder, Position
from lsmkv.engine.util.comparator import BYTEWISE

ORDER = KeyOrder(BYTEWISE)


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
        assert table._sorted._list is None, asked
        assert after_2000() == [(b"2001", b"")]
    assert table._sorted._list is not None
    table.add(3201, [(b"20005", b"")], 3200)
    table.add(3202, [(b"2002", None)], 3200)
    assert after_2000() == [(b"20005", b"")]
    assert table._sorted._list is not None
    table.add(3203, [(b"20003%02d" % number, b"") for number in range(30)], 3200)
    assert after_2000() == [(b"2000300", b"")]
    assert table._sorted._list is None


def test_one_scan_of_all_keys_makes_a_list_pay() -> None:
    table = MemTable(BYTEWISE, StoreLock())
    table.add(1, [(b"%06d" % number, b"") for number in range(50_000)], -1)
    for _ in range(2):
        assert len(pairs_of(MemTableIterator(table, ORDER, 50_000, None, None, False, 4))) == 50_000
    assert table._sorted._list is not None


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
    assert table._sorted._list is not None
    assert table._sorted._list.first_left(0) == 999


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
    assert table._sorted._list is not None
    assert table._sorted._list.first_left(0) == 0  # the first reader's versions are still kept
    assert keys_read(3000) == keys
    table.add(5001, [(key, None) for key in keys[:2000]], -1)
    for _ in range(40):
        assert keys_read(8000) == keys[2000:]
    assert table._sorted._list.first_left(0) == 2000
    table.add(7001, [(keys[1000], b"again"), (b"1000a", b"new")], -1)
    for _ in range(2):
        assert keys_read(8000) == [keys[1000], b"1000a", *keys[2000:]]
        assert keys_read(7000) == keys[2000:]
    assert table._sorted._list.first_left(0) == 1000


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


def test_check_finds_a_marked_key_that_a_reader_may_see() -> None:
    table = MemTable(BYTEWISE, StoreLock())
    table.add(1, [(b"a", b"v"), (b"b", None)], -1)
    list(table.entries())
    every = table._sorted.listed(64)
    assert every is not None
    every.mark(1)
    table.check()
    every.mark(0)
    with pytest.raises(AssertionError, match="a reader may see"):
        table.check()
