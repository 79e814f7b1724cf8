"""lsmkv.engine.format.log: the framing of records, LevelDB's own cases, and reading past damage."""

from __future__ import annotations

import errno
import pathlib
import random
import tracemalloc
from itertools import accumulate
from typing import NamedTuple

import pytest
from byte_files import BytesFile
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.engine.env.local import LocalEnv, LocalWritableFile
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.log import (
    BLOCK_SIZE,
    FIRST,
    FULL,
    HEADER_SIZE,
    LAST,
    MIDDLE,
    LogDamage,
    LogReader,
    LogWriter,
    frame,
)
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.testing.faulty import FaultyEnv

RUNS_PAST = "a fragment runs past its block"
MISMATCH = "fragment checksum mismatch"
NO_END = "a record without its end"
NO_BEGINNING = "a fragment without its beginning"


class Record(NamedTuple):
    """The content of a LogRecord."""

    payload: bytes
    offset: int
    end: int
    damage: LogDamage | None


class Result:
    """Everything that a reader finds in these bytes."""

    def __init__(self, data: bytes, reserved: bool = False) -> None:
        reader = LogReader(BytesFile(data), reserved)
        self.records = [
            Record(record.payload, record.offset, record.end, record.damage) for record in reader
        ]
        self.payloads = [record.payload for record in self.records]
        self.damage = [record.damage for record in self.records]
        self.tail = reader.tail
        self.end = reader.end


def log_of(*payloads: bytes, at: int = 0) -> bytes:
    """The bytes of consecutive records from an offset on."""
    data = bytearray()
    for payload in payloads:
        data += frame(payload, (at + len(data)) % BLOCK_SIZE)
    return bytes(data)


def fragment(kind: int, data: bytes) -> bytes:
    typed = bytes([kind]) + data
    return masked_crc32c(typed).to_bytes(4, "little") + len(data).to_bytes(2, "little") + typed


