"""Logs: records, fragments, damage, and where a walk may begin."""

from __future__ import annotations

import pytest
from made_files import Made, log_of

from lsmkv.errors import CorruptionError
from lsmkv.files import Damage, Log, LogEnd, LogRecord


def test_records_of_a_log_are_the_batches_that_were_written(made: Made) -> None:
    operations = [
        (one.sequence, one.key, one.value)
        for record in Log(made.log()).records()
        for one in record.batch.operations()
    ]
    expected = [*made.entries.items(), (b"gone", None)]
    assert [(key, value) for _, key, value in operations] == expected
    assert [sequence for sequence, _, _ in operations] == list(
        range(operations[0][0], operations[0][0] + len(operations))
    )


def test_fragments_are_what_records_are_cut_into() -> None:
    data = log_of(b"small", bytes(100_000), b"end") + bytes(50)
    log = Log(data)
    fragments = list(log.fragments())
    assert [one.kind for one in fragments] == [
        *("full", "first", "middle", "middle", "last", "full", "room"),
    ]
    assert b"".join(one.stored for one in fragments) == data
    assert [one.length for one in fragments[:-1]] == [len(one.data) for one in fragments[:-1]]
    assert {one.is_good for one in fragments[:-1]} == {True}
    assert [len(record.payload) for record in log.records()] == [5, 100_000, 3]


def test_the_end_of_a_block_is_filler() -> None:
    kinds = [one.kind for one in Log(log_of(bytes(32768 - 7 - 3), b"x")).fragments()]
    assert kinds == ["full", "filler", "full"]


def test_damage_within_a_log_is_data_and_what_follows_is_read() -> None:
    data = bytearray(log_of(b"one", b"two", b"three"))
    data[10 + 8] ^= 1
    log = Log(bytes(data))
    one, damage, three = log.walk()
    assert damage == Damage("damage", 10, 10, "fragment checksum mismatch")
    assert isinstance(one, LogRecord)
    assert isinstance(three, LogRecord)
    assert (one.payload, three.payload) == (b"one", b"three")
    assert [(part.kind, part.damage is None) for part in log.fragments()] == [
        ("full", True),
        ("bad", False),
        ("full", True),
    ]
    with pytest.raises(CorruptionError, match="fragment checksum mismatch") as raised:
        list(log.records())
    assert raised.value.offset == 10


@pytest.mark.parametrize("cut", range(11, 20))
def test_a_cut_record_at_the_end_may_be_torn(cut: int) -> None:
    log = Log(log_of(b"one", b"two")[:cut])
    assert [record.payload for record in log.records()] == [b"one"]
    ending = log.ending()
    assert (ending.last, ending.end) == (0, 10)
    assert ending.damage is not None
    assert ending.damage[:3] == ("torn", 10, cut - 10)


def test_a_sound_log_ends_with_its_last_record() -> None:
    assert Log(log_of(b"one", b"two") + bytes(100)).ending() == LogEnd(10, 20, None)
    assert Log(b"").ending() == LogEnd(-1, 0, None)


@pytest.mark.parametrize("big", [3, 40_000])
def test_a_walk_may_begin_at_any_record(big: int) -> None:
    log = Log(log_of(*(b"%d" % number * big for number in range(6))))
    records = list(log.records())
    for number, record in enumerate(records):
        assert list(log.walk(record.offset)) == records[number:]
    assert list(log.walk(-1)) == records
    assert list(log.walk(log.size)) == list(log.walk(1 << 70)) == []


def test_a_walk_from_within_a_block_has_the_damage_that_follows() -> None:
    data = bytearray(log_of(bytes(40_000), b"two", b"three"))
    log = Log(bytes(data))
    end = next(log.records()).end
    data[end + 8] ^= 1
    damaged = Log(bytes(data))
    _, damage, three = damaged.walk()
    assert damage == Damage("damage", end, 10, "fragment checksum mismatch")
    assert list(damaged.walk(end)) == [damage, three]
    data[end + 18] ^= 1
    assert [part.offset for part in Log(bytes(data)).walk(end)] == [end]
    assert list(Log(bytes(data[:end]) + bytes(100)).walk(end)) == []
