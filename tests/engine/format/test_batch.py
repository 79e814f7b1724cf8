"""lsmkv.engine.format.batch: LevelDB's write batch, byte for byte."""

from __future__ import annotations

import itertools
import struct

import pytest
from batches import batch_record, encode_delete, encode_put
from hypothesis import given
from hypothesis import strategies as st
from numbered import batch_of

from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.format.batch import (
    HEADER_SIZE,
    Operation,
    WriteBatch,
    decode_batch,
    encode_batch,
)
from lsmkv.engine.format.keys import KIND_VALUE, MAX_SEQUENCE, TAG_SIZE, sequence_in
from lsmkv.engine.util.comparator import BYTEWISE
from lsmkv.errors import CorruptionError

operations_lists = st.lists(
    st.tuples(st.binary(max_size=200), st.none() | st.binary(max_size=200)), max_size=8
)


def contents(record: bytes) -> str:
    """The content of a memtable after the batch, in the notation of LevelDB's tests."""
    sequence, operations = decode_batch(record)
    memtable = MemTable(BYTEWISE, StoreLock())
    # Every sequence is pinned, so that every version is kept.
    for at, operation in enumerate(operations):
        memtable.add(sequence + at, [operation], sequence + at - 1)
    text = ""
    for chunk in memtable.entries():
        for key, tagged in chunk:
            kept = tagged[0] == KIND_VALUE
            what = f"{key.decode()}, {tagged[TAG_SIZE:].decode()}" if kept else key.decode()
            text += f"{'Put' if kept else 'Delete'}({what})@{sequence_in(tagged)}"
    return text


# Bytes


def test_an_empty_batch() -> None:
    batch = WriteBatch()
    assert len(batch) == 0
    assert batch.encode(0) == bytes(12)
    assert contents(batch.encode(7)) == ""
    assert decode_batch(batch.encode(7)) == (7, [])


def test_the_exact_bytes() -> None:
    """Records of a log that C++ LevelDB wrote, without their framing."""
    put = bytes.fromhex("0100000000000000010000000103666f6f03626172")
    delete = bytes.fromhex("0200000000000000010000000003666f6f")
    three = bytes.fromhex("0300000000000000030000000101610131000162018201") + b"c" * 130
    assert batch_of([(b"foo", b"bar")]).encode(1) == put
    assert batch_of([(b"foo", None)]).encode(2) == delete
    batch = batch_of([(b"a", b"1"), (b"b", None), (b"c" * 130, b"")])
    assert batch.encode(3) == three + b"\0"
    assert batch.encoded_operations() == (three + b"\0")[HEADER_SIZE:]
    assert batch_record(3, 3, batch.encoded_operations()) == three + b"\0"
    assert encode_put(b"a", b"1") + encode_delete(b"b") == bytes.fromhex("0101610131000162")


def test_several_operations() -> None:
    batch = batch_of([(b"foo", b"bar"), (b"box", None), (b"baz", b"boo")])
    record = batch.encode(100)
    assert decode_batch(record)[0] == 100
    assert len(batch) == 3
    assert contents(record) == "Put(baz, boo)@102Delete(box)@101Put(foo, bar)@100"


@pytest.mark.parametrize("sequence", [0, 1, 2**32, 2**55, 2**56 - 1, 2**63, 2**64 - 1])
def test_sequences_of_all_sizes(sequence: int) -> None:
    record = batch_of([(b"k", b"v")]).encode(sequence)
    assert record[:8] == sequence.to_bytes(8, "little")
    assert decode_batch(record) == (sequence, [(b"k", b"v")])


@given(operations=operations_lists)
def test_round_trip(operations: list[Operation]) -> None:
    batch = batch_of(operations)
    record = batch.encode(9)
    assert decode_batch(record) == (9, operations)
    assert batch.operations == operations
    assert batch.approximate_size() == len(record)


# Damage


