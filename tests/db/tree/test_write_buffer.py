"""lsmkv.db.tree.write_buffer: which writes it takes, and what is found of them before they are
sorted.  What a memtable does with one is in test_memtable.py."""

from __future__ import annotations

import pytest
from librt.strings import BytesWriter

from lsmkv.db.tree.write_buffer import WriteBuffer
from lsmkv.format.batch import Operation
from lsmkv.format.keys import KIND_DELETION, KIND_VALUE, entry_overhead, pack

WRITES: list[Operation] = [(b"a", b"1"), (b"b", b"22"), (b"a", None), (b"c", b"")]


def filled(first: int = 5) -> WriteBuffer:
    buffer = WriteBuffer()
    assert buffer.goes_on_with(first)
    buffer.add(WRITES)
    return buffer


def tagged(sequence: int, value: bytes | None) -> bytes:
    kind = KIND_DELETION if value is None else KIND_VALUE
    return pack(b"", sequence, kind) + (value or b"")


def test_writes_go_on_without_a_gap() -> None:
    buffer = filled()
    assert [buffer.goes_on_with(sequence) for sequence in (8, 9, 10)] == [False, True, False]
    buffer.add([(b"d", b"4")])
    assert buffer.goes_on_with(10)


def test_an_empty_buffer_begins_with_any_write() -> None:
    buffer = WriteBuffer()
    assert buffer.goes_on_with(7)
    assert buffer.goes_on_with(3)
    assert buffer.first == 3


def test_a_write_that_was_interrupted_is_not_gone_on_with() -> None:
    buffer = filled()
    buffer.keys.append(b"key without a value")
    assert not buffer.goes_on_with(9)
    assert buffer.find(b"key without a value", 100) is None
    assert len(buffer.tagged_values(BytesWriter())) == len(WRITES)


def test_the_sizes_of_writes_are_those_of_keys_and_values_and_of_leveldbs_nodes() -> None:
    buffer = WriteBuffer()
    assert buffer.goes_on_with(1)
    overhead = sum(entry_overhead(len(key), len(value or b"")) for key, value in WRITES)
    assert buffer.add(WRITES) == (7, overhead)
    assert buffer.add([]) == (0, 0)


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
