"""lsmkv.engine.db.tree.write_buffer: which writes it takes, and what is found of them before
they are sorted.  What a memtable does with one is in test_memtable.py.
"""

from __future__ import annotations

import pytest
from librt.strings import BytesWriter

from lsmkv.engine.db.tree.write_buffer import WriteBuffer
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.keys import KIND_DELETION, KIND_VALUE, entry_overhead, pack

WRITES: list[Operation] = [(b"a", b"1"), (b"b", b"22"), (b"a", None), (b"c", b"")]


def filled(first: int = 5) -> WriteBuffer:
    buffer = WriteBuffer()
    assert buffer.add(first, WRITES) == 7
    return buffer


def tagged(sequence: int, value: bytes | None) -> bytes:
    kind = KIND_DELETION if value is None else KIND_VALUE
    return pack(b"", sequence, kind) + (value or b"")


def test_writes_go_on_without_a_gap() -> None:
    buffer = filled()
    for sequence in (8, 10):
        assert buffer.add(sequence, [(b"x", b"y")]) == -1
    assert buffer.add(9, [(b"d", b"4")]) == 2
    assert buffer.add(10, []) == 0
    assert buffer.keys == [b"a", b"b", b"a", b"c", b"d"]


def test_an_empty_buffer_begins_with_any_write() -> None:
    buffer = WriteBuffer()
    assert buffer.add(7, []) == 0
    assert buffer.add(3, WRITES) == 7
    assert buffer.first == 3


def test_a_write_that_was_interrupted_is_not_gone_on_with() -> None:
    buffer = filled()
    buffer.keys.append(b"key without a value")
    for sequence in (9, 10):
        assert buffer.add(sequence, [(b"x", b"y")]) == -1
    assert buffer.find(b"key without a value", 100) is None
    assert len(buffer.tagged_values(BytesWriter())) == len(WRITES)


def test_the_overhead_of_writes_is_that_of_leveldbs_nodes() -> None:
    buffer = filled(1)
    assert buffer.overhead == sum(
        entry_overhead(len(key), len(value or b"")) for key, value in WRITES
    )
    buffer.add(1 + len(WRITES), [])
    assert buffer.overhead == 0


@pytest.mark.parametrize(
    ("key", "sequence", "found"),
    [
        (b"a", 4, None),
        (b"a", 5, tagged(5, b"1")),
        (b"a", 6, tagged(5, b"1")),
        (b"a", 7, tagged(7, None)),
        (b"a", 100, tagged(7, None)),
        (b"b", 100, tagged(6, b"22")),
        (b"c", 7, None),
        (b"c", 8, tagged(8, b"")),
        (b"d", 100, None),
    ],
)
def test_the_newest_write_up_to_a_sequence_is_found(
    key: bytes, sequence: int, found: bytes | None
) -> None:
    assert filled().find(key, sequence) == found


def test_tagged_values_come_in_the_order_of_the_writes() -> None:
    assert filled().tagged_values(BytesWriter()) == [
        tagged(at, value) for at, (_, value) in enumerate(WRITES, 5)
    ]