@given(operations=operations_lists)
def test_cut_at_every_byte(operations: list[Operation]) -> None:
    record = batch_of(operations).encode(200)
    for size in range(len(record)):
        with pytest.raises(CorruptionError):
            decode_batch(record[:size])


@given(operations=operations_lists)
def test_cut_at_every_byte_of_more_data(operations: list[Operation]) -> None:
    record = batch_of(operations).encode(200)
    data = b"\x01\x02" + record + record
    end = 2 + len(record)
    assert decode_batch(data, 2, end) == (200, operations)
    for cut in range(2, end):
        with pytest.raises(CorruptionError):
            decode_batch(data, 2, cut)


def test_an_unknown_kind_of_operation() -> None:
    for kind in range(2, 256):
        record = batch_record(1, 2, encode_put(b"a", b"b") + bytes([kind]) + b"\x01k\x01v")
        with pytest.raises(CorruptionError) as caught:
            decode_batch(record)
        assert caught.value.offset == HEADER_SIZE + len(encode_put(b"a", b"b"))


@pytest.mark.parametrize("count", [0, 1, 3, 2**32 - 1])
def test_a_wrong_count(count: int) -> None:
    with pytest.raises(CorruptionError, match=r"operations, not 2"):
        decode_batch(batch_record(1, count, encode_delete(b"a") + encode_delete(b"b")))


@given(record=st.binary(max_size=60))
def test_any_bytes_decode_or_are_corrupt(record: bytes) -> None:
    try:
        sequence, operations = decode_batch(record)
    except CorruptionError:
        return
    batch = batch_of(operations)
    assert decode_batch(batch.encode(sequence)) == (sequence, operations)


def test_a_length_is_checked_before_it_is_used() -> None:
    with pytest.raises(CorruptionError):
        decode_batch(batch_record(1, 1, b"\x01" + b"\xff\xff\xff\xff\x0f" + b"k"))
    with pytest.raises(CorruptionError):
        decode_batch(batch_record(1, 1, b"\x01\x01k" + b"\xff" * 11))


# Use


def test_append() -> None:
    first, second = WriteBatch(), WriteBatch()
    first.append(second)
    assert contents(first.encode(200)) == ""
    second.put(b"a", b"va")
    first.append(second)
    assert contents(first.encode(200)) == "Put(a, va)@200"
    second.clear()
    second.put(b"b", b"vb")
    first.append(second)
    assert contents(first.encode(200)) == "Put(a, va)@200Put(b, vb)@201"
    second.delete(b"foo")
    first.append(second)
    assert (
        contents(first.encode(200)) == "Put(a, va)@200Put(b, vb)@202Put(b, vb)@201Delete(foo)@203"
    )
    assert len(first) == 4


def test_append_to_itself() -> None:
    batch = batch_of([(b"a", b"1"), (b"b", None)])
    batch.append(batch)
    assert decode_batch(batch.encode(1)) == (1, [(b"a", b"1"), (b"b", None)] * 2)
    with pytest.raises(TypeError, match="dict"):
        batch.append({})  # type: ignore[arg-type]


def test_approximate_size_grows() -> None:
    batch = WriteBatch()
    sizes = [batch.approximate_size()]
    batch.put(b"foo", b"bar")
    sizes.append(batch.approximate_size())
    batch.put(b"baz", b"boo")
    sizes.append(batch.approximate_size())
    batch.delete(b"box")
    sizes.append(batch.approximate_size())
    assert sizes == [12, 21, 30, 35]
    batch.clear()
    assert batch.approximate_size() == 12
    assert batch.operations == []


@pytest.mark.parametrize("value", ["text", None, 1, [1], 1.5])
def test_wrong_types(value: object) -> None:
    batch = WriteBatch()
    with pytest.raises(TypeError, match="a key must be bytes"):
        batch.put(value, b"v")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a value must be bytes"):
        batch.put(b"k", value)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a key must be bytes"):
        batch.delete(value)  # type: ignore[arg-type]
    assert len(batch) == 0
    assert batch.encode(1) == batch_record(1, 0, b"")


