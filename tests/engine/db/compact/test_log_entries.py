"""lsmkv.engine.db.compact.log_entries: a log becomes what the memtable holds that was made from
it.
"""

from __future__ import annotations

import random

import pytest

from lsmkv.engine.db.compact.log_entries import LogEntries
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.batch import Operation, encode_batch
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import MAX_SEQUENCE
from lsmkv.engine.format.log import LogWriter
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE, Comparator


def log_of(directory: Directory, batches: list[tuple[int, list[Operation]]]) -> None:
    with directory.create("log") as file:
        writer = LogWriter(file)
        for sequence, operations in batches:
            writer.add_record(encode_batch(sequence, operations))


def read(
    batches: list[tuple[int, list[Operation]]], pinned: list[int]
) -> tuple[LogEntries, object]:
    directory = MemoryEnv().open_directory("db", create=True)
    log_of(directory, batches)
    entries = LogEntries(pinned)
    with directory.open("log") as file:
        return entries, entries.read(file)


def in_turn(operations: list[Operation], size: int) -> list[tuple[int, list[Operation]]]:
    """Batches of ``size`` operations, from sequence 1 on."""
    return [(at + 1, operations[at : at + size]) for at in range(0, len(operations), size)]


@pytest.mark.parametrize("comparator", [BYTEWISE, REVERSE_BYTEWISE], ids=lambda one: one.name)
@pytest.mark.parametrize("rising", [True, False])
def test_entries_and_usage_are_those_of_a_memtable(comparator: Comparator, rising: bool) -> None:
    rng = random.Random(3)
    keys = [b"%04d" % (n if rising else rng.randrange(100)) for n in range(300)]
    operations: list[Operation] = [
        (key, None if rng.random() < 0.2 else rng.randbytes(rng.randrange(40))) for key in keys
    ]
    memtable = MemTable(comparator, StoreLock())
    for sequence, part in in_turn(operations, 7):
        memtable.add(sequence, part, -1)
    entries, wrong = read(in_turn(operations, 7), [])
    assert wrong is None
    assert entries.usage == memtable.usage
    order = KeyOrder(comparator)
    expected_keys: list[bytes] = []
    expected_rows: list[bytes] = []
    for some_keys, some_rows in memtable.columns():
        expected_keys += some_keys
        expected_rows += some_rows
    assert entries.columns(order) == (expected_keys, expected_rows)


@pytest.mark.parametrize(
    ("pinned", "kept"), [([], [4]), ([1], [4, 1]), ([2, 3], [4, 3, 2]), ([4], [4]), ([9], [4])]
)
def test_a_version_that_no_reader_sees_is_left_out(pinned: list[int], kept: list[int]) -> None:
    entries, _ = read(in_turn([(b"k", b"%d" % n) for n in range(1, 5)], 1), pinned)
    keys, rows = entries.columns(KeyOrder(BYTEWISE))
    assert keys == [b"k"] * len(kept)
    assert [int(row[8:]) for row in rows] == kept


def test_an_empty_log_has_no_entries() -> None:
    entries, wrong = read([], [])
    assert wrong is None
    assert entries.empty
    assert entries.columns(KeyOrder(BYTEWISE)) == ([], [])


@pytest.mark.parametrize(
    ("batches", "said"),
    [
        ([(1, [(b"a", b"")]), (3, [(b"b", b"")])], "write 3 follows, not 2"),
        ([(MAX_SEQUENCE, [(b"a", b""), (b"b", b"")])], "a batch that begins with write"),
    ],
)
def test_sequences_that_a_memtable_could_not_have_are_reported(
    batches: list[tuple[int, list[Operation]]], said: str
) -> None:
    _, wrong = read(batches, [])
    assert str(wrong).startswith(said)
