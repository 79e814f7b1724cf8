"""lsmkv.engine.db.tree.memtable_scan: what a scan of a memtable does with a list of its keys.

What a scan finds is compared with a model in ``tests/engine/db/read/test_memtable_iterator.py``.
"""

from __future__ import annotations

from runs import pairs_of

from lsmkv.engine.db.read.internal_iterator import Seen
from lsmkv.engine.db.read.memtable_iterator import MemTableIterator
from lsmkv.engine.db.tree.memtable import MemTable
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


def test_versions_of_a_list_are_those_that_its_reader_sees() -> None:
    """Until they are written to; older ones are looked up."""
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
    assert keys_read(3000) == keys
    table.add(5001, [(keys[1000], b"again"), (b"1000a", b"new")], 5000)
    for _ in range(2):
        assert keys_read(8000) == [keys[1000], b"1000a", *keys[2000:]]
        assert keys_read(5000) == keys[2000:]
    assert table._sorted._list is not None
