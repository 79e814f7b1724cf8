"""lsmkv.engine.format.log_tail: what was appended to a log, and what is not there yet."""

from __future__ import annotations

import random

import pytest

from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.log import BLOCK_SIZE, HEADER_SIZE, LogReader, frame
from lsmkv.engine.format.log_tail import LogTail

SIZES = [0, 1, 100, 8, 40_000, 3, BLOCK_SIZE - 2 * HEADER_SIZE, 70_000, 5]


class Log:
    """A log in memory that grows, with or without zeros behind its end."""

    def __init__(self, mapped: bool) -> None:
        self.directory = MemoryEnv(mapped_logs=mapped).open_directory("db", create=True)
        self.file = self.directory.create_log("000001.log")
        self.end = 0
        self.opened = self.directory.open("000001.log")
        self.tail = LogTail(self.opened)

    def add(self, payload: bytes) -> None:
        self.put(frame(payload, self.end % BLOCK_SIZE))

    def put(self, data: bytes) -> None:
        self.file.append(data)
        self.end += len(data)

    def read(self) -> list[bytes]:
        return [record.payload for record in self.tail.read()]


def payloads(seed: int = 0) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(size) for size in SIZES]


mapped_or_not = pytest.mark.parametrize("mapped", [False, True])


@mapped_or_not
def test_reads_each_record_once(mapped: bool) -> None:
    log = Log(mapped)
    assert log.read() == []
    for payload in payloads():
        assert not log.tail.unread()
        log.add(payload)
        assert log.tail.unread()
        assert log.read() == [payload]
        assert log.tail.end == log.end
    assert not log.tail.unread()
    assert log.read() == []
    assert not log.tail.unclear


@mapped_or_not
def test_reads_all_that_was_appended_since(mapped: bool) -> None:
    log = Log(mapped)
    for turn in range(3):
        for payload in payloads(turn):
            log.add(payload)
        assert log.read() == payloads(turn)


@mapped_or_not
def test_reads_a_few_at_a_time(mapped: bool) -> None:
    log = Log(mapped)
    for payload in payloads():
        log.add(payload)
    read: list[bytes] = []
    while some := [record.payload for record in log.tail.read(most=1)]:
        assert len(some) <= 2  # one of them is empty
        read += some
    assert read == payloads()
    assert log.tail.end == log.end


@mapped_or_not
def test_goes_on_where_a_reader_of_everything_ended(mapped: bool) -> None:
    log = Log(mapped)
    for payload in payloads():
        log.add(payload)
    log.opened = log.directory.open("000001.log")
    reader = LogReader(log.opened, reserved=True)
    offsets = [record.offset for record in reader]
    assert reader.last == offsets[-1]
    log.tail = LogTail(log.opened, reader.end, reader.last)
    assert not log.tail.unread()
    log.add(b"next")
    assert log.read() == [b"next"]


@mapped_or_not
@pytest.mark.parametrize("size", [0, 20, 40_000])
def test_a_record_of_which_a_part_is_there_is_not_there_yet(mapped: bool, size: int) -> None:
    payload = random.Random(1).randbytes(size)
    whole = frame(payload, len(frame(b"first", 0)))
    cuts = range(len(whole)) if size < 100 else [1, 6, 7, 8, 30_000, 32_740, 32_760, len(whole) - 1]
    for cut in cuts:
        log = Log(mapped)
        log.add(b"first")
        assert log.read() == [b"first"]
        log.put(whole[:cut])
        assert log.read() == []
        assert not log.tail.unclear, cut
        log.put(whole[cut:])
        assert log.read() == [payload]
        assert not log.tail.unread()


@mapped_or_not
def test_bytes_behind_a_broken_record_are_unclear(mapped: bool) -> None:
    log = Log(mapped)
    log.add(b"first")
    broken = bytearray(frame(b"second", log.end))
    broken[-1] ^= 1
    log.put(bytes(broken))
    assert log.read() == [b"first"]
    log.add(b"third")
    assert log.read() == []
    assert log.tail.unclear
    assert log.tail.unread()


def test_a_log_that_was_cut_back_is_unclear() -> None:
    """Its writer cuts off what a failed write has left, which may be a whole record."""
    log = Log(mapped=True)
    log.add(b"first")
    log.add(b"a failed one")
    assert log.read() == [b"first", b"a failed one"]
    log.file.truncate(len(frame(b"first", 0)))
    assert log.tail.unread()
    log.end = log.file.size()
    log.add(b"2nd")
    assert log.tail.unread()
    assert log.read() == []
    assert log.tail.unclear


def test_a_log_is_read_to_its_end_after_its_removal() -> None:
    directory = MemoryEnv().open_directory("db", create=True)
    file = directory.create_log("000001.log")
    tail = LogTail(directory.open("000001.log"))
    file.append(frame(b"last", 0))
    directory.remove("000001.log")
    assert [record.payload for record in tail.read()] == [b"last"]
    tail.close()
    with pytest.raises(OSError, match=r"[Bb]ad file descriptor"):
        tail.unread()