def big(text: str, size: int) -> bytes:
    return (text.encode() * (size // len(text) + 1))[:size]


def assert_sound(*payloads: bytes) -> None:
    data = log_of(*payloads)
    result = Result(data)
    assert result.payloads == list(payloads)
    assert result.damage == [None] * len(payloads)
    assert result.tail is None
    assert result.end == len(data)


# Writing and reading back


def test_an_empty_log() -> None:
    result = Result(b"")
    assert result.payloads == []
    assert result.tail is None
    assert result.end == 0


def test_the_exact_bytes() -> None:
    """The beginning of a log that C++ LevelDB wrote."""
    put = bytes.fromhex("0100000000000000010000000103666f6f03626172")
    delete = bytes.fromhex("0200000000000000010000000003666f6f")
    written = bytes.fromhex(
        "afbfeb5e150001" + put.hex()  # checksum, length, type, data
        + "4a6bd1ed110001" + delete.hex()
    )  # fmt: skip
    assert log_of(put, delete) == written
    assert Result(written).records == [
        Record(put, 0, 28, None),
        Record(delete, 28, 52, None),
    ]


def test_small_records() -> None:
    assert_sound(b"foo", b"bar", b"", b"xxxx", b"", b"\0" * 50)


def test_many_blocks() -> None:
    assert_sound(*(b"%d." % number for number in range(100_000)))


def test_fragmentation() -> None:
    assert_sound(b"small", big("medium", 50_000), big("large", 100_000))
    data = log_of(b"small", big("large", 70_000))
    first, middle, last = data[:BLOCK_SIZE], data[BLOCK_SIZE:], data[2 * BLOCK_SIZE :]
    assert first[6] == FULL
    assert first[12 + 6] == FIRST
    assert middle[6] == MIDDLE
    assert middle[4:6] == (BLOCK_SIZE - HEADER_SIZE).to_bytes(2, "little")
    assert last[6] == LAST


@pytest.mark.parametrize("left", range(-1, 9))
def test_marginal_trailers(left: int) -> None:
    """A record that begins with this many bytes left in its block."""
    filler = big("foo", BLOCK_SIZE - HEADER_SIZE - left)
    assert_sound(filler, b"", b"bar")
    assert_sound(filler, b"bar", b"")
    assert_sound(filler, big("bar", 3 * BLOCK_SIZE), b"end")
    data = log_of(filler, b"bar")
    if left < 0:
        assert data[6] == FIRST
    elif left < HEADER_SIZE:  # no header fits: zeros
        assert data[BLOCK_SIZE - left : BLOCK_SIZE] == bytes(left)
        assert data[BLOCK_SIZE:] == fragment(FULL, b"bar")
    elif left < HEADER_SIZE + 3:  # a header fits, and at most a few bytes of the data
        room = left - HEADER_SIZE
        assert data[BLOCK_SIZE - left :] == fragment(FIRST, b"bar"[:room]) + fragment(
            LAST, b"bar"[room:]
        )


def test_an_empty_record_in_the_last_seven_bytes() -> None:
    filler = big("foo", BLOCK_SIZE - 2 * HEADER_SIZE)
    data = log_of(filler, b"")
    assert len(data) == BLOCK_SIZE
    assert data[-7:] == fragment(FULL, b"")
    assert_sound(filler, b"", b"bar")


@pytest.mark.parametrize("left", range(HEADER_SIZE))
def test_a_file_that_ends_near_the_end_of_a_block(left: int) -> None:
    assert_sound(big("foo", BLOCK_SIZE - HEADER_SIZE - left))


def test_random_records() -> None:
    rng = random.Random(301)
    payloads = [
        rng.randbytes(int(2 ** rng.uniform(0, 17)) if rng.random() < 0.5 else rng.randrange(50))
        for _ in range(500)
    ]
    assert_sound(*payloads)


@given(
    sizes=st.lists(
        st.integers(0, 30)
        | st.integers(-12, 3).map(lambda near: BLOCK_SIZE + near)
        | st.integers(-20, 3).map(lambda near: 2 * BLOCK_SIZE + near),
        max_size=6,
    )
)
def test_records_of_any_size(sizes: list[int]) -> None:
    assert_sound(*(big(f"{at}-", size) for at, size in enumerate(sizes)))


# Writing to a file


@pytest.mark.parametrize("near", [-BLOCK_SIZE, -BLOCK_SIZE + 93, *range(-16, 3), BLOCK_SIZE - 7])
def test_opening_for_append(near: int) -> None:
    """The writer continues at the right place of a block, wherever the file ends."""
    filler = [bytes(BLOCK_SIZE + near)]
    data = log_of(*filler)
    directory = MemoryEnv().open_directory("db", create=True)
    with directory.create("000001.log") as file:
        file.append(data)
    with directory.append_to("000001.log") as file:
        LogWriter(file, file.size()).add_record(b"hello")
    with directory.append_to("000001.log") as file:
        writer = LogWriter(file, file.size())
        writer.add_record(big("world", 40_000))
        for payload in (b"again", b"", big("end", 40_000)):
            writer.add_record(payload)
        assert writer.end == file.size()
    expected = [*filler, b"hello", big("world", 40_000), b"again", b"", big("end", 40_000)]
    with directory.open("000001.log") as log:
        assert [record.payload for record in LogReader(log)] == expected
        assert log.read(0, log.size) == log_of(*expected)


def test_the_buffer_of_a_long_record_is_not_kept(tmp_path: pathlib.Path) -> None:
    payload = bytes(8 << 20)
    with (
        LocalEnv().open_directory(str(tmp_path)) as directory,
        directory.create("log") as file,
    ):
        writer = LogWriter(file)
        tracemalloc.start()
        try:
            for _ in range(2):
                writer.add_record(payload)
                assert tracemalloc.get_traced_memory()[0] < 1 << 20
        finally:
            tracemalloc.stop()


def test_a_short_write_is_completed_and_errors_name_the_file(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = LocalWritableFile.raw_write.fget
    assert whole is not None
    monkeypatch.setattr(
        LocalWritableFile, "raw_write", property(lambda file: lambda data: whole(file)(data[:3]))
    )
    with LocalEnv().open_directory(str(tmp_path)) as directory:
        with directory.create("000001.log") as file:
            writer = LogWriter(file)
            writer.add_record(b"hello")
            writer.add_record(b"world")
            assert writer.end == file.size()
        with directory.open("000001.log") as log:
            assert [record.payload for record in LogReader(log)] == [b"hello", b"world"]

        def refuse(data: bytes) -> int:
            raise OSError(errno.ENOSPC, "no room")

        monkeypatch.setattr(LocalWritableFile, "raw_write", property(lambda file: refuse))
        with directory.append_to("000001.log") as file:
            end = file.size()
            writer = LogWriter(file, end)
            with pytest.raises(OSError, match="no room") as caught:
                writer.add_record(b"again")
            assert caught.value.filename == str(tmp_path / "000001.log")
            assert writer.end == file.size() == end


def test_a_record_is_written_by_one_call() -> None:
    env = FaultyEnv()
    directory = env.open_directory("db", create=True)
    with directory.create("log") as file:
        writer = LogWriter(file)
        writer.add_record(big("one", 100_000))
        writer.add_record(b"two")
    assert env.history.count("append") == 2
    with directory.open("log") as log:
        assert len(list(LogReader(log))) == 2


def test_an_error_while_reading_is_not_the_end() -> None:
    env = FaultyEnv()
    directory = env.open_directory("db", create=True)
    with directory.create("log") as file:
        file.append(log_of(b"one", big("two", 100_000), b"three"))
    for n in range(1, 5):
        with directory.open("log") as log:
            env.fail_at(n, calls=["read"])
            reader = LogReader(log)
            found: list[bytes] = []
            with pytest.raises(OSError, match="db/log"):
                found.extend(record.payload for record in reader)
            found.extend(record.payload for record in reader)  # it continues at the same record
            assert [len(payload) for payload in found] == [3, 100_000, 5]


def test_positions() -> None:
    payloads = [b"one", b"", big("two", 70_000), b"three"]
    data = log_of(*payloads)
    ends = list(accumulate(len(payload) for payload in payloads))
    records = Result(data).records
    assert [record.offset for record in records][:3] == [0, 10, 17]
    assert records[-1].end == len(data)
    assert records[2].end - records[2].offset == 70_000 + 3 * HEADER_SIZE
    assert records[3].offset == ends[2] + 5 * HEADER_SIZE


# Torn records


def sound_before(data: bytes, size: int) -> list[Record]:
    return [record for record in Result(data).records if record.end <= size]


def assert_cut(data: bytes, size: int) -> None:
    """A log cut at any byte holds the records before that, and its tail is torn."""
    expected = sound_before(data, size)
    result = Result(data[:size])
    assert result.records == expected
    assert result.end == (expected[-1].end if expected else 0)
    if result.end == size:
        assert result.tail is None
    else:
        assert result.tail is not None
        assert result.tail.torn
        assert result.end <= result.tail.offset < size


def test_torn_at_every_byte() -> None:
    data = log_of(b"one", b"", b"three" * 20, b"\0" * 30, b"five")
    for size in range(len(data) + 1):
        assert_cut(data, size)


def test_a_record_of_several_blocks_torn_anywhere() -> None:
    data = log_of(b"one", big("two", 3 * BLOCK_SIZE), b"three")
    interesting = {
        block * BLOCK_SIZE + near for block in range(1, 4) for near in range(-20, 21)
    } | {0, 5, 10, 17, 20, len(data) - 1, len(data)}
    for size in sorted(interesting):
        assert_cut(data, size)


@pytest.mark.parametrize("left", range(1, HEADER_SIZE))
def test_a_file_that_ends_in_the_padding_of_a_block(left: int) -> None:
    data = log_of(big("foo", BLOCK_SIZE - HEADER_SIZE - left), b"bar")
    for size in range(BLOCK_SIZE - left, BLOCK_SIZE):
        assert_cut(data, size)
    assert_cut(data, BLOCK_SIZE + 3)
    assert Result(data[:BLOCK_SIZE]).tail is None


def test_a_missing_last_fragment_is_a_torn_tail() -> None:
    data = log_of(b"one", big("bar", BLOCK_SIZE))
    result = Result(data[:BLOCK_SIZE])
    assert result.payloads == [b"one"]
    assert result.tail == LogDamage(10, NO_END, torn=True)
    assert result.end == 10


def test_a_length_that_runs_past_the_end_is_a_torn_tail() -> None:
    result = Result(log_of(b"one", b"foo")[:-1])
    assert result.payloads == [b"one"]
    assert result.tail == LogDamage(10, RUNS_PAST, torn=True)


@pytest.mark.parametrize(
    "zeros", [1, 6, 7, 8, 100, BLOCK_SIZE - 10, BLOCK_SIZE - 9, BLOCK_SIZE, 3 * BLOCK_SIZE + 5]
)
def test_a_tail_of_zeros(zeros: int) -> None:
    """A file ends so if its new length was durable before its content."""
    result = Result(log_of(b"one") + bytes(zeros))
    assert result.records == [Record(b"one", 0, 10, None)]
    assert result.tail is not None
    assert result.tail.torn
    assert result.tail.offset == 10
    assert Result(bytes(zeros)).payloads == []


@pytest.mark.parametrize(
    "zeros", [1, 6, 7, 8, 100, BLOCK_SIZE - 10, BLOCK_SIZE - 9, BLOCK_SIZE, 3 * BLOCK_SIZE + 5]
)
def test_zeros_at_the_end_may_be_reserved_room(zeros: int) -> None:
    result = Result(log_of(b"one") + bytes(zeros), reserved=True)
    assert result.records == [Record(b"one", 0, 10, None)]
    assert (result.tail, result.end) == (None, 10)
    result = Result(bytes(zeros), reserved=True)
    assert (result.records, result.tail, result.end) == ([], None, 0)


def test_a_record_behind_reserved_room_follows_damage() -> None:
    """LevelDB, when it reuses a log, goes on at the end of the file."""
    room = 2 * BLOCK_SIZE
    data = log_of(b"one") + bytes(room - 10) + log_of(b"two")
    result = Result(data, reserved=True)
    assert result.payloads == [b"one", b"two"]
    assert result.damage == [None, LogDamage(10, "zeros to the end of the block", torn=True)]
    assert result.tail is None


@pytest.mark.parametrize("reserved", [True, False])
def test_a_record_that_was_not_copied_whole_is_torn(reserved: bool) -> None:
    """A map takes the bytes of a copy in any order: any part of them may be there."""
    record = frame(b"some payload" * 3, 10)
    for at in range(len(record)):
        for broken in (record[:at] + bytes(len(record) - at), bytes(at + 1) + record[at + 1 :]):
            if broken in (record, bytes(len(record))):
                continue
            for zeros in (1, 100, 2 * BLOCK_SIZE):
                result = Result(log_of(b"one") + broken + bytes(zeros), reserved)
                assert result.payloads == [b"one"]
                assert result.end == 10
                assert result.tail is not None
                assert result.tail.torn
                assert result.tail.offset == 10


def test_a_long_record_that_was_not_copied_whole_is_torn() -> None:
    data = log_of(b"one", big("bar", 3 * BLOCK_SIZE))
    for end in (20, BLOCK_SIZE, BLOCK_SIZE + 3, BLOCK_SIZE + 7, 2 * BLOCK_SIZE + 50):
        result = Result(data[:end] + bytes(5 * BLOCK_SIZE - end), reserved=True)
        assert result.payloads == [b"one"]
        assert result.tail is not None
        assert (result.tail.offset, result.tail.torn) == (10, True)


STARTS = (0, 10, 1000, *(BLOCK_SIZE - left for left in (100, 40, 8, 7, 3)))
"""Where in its block the last record begins."""


def before(start: int) -> bytes:
    return log_of(b"a" * (start - HEADER_SIZE)) if start else b""


def room_behind(data: bytes, more: int) -> bytes:
    """The bytes of a mapped log: zeros up to the end of a block, and ``more`` blocks of them."""
    return data + bytes(-len(data) % BLOCK_SIZE + more * BLOCK_SIZE)


def assert_torn(data: bytes, start: int) -> None:
    result = Result(data, reserved=True)
    assert len(result.records) == (start > 0)
    assert result.end == start
    assert result.tail is None or (result.tail.torn and result.tail.offset >= start)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("size", [0, 1, 2, 9, 50, BLOCK_SIZE - HEADER_SIZE, 3 * BLOCK_SIZE])
def test_every_prefix_of_a_record_before_zeros_is_torn(start: int, size: int) -> None:
    """The header of each fragment cut at each byte, and its data at each length."""
    record = frame(random.Random(size).randbytes(size - 1) + b"." if size else b"", start)
    borders = [at - start for at in range(0, start + len(record), BLOCK_SIZE)]
    for cut in range(len(record)):
        near = min(abs(cut - border) for border in (0, *borders, len(record))) < 10
        if near or cut % 5003 == 0:
            for more in (0, 2):
                half = record[:cut] + bytes(len(record) - cut)
                assert_torn(room_behind(before(start) + half, more), start)


@pytest.mark.parametrize("start", STARTS)
def test_a_long_record_whose_first_bytes_were_copied_last_is_torn(start: int) -> None:
    """As the C library copies: what lies before the first aligned byte is stored last."""
    record = frame(random.Random(start).randbytes(3 * BLOCK_SIZE), start)
    for late in (1, 6, 7, 32, 64, 5000):
        for copied in (100, BLOCK_SIZE, BLOCK_SIZE + 3, 2 * BLOCK_SIZE + 50, len(record)):
            half = bytes(late) + record[late:copied]
            half += bytes(len(record) - len(half))
            if half != record:
                assert_torn(room_behind(before(start) + half, 1), start)


def test_pages_of_a_long_record_in_any_order_are_torn() -> None:
    record = frame(random.Random(1).randbytes(3 * BLOCK_SIZE), 10)
    rng = random.Random(2)
    for _ in range(30):
        half = bytearray(before(10) + record)
        for at in range(0, len(half), 4096):
            if rng.random() < 0.4:
                half[max(at, 10) : at + 4096] = bytes(min(at + 4096, len(half)) - max(at, 10))
        if bytes(half[10:]) != record:
            assert_torn(room_behind(bytes(half), 1), 10)


def test_a_bad_long_record_with_anything_behind_is_not_torn() -> None:
    """Its first bytes are missing, and another record, or other bytes, follow it."""
    long = frame(random.Random(3).randbytes(2 * BLOCK_SIZE), 10)
    bad = before(10) + bytes(HEADER_SIZE) + long[HEADER_SIZE:]
    behind = frame(b"another", len(bad) % BLOCK_SIZE)
    result = Result(room_behind(bad + behind, 1), reserved=True)
    assert result.payloads[1:] == [b"another"]
    assert result.damage[1] is not None
    for other in (behind[:-1] + b"?", b"noise", frame(bytes(BLOCK_SIZE), len(bad) % BLOCK_SIZE)):
        result = Result(room_behind(bad + other[:300], 1), reserved=True)
        assert result.tail is not None
        assert (result.tail.offset, result.tail.torn) == (10, False)
    far = bytearray(room_behind(bad, 2))
    far[-BLOCK_SIZE + 100] = 1
    assert Result(bytes(far), reserved=True).tail == LogDamage(10, "a fragment of unknown type 0")
    whole = log_of(b"one", b"two" * 9)  # a FULL record, which ends in its block
    far = bytearray(room_behind(whole, 1))
    far[20] ^= 1
    far[BLOCK_SIZE + 100] = 1
    assert Result(bytes(far), reserved=True).tail == LogDamage(10, MISMATCH)


def test_damage_before_other_bytes_is_not_torn() -> None:
    data = bytearray(log_of(b"one", b"two") + bytes(2 * BLOCK_SIZE))
    data[-1] ^= 1
    data[14] ^= 1
    data[BLOCK_SIZE + 9] = 1  # in a later block
    assert Result(bytes(data), reserved=True).tail == LogDamage(10, MISMATCH)
    data = bytearray(log_of(b"one", b"two"))
    data[-1] ^= 1  # and no zeros follow
    assert Result(bytes(data), reserved=True).tail == LogDamage(10, MISMATCH)


def test_a_reader_beside_the_writer_takes_the_block_as_it_is_now() -> None:
    """What looked bad may have been half a copy."""
    whole = log_of(b"one", b"two", big("three", BLOCK_SIZE), b"four")
    half = log_of(b"one") + bytes(6) + whole[16:]

    class Growing(BytesFile):
        def read(self, offset: int, length: int) -> bytes:
            self.reads.append((offset, length))
            return (half if len(self.reads) == 1 else whole)[offset : offset + length]

    reader = LogReader(Growing(whole), reserved=True)
    assert [record.payload for record in reader][1::2] == [b"two", b"four"]
    assert reader.tail is None


@pytest.mark.parametrize("missing", [(10, 0), (13, 0), (17, 0), (19, 0), (10, 64), (10, 40_000)])
@pytest.mark.parametrize("second", [b"two", big("two", 2 * BLOCK_SIZE)])
@pytest.mark.parametrize("late", range(1, 12))
def test_half_a_copy_is_never_damage(missing: tuple[int, int], second: bytes, late: int) -> None:
    """Whenever its writer goes on: between any two reads."""
    room = bytes(3 * BLOCK_SIZE)
    payloads = [b"one", second, big("three", BLOCK_SIZE), b"four"]
    whole = log_of(*payloads) + room
    first, late_bytes = missing
    copied = log_of(*payloads[:2]) if late_bytes else whole[:first]
    half = copied[:first] + bytes(late_bytes) + copied[first + late_bytes :]
    half += bytes(len(whole) - len(half))

    class Late(BytesFile):
        def read(self, offset: int, length: int) -> bytes:
            self.reads.append((offset, length))
            return (half if len(self.reads) <= late else whole)[offset : offset + length]

    reader = LogReader(Late(whole), reserved=True)
    records = list(reader)
    assert [record.payload for record in records] in (payloads, payloads[:1])
    assert all(record.damage is None for record in records)
    assert reader.tail is None or reader.tail.torn


# Damage


def test_a_bad_type() -> None:
    for kind in (0, 5, 6, 128, 255):
        data = bytearray(log_of(b"foo", b"bar"))
        data[6] = kind
        result = Result(bytes(data))
        assert result.payloads == [b"bar"]
        assert result.damage == [LogDamage(0, f"a fragment of unknown type {kind}")]
        data += fragment(kind, b"a good checksum")
        assert Result(bytes(data)).tail == LogDamage(20, f"a fragment of unknown type {kind}")


def test_a_bad_checksum() -> None:
    data = bytearray(log_of(b"foo", b"bar", b"end"))
    data[0] += 10
    result = Result(bytes(data))
    assert result.payloads == [b"bar", b"end"]
    assert result.damage == [LogDamage(0, MISMATCH), None]
    assert result.tail is None
    assert result.end == 30


def test_a_bad_checksum_at_the_end_is_no_torn_write() -> None:
    data = bytearray(log_of(b"foo", b"bar"))
    data[-1] ^= 1
    result = Result(bytes(data))
    assert result.payloads == [b"foo"]
    assert result.tail == LogDamage(10, MISMATCH, torn=False)
    assert result.end == 10


def test_a_bad_length_within_a_block() -> None:
    payload = big("bar", BLOCK_SIZE - HEADER_SIZE)
    data = bytearray(log_of(payload, b"foo"))
    data[4] += 1  # one byte more than the block has
    result = Result(bytes(data))
    assert result.payloads == [b"foo"]
    assert result.damage == [LogDamage(0, RUNS_PAST)]


def test_a_middle_without_a_first() -> None:
    result = Result(fragment(MIDDLE, b"foo"))
    assert result.payloads == []
    assert result.tail == LogDamage(0, NO_BEGINNING)


def test_a_last_without_a_first() -> None:
    result = Result(fragment(LAST, b"foo") + fragment(FULL, b"bar"))
    assert result.payloads == [b"bar"]
    assert result.damage == [LogDamage(0, NO_BEGINNING)]


def test_a_full_after_a_first() -> None:
    result = Result(log_of(b"one") + fragment(FIRST, b"foo") + fragment(FULL, b"bar"))
    assert result.payloads == [b"one", b"bar"]
    assert result.damage == [None, LogDamage(10, NO_END)]
    assert result.tail is None


def test_a_first_after_a_first() -> None:
    data = fragment(FIRST, b"foo") + fragment(FIRST, b"ba") + fragment(LAST, b"r")
    result = Result(data)
    assert result.records == [Record(b"bar", 10, len(data), LogDamage(0, NO_END))]


def test_fragments_of_different_records_are_not_joined() -> None:
    """FIRST of one and LAST of the next; the two fragments between them are lost."""
    data = bytearray(log_of(big("foo", BLOCK_SIZE), big("bar", BLOCK_SIZE), b"correct"))
    data[BLOCK_SIZE : 2 * BLOCK_SIZE] = b"x" * BLOCK_SIZE
    result = Result(bytes(data))
    assert result.payloads == [b"correct"]
    assert result.damage[0] is not None
    assert result.damage[0].offset == 0


def test_the_first_damage_is_reported() -> None:
    data = bytearray(log_of(b"one", b"two", b"three", b"four"))
    data[17] ^= 1
    data[27] ^= 1
    result = Result(bytes(data))
    assert result.payloads == [b"one", b"four"]
    assert result.damage == [None, LogDamage(10, MISMATCH)]


# Records behind damage


def test_a_record_right_behind_a_torn_one() -> None:
    """LevelDB appends behind a torn record, in the middle of a block, if it reuses its log."""
    sound = log_of(b"one", b"two")
    torn = log_of(b"never acknowledged", at=len(sound))
    for size in range(1, len(torn)):
        data = sound + torn[:size]
        data += log_of(b"three", b"four", at=len(data))
        result = Result(data)
        assert result.payloads == [b"one", b"two", b"three", b"four"]
        assert result.damage[:2] == [None, None]
        assert result.damage[2] is not None
        assert result.damage[2].offset == len(sound)
        assert result.damage[3] is None
        assert result.tail is None


def test_a_record_behind_a_torn_one_of_several_blocks() -> None:
    sound = log_of(b"one")
    torn = log_of(big("never acknowledged", 2 * BLOCK_SIZE), at=len(sound))
    for size in (3, 7, 1000, BLOCK_SIZE - 11, BLOCK_SIZE - 10, BLOCK_SIZE + 1, BLOCK_SIZE + 5000):
        data = sound + torn[:size]
        data += log_of(b"two", big("three", BLOCK_SIZE), at=len(data))
        result = Result(data)
        assert result.payloads == [b"one", b"two", big("three", BLOCK_SIZE)]
        assert result.damage[1] is not None
        assert result.damage[1].offset == 10


def test_the_next_block_is_read_after_any_damage() -> None:
    data = bytearray(log_of(b"one", big("two", BLOCK_SIZE + 100), b"three"))
    data[3:BLOCK_SIZE] = random.Random(1).randbytes(BLOCK_SIZE - 3)
    result = Result(bytes(data))
    assert result.payloads == [b"three"]
    assert result.damage[0] is not None


def test_a_block_of_zeros_in_the_middle() -> None:
    data = bytearray(log_of(*[b"%05d" % number for number in range(10_000)]))
    data[BLOCK_SIZE : 2 * BLOCK_SIZE] = bytes(BLOCK_SIZE)
    result = Result(bytes(data))
    assert result.payloads[0] == b"00000"
    assert result.payloads[-1] == b"09999"
    assert sum(damage is not None for damage in result.damage) == 1
    assert len(result.payloads) > 10_000 - 2 * BLOCK_SIZE // 12


def test_damage_in_the_padding_of_a_block_is_reported_and_loses_no_record() -> None:
    data = bytearray(log_of(big("foo", BLOCK_SIZE - HEADER_SIZE - 3), b"bar"))
    data[BLOCK_SIZE - 2] = 1
    result = Result(bytes(data))
    assert result.payloads == [big("foo", BLOCK_SIZE - HEADER_SIZE - 3), b"bar"]
    assert result.damage[1] is not None


PAYLOADS = st.lists(
    st.binary(max_size=20) | st.integers(0, 70_000).map(lambda size: big("payload", size)),
    min_size=1,
    max_size=8,
)


@given(payloads=PAYLOADS, data=st.data())
def test_a_flipped_byte_loses_only_the_record_that_it_is_in(
    payloads: list[bytes], data: st.DataObject
) -> None:
    log = bytearray(log_of(*payloads))
    sound = Result(bytes(log)).records
    at = data.draw(st.integers(0, len(log) - 1))
    log[at] ^= data.draw(st.integers(1, 255))
    result = Result(bytes(log))
    assert result.payloads == [
        record.payload for record in sound if not record.offset <= at < record.end
    ]
    found = [damage for damage in [*result.damage, result.tail] if damage is not None]
    assert len(found) == 1
    hit = [record for record in sound if record.offset <= at < record.end]
    assert found[0].offset == (hit[0].offset if hit else found[0].offset)


@given(payloads=PAYLOADS, data=st.data())
def test_cut_anywhere(payloads: list[bytes], data: st.DataObject) -> None:
    log = log_of(*payloads)
    assert_cut(log, data.draw(st.integers(0, len(log))))


@given(data=st.binary(max_size=300), repeat=st.sampled_from([1, 400]))
def test_any_bytes_are_read_to_their_end(data: bytes, repeat: int) -> None:
    result = Result(data * repeat)
    assert result.payloads == []  # no checksum matches by chance
    assert (result.tail is None) == (data == b"")
