"""lsmkv.engine.db.tree.memtable against a plain list of all versions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orders import FOLDING, InterruptedOrder, fold
from states import Case, Drawing, StatesError, states
from trees import (
    entry_of,
    entry_text,
    key_of,
    key_text,
    lookup_of,
    order_of,
    table_text,
    words_text,
)

import lsmkv
from lsmkv.engine.db.read.memtable_iterator import MemTableIterator
from lsmkv.engine.db.tree import memtable as module
from lsmkv.engine.db.tree import write_buffer
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.key_order import KeyOrder, Position
from lsmkv.engine.format.keys import KIND_DELETION, KIND_VALUE, MAX_SEQUENCE, Entry, sequence_in
from lsmkv.engine.util.comparator import (
    BYTEWISE,
    REVERSE_BYTEWISE,
    Comparator,
)

COMPARATORS: list[Comparator] = [BYTEWISE, REVERSE_BYTEWISE, FOLDING]
NEWEST = MAX_SEQUENCE
Interrupted = Callable[..., bool]

keys = st.text(alphabet="aAbBc", max_size=3).map(str.encode)
batches = st.lists(st.tuples(keys, st.none() | st.binary(max_size=3)), min_size=1, max_size=6)


def empty(comparator: Comparator = BYTEWISE) -> MemTable:
    return MemTable(comparator, StoreLock())


def filled(*names: bytes, comparator: Comparator = BYTEWISE) -> MemTable:
    table = empty(comparator)
    table.add(1, [(name, b"v" + name) for name in names], -1)
    return table


Version = tuple[bytes, int, bytes]
"""User key, negated tag, value."""


def tag_of(sequence: int, kind: int) -> int:
    """The tag, negated: versions of a key sort as in a table, newest first."""
    return -(sequence << 8 | kind)


def version(entry: Entry) -> Version:
    return entry[0], -int.from_bytes(entry[1][:8], "little"), entry[1][8:]


def entries(table: MemTable) -> list[Version]:
    return [version(entry) for chunk in table.entries() for entry in chunk]


def flushed(table: MemTable) -> list[Entry]:
    """The entries that a flush writes."""
    return [entry for columns in table.columns() for entry in zip(*columns, strict=True)]


def buffered(table: MemTable) -> list[bytes]:
    """The keys in the write buffer."""
    return [] if table._buffer is None else table._buffer.keys


def version_of(table: MemTable, key: bytes, sequence: int) -> tuple[int, bytes] | None:
    """Negated tag and value of what ``get`` finds."""
    tagged = table.get(key, sequence)
    return None if tagged is None else version((key, tagged))[1:]


def scan(
    table: MemTable,
    comparator: Comparator = BYTEWISE,
    sequence: int = MAX_SEQUENCE,
    edge: Position | None = None,
    back: bool = False,
) -> Iterator[list[tuple[bytes, bytes | None]]]:
    """The chunks of a scan."""
    order = KeyOrder(comparator)
    chunks = MemTableIterator(table, order, sequence, edge, None, back, 4)
    return iter(chunks.next_chunk, [])


def seen(
    table: MemTable,
    comparator: Comparator = BYTEWISE,
    sequence: int = MAX_SEQUENCE,
    edge: Position | None = None,
    back: bool = False,
) -> list[tuple[bytes, bytes | None]]:
    """The entries that a scan returns, in rising order."""
    chunks = list(scan(table, comparator, sequence, edge, back))
    return [pair for chunk in (reversed(chunks) if back else chunks) for pair in chunk]


class Model:
    """Every version that was ever written, newest first."""

    def __init__(self, comparator: Comparator) -> None:
        self.compare = comparator.compare
        self.order = KeyOrder(comparator)
        self.versions: list[tuple[bytes, int, bytes | None]] = []

    def add(self, sequence: int, operations: list[Operation]) -> None:
        for at, (key, value) in enumerate(operations):
            self.versions.insert(0, (key, sequence + at, value))

    def get(self, key: bytes, sequence: int) -> tuple[int, bytes | None] | None:
        for name, number, value in self.versions:
            if number <= sequence and self.compare(name, key) == 0:
                return number, value
        return None

    def seen(self, sequence: int) -> list[tuple[bytes, bytes | None]]:
        """The entries visible at ``sequence``, in order, deletions included."""
        found: list[tuple[bytes, bytes | None]] = []
        for name, number, value in self.versions:
            if number <= sequence and not any(self.compare(name, e[0]) == 0 for e in found):
                found.append((name, value))
        return sorted(found, key=self.order.of_entry)


# Against the model


@pytest.mark.parametrize("comparator", COMPARATORS, ids=lambda each: each.name)
@given(data=st.data())
def test_readers_see_what_was_written_before_them(
    comparator: Comparator, data: st.DataObject
) -> None:
    table, model = empty(comparator), Model(comparator)
    pinned: list[int] = []
    sequence = 1
    for _ in range(data.draw(st.integers(1, 8), label="steps")):
        step = data.draw(st.sampled_from(["write", "write", "read", "leave", "scan"]))
        if step == "write":
            operations = data.draw(batches)
            table.add(sequence, operations, max(pinned, default=-1))
            model.add(sequence, operations)
            sequence += len(operations)
        elif step == "read":
            pinned.append(sequence - 1)
        elif step == "leave" and pinned:
            pinned.remove(data.draw(st.sampled_from(pinned)))
        else:
            list(table.entries())  # merges what is pending
        for reader in [*pinned, sequence - 1]:
            for key in {name for name, _, _ in model.versions} | {b"absent"}:
                found = version_of(table, key, reader)
                expected = model.get(key, reader)
                if expected is None:
                    assert found is None
                else:
                    number, value = expected
                    kind = KIND_DELETION if value is None else KIND_VALUE
                    assert found == (tag_of(number, kind), value or b"")
            for key in {name for name, _, _ in model.versions} | {b"absent"}:
                sequences = [sequence_in(tagged) for tagged in table.versions(key)]
                assert sequences == sorted(sequences, reverse=True)
                newest = model.get(key, MAX_SEQUENCE)
                assert sequences[:1] == ([] if newest is None else [newest[0]])
    columns = flushed(table)
    table.check()
    everything = entries(table)
    assert columns == flushed(table)
    assert [version(entry) for entry in columns] == everything
    for reader in [*pinned, sequence - 1]:
        for back in (False, True):
            assert seen(table, comparator, reader, None, back) == model.seen(reader)


@given(operations=batches, more=batches)
def test_applying_again_changes_nothing(operations: list[Operation], more: list[Operation]) -> None:
    """An interrupted write is completed by applying all of it again."""
    for comparator in COMPARATORS:
        for newest_pinned in (-1, 5):
            once, twice = empty(comparator), empty(comparator)
            for table in (once, twice):
                table.add(1, operations[:5], -1)
                table.add(6, more, newest_pinned)
            twice.add(6, more[: len(more) // 2], newest_pinned)
            twice.add(6, more, newest_pinned)
            assert entries(once) == entries(twice)
            twice.check()


# States


def drawn(drawing: Drawing) -> MemTable:
    """The memtable after the batches that are drawn, and the reads between them."""
    table = empty(order_of(drawing))
    for label, text in drawing:
        batch, _, pinned = text.partition(" pinned ")
        if label == "read":
            list(table.entries())
        if label != "add":
            continue
        written = [entry_of(word) for word in batch.split()]
        first = sequence_in(written[0][1])
        if [sequence_in(tagged) for _, tagged in written] != [*range(first, first + len(written))]:
            raise StatesError(f"the sequences of a batch follow each other: {text}")
        operations: list[Operation] = [
            (key, tagged[8:] if tagged[0] == KIND_VALUE else None) for key, tagged in written
        ]
        table.add(first, operations, int(pinned or -1))
    return table


def answer(drawing: Drawing, words: list[str]) -> str:
    """Of the memtable to which the batches that are drawn were added."""
    table = drawn(drawing)
    match words:
        case ["entries"]:
            columns = flushed(table)
            assert columns == [entry for chunk in table.entries() for entry in chunk]
            table.check()
            return table_text(columns)
        case ["get", key]:
            name, sequence = lookup_of(key)
            tagged = table.get(name, sequence)
            return "none" if tagged is None else entry_text((name, tagged))
        case ["versions", key]:
            return words_text(sequence_in(tagged) for tagged in table.versions(key_of(key)))
        case ["scan", *rest]:
            back = rest[:1] == ["back"]
            sequence, edge = NEWEST, None
            match rest[back:]:
                case ["at", number]:
                    sequence = int(number)
                case ["before" | "after" as side, key]:
                    edge = Position(key_of(key), side == "after")
            pairs = seen(table, order_of(drawing), sequence, edge, back)
            return words_text(
                key_text(key) + (":del" if value is None else f"={value.decode()}")
                for key, value in pairs
            )
        case ["empty"]:
            return "yes" if table.empty else "no"
        case ["count"]:
            return str(len(table))
        case ["usage"]:
            return str(table.usage)
    raise NotImplementedError


@states("memtable.txt")
def test_states(case: Case) -> None:
    case.check(answer, draws="add|read|order")


# Scans


@pytest.mark.parametrize("comparator", [BYTEWISE, REVERSE_BYTEWISE], ids=lambda each: each.name)
def test_scans_begin_at_a_position(comparator: Comparator) -> None:
    names = [b"%04d" % (2 * number) for number in range(200)]
    table = filled(*names, comparator=comparator)
    ordered = sorted(names, reverse=comparator is REVERSE_BYTEWISE)
    for number in range(-1, 401):
        probe = b"%04d" % max(number, 0)
        for after in (False, True):
            position = Position(probe, after)
            below = [
                name
                for name in ordered
                if comparator.compare(name, probe) < 0 or (after and name == probe)
            ]
            before = seen(table, comparator, edge=position, back=True)
            assert [pair[0] for pair in before] == below
            behind = seen(table, comparator, edge=position)
            assert [pair[0] for pair in behind] == ordered[len(below) :]


def test_chunks_grow_and_are_bounded() -> None:
    table = filled(*(b"%06d" % number for number in range(5000)))
    forward = [len(chunk) for chunk in scan(table)]
    assert forward == [4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024, 5000 - 4092]
    assert [len(chunk) for chunk in scan(table, back=True)] == forward
    assert [len(chunk) for chunk in table.entries()] == forward
    first = next(scan(table, back=True))
    assert [pair[0] for pair in first] == [b"%06d" % number for number in range(4996, 5000)]


@pytest.mark.parametrize("comparator", COMPARATORS, ids=lambda each: each.name)
@pytest.mark.parametrize("forward", [True, False])
def test_a_scan_goes_on_while_others_write(comparator: Comparator, forward: bool) -> None:
    """Nothing that was there before the scan is missed, whatever is written meanwhile."""
    names = [b"%05d" % (10 * number) for number in range(500)]
    table = filled(*names, comparator=comparator)
    sequence = 1000
    met: list[bytes] = []
    for chunk in scan(table, comparator, back=not forward):
        met += [pair[0] for pair in (chunk if forward else reversed(chunk))]
        edge = int(met[-1])
        for key in (edge - 5, edge + 5, edge, 3 * edge % 5000 + 1):
            if 0 <= key < 5000:
                table.add(sequence, [(b"%05d" % key, b"new")], sequence - 1)
                sequence += 1
        list(table.entries())  # another reader merges what is pending
    assert [name for name in dict.fromkeys(met) if name in names] == sorted(
        names, reverse=(comparator is REVERSE_BYTEWISE) == forward
    )
    distinct = list(dict.fromkeys(met))
    assert distinct == sorted(distinct, reverse=(comparator is REVERSE_BYTEWISE) == forward)
    table.check()


def test_all_versions_of_a_key_are_in_one_chunk() -> None:
    table = empty()
    for sequence in range(1, 2001):
        table.add(sequence, [(b"%03d" % (sequence % 40), b"")], sequence - 1)
    chunks = list(table.entries())
    assert len(chunks) == 4
    keys = [{entry[0] for entry in chunk} for chunk in chunks]
    assert sum(map(len, keys)) == len(set.union(*keys)) == 40
    assert sum(map(len, chunks)) == 2000


@pytest.mark.parametrize("size", [0, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 1 << 20])
def test_values_of_any_size(size: int) -> None:
    table = empty()
    table.add(7, [(b"before", b"x"), (b"k", bytes(size)), (b"after", b"y")], -1)
    assert version_of(table, b"k", NEWEST) == (tag_of(8, KIND_VALUE), bytes(size))
    assert version_of(table, b"after", NEWEST) == (tag_of(9, KIND_VALUE), b"y")


def test_columns_go_on_while_readers_sort_the_keys() -> None:
    names = [b"%05d" % (number * 7 % 5000) for number in range(5000)]
    table = filled(*names)
    columns = table.columns()
    met, values = next(columns)
    list(table.entries())
    for keys, tagged in columns:
        assert 0 < len(keys) == len(tagged) < 1000
        met += keys
        values += tagged
    assert met == sorted(names)
    assert list(zip(met, values, strict=True)) == flushed(table)


def test_readers_miss_nothing_while_a_writer_writes_and_merges() -> None:
    lock = StoreLock()
    table = MemTable(BYTEWISE, lock)
    written = 0
    missed: list[int] = []

    def read() -> None:
        while written < 6000:
            upto = written
            for number in range(max(0, upto - 40), upto):
                if table.get(b"%05d" % number, NEWEST) is None:
                    missed.append(number)
            list(zip(range(3), table.entries(), strict=False))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(6000):
        with lock.guard:
            table.add(number + 1, [(b"%05d" % number, b"v")], -1)
        written = number + 1
    for thread in threads:
        thread.join()
    assert missed == []
    assert len(table) == 6000


# Interrupted by Ctrl-C


@pytest.mark.parametrize("already", [0, 3, 300])
def test_an_interrupted_merge_loses_nothing(already: int) -> None:
    """Ctrl-C comes anywhere in the sorting of keys that are written already."""
    order = InterruptedOrder()
    old = [b"%03d" % (2 * number) for number in range(already)]
    new = [b"%03d" % number for number in (7, 400, 5, 601, 3)]
    n = 0
    interrupted = True
    while interrupted:
        n += 1
        order.left = -1
        table = filled(*old, comparator=order.comparator)
        assert len(table) == already
        table.add(already + 1, [(name, b"new") for name in new], -1)
        order.left = n
        try:
            entries(table)
            interrupted = False
        except KeyboardInterrupt:
            pass
        order.left = -1
        for name in {*old, *new}:
            assert table.get(name, NEWEST) is not None, (n, name)
        assert [entry[0] for entry in entries(table)] == sorted({*old, *new}), n
        table.check()
    assert n > 5


def test_an_interrupted_write_can_be_done_again() -> None:
    """Where different bytes compare equal, a key replaces another one in several steps."""
    order = InterruptedOrder(fold)
    batch: list[Operation] = [(b"KEY", b"2"), (b"new", b"3"), (b"B", None), (b"keY", b"5")]
    n = 0
    interrupted = True
    while interrupted:
        n += 1
        order.left = -1
        table = filled(b"a", b"b", b"key", b"z", comparator=order.comparator)
        assert len(table) == 4
        order.left = n
        try:
            table.add(5, batch, 4)
            interrupted = False
        except KeyboardInterrupt:
            order.left = -1
            for name, sequence in ((b"a", 1), (b"b", 2), (b"key", 3), (b"z", 4)):
                # A reader at 4 misses nothing meanwhile, whatever became of the write.
                assert version_of(table, name, 4) == (tag_of(sequence, KIND_VALUE), b"v" + name)
            table.add(5, batch, 4)
        order.left = -1
        assert entries(table) == [
            (b"a", tag_of(1, KIND_VALUE), b"va"),
            (b"B", tag_of(7, KIND_DELETION), b""),
            (b"b", tag_of(2, KIND_VALUE), b"vb"),
            (b"keY", tag_of(8, KIND_VALUE), b"5"),
            (b"key", tag_of(3, KIND_VALUE), b"vkey"),
            (b"new", tag_of(6, KIND_VALUE), b"3"),
            (b"z", tag_of(4, KIND_VALUE), b"vz"),
        ], n
        assert len(table) == 5
        table.check()
    assert n > 10


class HalfWay(list[Operation]):
    """Operations that call something after the first of them."""

    def __init__(self, operations: list[Operation], call: Callable[[], None]) -> None:
        super().__init__(operations)
        self._call = call

    def __iter__(self) -> Iterator[Operation]:
        yield self[0]
        self._call()
        yield from self[1:]


@pytest.mark.skipif(lsmkv.COMPILED, reason="compiled code is not interrupted between two steps")
@pytest.mark.parametrize("pinned", [-1, 1])
def test_a_get_of_another_thread_waits_for_the_whole_batch(pinned: int) -> None:
    """Into the buffer, and into the dict."""
    lock = StoreLock()
    table = MemTable(BYTEWISE, lock)
    table.add(1, [(b"a", b"1")], -1)
    table.applying = None
    got: list[bytes | None] = []
    reader = threading.Thread(target=lambda: got.append(table.get(b"b", MAX_SEQUENCE)))

    def half_way() -> None:
        assert table.get(b"x", 1) is None  # a nested call does not wait
        reader.start()
        reader.join(0.05)
        assert not got

    with lock.guard:
        table.add(2, HalfWay([(b"a", b"2"), (b"b", b"3")], half_way), pinned)
        table.applying = None
    reader.join()
    (tagged,) = got
    assert tagged is not None
    assert tagged.endswith(b"3")


@pytest.mark.untraced  # a tracer of its own
@pytest.mark.skipif(lsmkv.COMPILED, reason="compiled code is not interrupted between two steps")
@pytest.mark.parametrize("with_read", [False, True])
def test_an_interrupted_buffered_write_can_be_repeated(
    with_read: bool, interrupted_at: Interrupted
) -> None:
    """Whether or not a read comes in between."""
    batch: list[Operation] = [(b"a", b"2"), (b"new", b"3"), (b"b", None), (b"new", b"5")]
    line = 0
    interrupted = True
    while interrupted:
        line += 1
        table = filled(b"a", b"b")
        interrupted = interrupted_at(module, line, partial(table.add, 3, batch, -1), write_buffer)
        if with_read:
            assert table.get(b"a", 2) in (None, table.get(b"a", NEWEST))
        if interrupted:
            table.add(3, batch, -1)
        table.add(7, [(b"last", b"7")], -1)
        assert [(key, -tag >> 8, value) for key, tag, value in entries(table)] == [
            (b"a", 3, b"2"),
            (b"b", 5, b""),
            (b"last", 7, b"7"),
            (b"new", 6, b"5"),
        ]
        table.check()
    assert line > 20


@pytest.mark.untraced  # a tracer of its own
@pytest.mark.skipif(lsmkv.COMPILED, reason="compiled code is not interrupted between two steps")
def test_a_buffered_write_can_be_interrupted_twice(interrupted_at: Interrupted) -> None:
    """A read in between finds what was written before it, and raises nothing."""
    batch: list[Operation] = [(b"a", b"2"), (b"new", b"3"), (b"b", None)]
    line = 0
    cases = 0
    while True:
        line += 1
        table = filled(b"a", b"b")
        if not interrupted_at(module, line, partial(table.add, 3, batch, -1), write_buffer):
            break
        again = 0
        interrupted = True
        while interrupted:
            again += 1
            cases += 1
            table = filled(b"a", b"b")
            for at in (line, again):
                interrupted = interrupted_at(
                    module, at, partial(table.add, 3, batch, -1), write_buffer
                )
            assert table.get(b"a", NEWEST) is not None
            table.add(3, batch, -1)
            assert [(key, -tag >> 8) for key, tag, _ in entries(table)] == [
                (b"a", 3),
                (b"b", 5),
                (b"new", 4),
            ]
    assert cases > 200


@pytest.mark.untraced  # a tracer of its own
@pytest.mark.skipif(lsmkv.COMPILED, reason="compiled code is not interrupted between two steps")
@pytest.mark.parametrize("written_between", [False, True])
def test_the_first_read_can_be_interrupted(
    written_between: bool, interrupted_at: Interrupted
) -> None:
    line = 0
    interrupted = True
    while interrupted:
        line += 1
        table = filled(b"a", b"b", b"a", b"c")
        read = partial(table.get, b"a", NEWEST)
        interrupted = interrupted_at(module, line, read, write_buffer)
        if written_between:
            table.add(5, [(b"b", b"5")], -1)
        found = [version_of(table, key, NEWEST) for key in (b"a", b"b", b"c")]
        numbers = [3, 5 if written_between else 2, 4]
        assert [entry and -entry[0] >> 8 for entry in found] == numbers
        assert len(table) == 3
        table.check()
    assert line > 20


# The write buffer


READS: dict[str, Callable[[MemTable], object]] = {
    "get": lambda table: table.get(b"x", NEWEST),
    "versions": lambda table: table.versions(b"x"),
    "entries": lambda table: list(table.entries()),
    "scan": lambda table: list(scan(table)),
    "scan back": lambda table: list(scan(table, back=True)),
    "len": len,
    "check": lambda table: table.check(),
}


@pytest.mark.parametrize("read", READS)
def test_writes_enter_the_sorted_keys_once_the_memtable_was_read(read: str) -> None:
    table = filled(b"b", b"a", b"b")
    table.add(4, [(b"c", None)], -1)
    assert not table.empty
    assert table._newest == {}
    READS[read](table)
    assert table._buffer is None
    table.add(5, [(b"a", b"new"), (b"d", b"")], -1)
    assert buffered(table) == []
    numbers = [(key, -tag >> 8) for key, tag, _ in entries(table)]
    assert numbers == [(b"a", 5), (b"b", 3), (b"c", 4), (b"d", 6)]


def test_a_read_while_the_same_thread_holds_the_lock() -> None:
    """A signal handler or a finalizer may read while its thread holds the lock."""
    lock = StoreLock()
    table = MemTable(BYTEWISE, lock)
    table.add(1, [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", None), (b"d", b"")], -1)
    reads = [(b"a", NEWEST), (b"a", 3), (b"a", 2), (b"b", NEWEST), (b"c", 9), (b"d", 9), (b"e", 9)]
    found: list[object] = []

    def read_under_lock() -> None:
        with lock.guard:
            found.extend(version_of(table, key, sequence) for key, sequence in reads)

    thread = threading.Thread(target=read_under_lock, daemon=True)
    thread.start()
    thread.join(30)
    assert found == [
        (tag_of(3, KIND_VALUE), b"3"),
        (tag_of(3, KIND_VALUE), b"3"),
        (tag_of(1, KIND_VALUE), b"1"),
        (tag_of(2, KIND_VALUE), b"2"),
        (tag_of(4, KIND_DELETION), b""),
        (tag_of(5, KIND_VALUE), b""),
        None,
    ]
    assert len(buffered(table)) == 5


RISING = [b"%04d" % number for number in range(1100)]


@pytest.mark.parametrize("comparator", [BYTEWISE, REVERSE_BYTEWISE])
@pytest.mark.parametrize(
    "names",
    [
        [b"%03d" % (number * 7 % 1000) for number in range(2000)],
        RISING,
        [*RISING, b"1099"],
        [*RISING, b"1098"],
        [b"0000", *RISING],
        RISING[::-1],
        [b""],
    ],
    ids=["mixed", "rising", "last twice", "back by one", "first twice", "falling", "empty"],
)
def test_a_flush_writes_the_same_whether_or_not_a_read_came_before(
    names: list[bytes], comparator: Comparator
) -> None:
    """Nor does a read change them that comes between two columns."""
    operations = [(name, None if at % 5 == 3 else b"%d" % at) for at, name in enumerate(names)]
    unread, read, meanwhile = empty(comparator), empty(comparator), empty(comparator)
    for table in (unread, read, meanwhile):
        table.add(1, operations, -1)
    read.get(b"0000", NEWEST)
    assert buffered(unread) == names
    assert flushed(unread) == flushed(read)
    assert unread._newest == {}
    assert [key for key, _ in flushed(unread)] == sorted(
        set(names), reverse=comparator is REVERSE_BYTEWISE
    )
    columns = meanwhile.columns()
    first = next(columns)
    meanwhile.get(b"0000", NEWEST)
    rest = [entry for some in (first, *columns) for entry in zip(*some, strict=True)]
    assert rest == flushed(read)


def test_writes_over_a_version_that_a_snapshot_sees_are_not_buffered() -> None:
    table = filled(b"k")
    table.add(2, [(b"k", b"two")], 1)
    assert buffered(table) == []
    assert [sequence_in(tagged) for tagged in table.versions(b"k")] == [2, 1]


def test_the_write_buffer_is_bounded() -> None:
    """It takes writes up to 4 MiB, and the one that goes beyond."""
    table = empty()
    sequence = 0
    while table.usage <= 4 * 1024 * 1024:
        assert len(buffered(table)) == sequence
        sequence += 1
        table.add(sequence, [(b"%d" % sequence, bytes(10_000))], -1)
    assert len(buffered(table)) == sequence > 400
    table.add(sequence + 1, [(b"last", b"")], -1)
    assert buffered(table) == []
    assert len(table) == sequence + 1


@pytest.mark.usefixtures("quick_switches")
def test_first_reads_from_many_threads() -> None:
    """All find earlier writes while the first one enters the buffer and a writer goes on."""
    for _ in range(60):
        lock = StoreLock()
        table = MemTable(BYTEWISE, lock)
        written = 0
        missed: list[int] = []
        done = threading.Event()

        def read(table: MemTable = table, missed: list[int] = missed) -> None:
            ended = False
            while not ended:
                ended = done.is_set()  # noqa: B023
                for number in range(written):  # noqa: B023
                    tagged = table.get(b"%d" % (number % 50), NEWEST)
                    if tagged is None or sequence_in(tagged) <= number:
                        missed.append(number)

        threads = [threading.Thread(target=read) for _ in range(3)]
        for number in range(200):
            if number == 100:
                for thread in threads:
                    thread.start()
            with lock.guard:
                table.add(number + 1, [(b"%d" % (number % 50), b"v")], -1)
            written = number + 1
        done.set()
        for thread in threads:
            thread.join()
        assert missed == []


# Memory, as LevelDB counts it


@pytest.mark.parametrize(
    ("key_size", "value_size", "measured"),
    [(16, 100, 148.56), (8, 0, 42.76), (100, 1000, 1136.7), (200, 20, 256.3)],
)
def test_usage_is_that_of_leveldbs_arena(key_size: int, value_size: int, measured: float) -> None:
    """Bytes an entry that C++ LevelDB took (its ``approximate-memory-usage``)."""
    table = empty()
    for number in range(100):
        table.add(number + 1, [(b"%0*d" % (key_size, number), bytes(value_size))], -1)
    assert table.usage / 100 == pytest.approx(measured, rel=0.07)


def test_usage_in_numbers() -> None:
    table = empty()
    assert table.usage == 0
    table.add(1, [(b"k" * 16, b"v" * 100)], -1)
    assert table.usage == 16 + 100 + (1 + 8 + 1) + 22
    table.add(2, [(b"k" * 16, None)], -1)  # what is overwritten stays in an arena
    assert table.usage == 148 + 16 + (1 + 8 + 1) + 22
    before = table.usage
    table.add(3, [(b"k" * 120, b"v" * 128)], -1)  # both lengths take two bytes
    assert table.usage - before == 120 + 128 + (2 + 8 + 2) + 22