def test_bytes_like_objects_are_copied() -> None:
    key, value = bytearray(b"key"), bytearray(b"value")
    batch = WriteBatch()
    batch.put(key, memoryview(value)[1:])
    batch.delete(memoryview(b"abcd")[::2])
    key[:] = b"KEY"
    value[:] = b"VALUE"
    assert batch.operations == [(b"key", b"alue"), (b"ac", None)]


class Target:
    """Takes batches as a store does."""

    def __init__(self) -> None:
        self.written: list[tuple[list[Operation], bool]] = []

    def write(self, batch: WriteBatch, /, *, sync: bool = False) -> None:
        self.written.append((list(batch.operations), sync))


def test_leaving_the_block_writes_once() -> None:
    target = Target()
    with WriteBatch(target, sync=True) as batch:
        batch.put(b"k", b"v")
        assert target.written == []
    assert target.written == [([(b"k", b"v")], True)]
    assert len(batch) == 0


@pytest.mark.parametrize("transaction", [True, False])
def test_an_exception_in_the_block(transaction: bool) -> None:
    target = Target()
    batch = WriteBatch(target, transaction=transaction)

    def fail() -> None:
        with batch:
            batch.put(b"k", b"v")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert target.written == ([] if transaction else [([(b"k", b"v")], False)])
    assert len(batch) == 0


def test_write_keeps_the_content() -> None:
    target = Target()
    batch = WriteBatch(target)
    batch.put(b"k", b"v")
    batch.write()
    batch.write()
    assert target.written == [([(b"k", b"v")], False)] * 2
    with pytest.raises(ValueError, match="no store"):
        WriteBatch().write()


def read_plainly(record: bytes) -> tuple[int, list[Operation]] | None:
    """The content of a record, read byte by byte; None if it is malformed."""
    content = iter(record)

    def take(count: int) -> bytes:
        taken = bytes(itertools.islice(content, count))
        if len(taken) < count:
            raise EOFError
        return taken

    def string() -> bytes:
        size = 0
        for shift in range(0, 35, 7):
            byte = take(1)[0]
            size |= (byte & 127) << shift
            if byte < 128:
                if size >= 2**32:
                    raise EOFError
                return take(size)
        raise EOFError

    try:
        sequence, count = struct.unpack("<QI", take(12))
        operations: list[Operation] = []
        for kind in content:
            if kind > 1:
                return None
            key = string()
            operations.append((key, string() if kind == 1 else None))
        return (sequence, operations) if len(operations) == count else None
    except EOFError:
        return None


@given(
    st.integers(1, MAX_SEQUENCE),
    st.lists(
        st.tuples(
            st.binary(max_size=8) | st.binary(min_size=120, max_size=140),
            st.none() | st.binary(max_size=4) | st.binary(min_size=120, max_size=140),
        ),
        max_size=8,
    ),
    st.data(),
)
def test_damaged_records_are_decoded_correctly_or_refused(
    sequence: int, operations: list[Operation], data: st.DataObject
) -> None:
    record = encode_batch(sequence, operations)
    assert read_plainly(record) == decode_batch(record) == (sequence, operations)
    cut = data.draw(st.integers(0, len(record)))
    at = data.draw(st.integers(8, len(record) - 1))
    flipped = bytearray(record)
    flipped[at] ^= data.draw(st.sampled_from([1, 2, 0x80, 0xFF]))
    for damaged in (record[:cut], bytes(flipped)):
        expected = read_plainly(damaged)
        if expected is None:
            with pytest.raises(CorruptionError):
                decode_batch(damaged)
        else:
            assert decode_batch(damaged) == expected


def test_an_unknown_kind_is_reported_after_its_key() -> None:
    for record, reason in (
        (b"\x02\x01k\x01v", "operation of unknown kind 2"),
        (b"\x02\x09k", "past the end"),
        (b"\x02", "truncated"),
    ):
        with pytest.raises(CorruptionError, match=reason):
            decode_batch(batch_record(1, 1, record))
