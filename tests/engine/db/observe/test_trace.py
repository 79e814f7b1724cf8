"""lsmkv.engine.db.observe.trace: the bytes of a trace, and what its reader makes of damaged
ones.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsmkv
from lsmkv import CorruptionError, MemoryEnv, TraceRecord, read_trace
from lsmkv.engine.db.observe.trace import (
    DELETE,
    GET,
    OPERATIONS,
    PUT,
    SEEK,
    WRITE,
    Observed,
    decode_chunk,
    encode_chunk,
    encode_header,
    is_header,
)
from lsmkv.engine.format.log import frame

HEADER = encode_header(1_000_000, 3)
SEEN: list[Observed] = [
    (GET, b"k", 1_002_000, 300, -1, 1),
    (PUT, b"\xff<b>", 5_000_000, 1, 300, 1),
    (WRITE, b"", 5_000_999, 0, 7, 129),
]
CHUNK = encode_chunk(SEEN, 1_000_000)


def trace_of(tmp_path: Path, *payloads: bytes) -> Path:
    path = tmp_path / "trace"
    path.write_bytes(b"".join(frame(payload, 0) for payload in payloads))
    return path


def test_the_bytes_of_a_chunk() -> None:
    assert HEADER == b"lsmkv trace\x01" + b"\xc0\x84\x3d" + b"\x03"
    assert is_header(HEADER)
    assert not is_header(CHUNK)
    assert CHUNK.hex(" ") == (
        "02"  # 2 us after the trace began
        " 01 00 ac 02 00 01 6b"  # a get, at once, 300 ns, no value, "k"
        " 02 9e 1f 01 ad 02 04 ff 3c 62 3e"  # 3,998 us later a put of 300 bytes
        " 04 00 00 08 00 81 01"  # a batch of 129 operations, 7 bytes
    )


def test_the_operations_of_a_trace(tmp_path: Path) -> None:
    reader = read_trace(trace_of(tmp_path, HEADER, CHUNK, CHUNK))
    assert (reader.started, reader.sample) == (1.0, 3)
    first = [
        TraceRecord("get", b"k", 2, 300, None, 1),
        TraceRecord("put", b"\xff<b>", 4000, 1, 300, 1),
        TraceRecord("write", b"", 4000, 0, 7, 129),
    ]
    assert list(reader) == first * 2
    assert list(reader) == []
    assert [one.found for one in first] == [False, True, True]


operations = st.tuples(
    st.sampled_from((GET, PUT, DELETE, WRITE, SEEK)),
    st.binary(max_size=300),
    st.integers(0, 2**60),
    st.integers(0, 2**60),
    st.integers(-1, 2**40),
    st.integers(1, 2**40),
)


@given(st.lists(operations, min_size=1), st.integers(0, 2**60))
def test_a_chunk_comes_back_in_order(seen: list[Observed], epoch: int) -> None:
    expected = [
        TraceRecord(
            OPERATIONS[operation - 1],
            key,
            max(0, (started - epoch) // 1000),
            duration,
            None if size < 0 else size,
            count if operation == WRITE else 1,
        )
        for operation, key, started, duration, size, count in sorted(seen, key=lambda one: one[2])
    ]
    assert decode_chunk(encode_chunk(seen, epoch)) == expected


def test_a_chunk_that_is_cut_anywhere_is_damage() -> None:
    whole = decode_chunk(CHUNK)
    for end in range(len(CHUNK)):
        try:
            part = decode_chunk(CHUNK[:end])
        except CorruptionError:
            continue
        assert part == whole[: len(part)]  # it was cut between two operations


def test_a_chunk_of_random_bytes_is_damage_at_most() -> None:
    choose = random.Random(1)
    for _ in range(3000):
        junk = choose.randbytes(choose.randrange(60))
        try:
            decode_chunk(junk)
        except CorruptionError:
            pass


def test_a_torn_tail_ends_the_trace(tmp_path: Path) -> None:
    path = trace_of(tmp_path, HEADER, CHUNK, CHUNK)
    whole = path.read_bytes()
    header = len(frame(HEADER, 0))
    ends = {header: 0, header + len(frame(CHUNK, 0)): 3, len(whole): 6}
    for end in range(header, len(whole) + 1):
        path.write_bytes(whole[:end])
        assert len(list(read_trace(path))) == max(n for at, n in ends.items() if at <= end)


def test_any_flipped_byte_is_noticed(tmp_path: Path) -> None:
    path = trace_of(tmp_path, HEADER, CHUNK, CHUNK)
    whole = path.read_bytes()
    sound = list(read_trace(path))
    noticed = 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        try:
            found = list(read_trace(path))
        except CorruptionError as error:
            noticed += error.path == str(path) and error.offset is not None
        else:  # what looks like the end of a killed process's file
            assert found == sound[: len(found)]
            assert len(found) < len(sound)
            noticed += 1
    assert noticed == len(whole)


def test_an_unknown_operation_is_damage(tmp_path: Path) -> None:
    path = trace_of(tmp_path, HEADER, CHUNK, b"\x00\x06\x00\x00\x00\x00")
    reader = read_trace(path)
    assert [next(reader).operation for _ in range(3)] == ["get", "put", "write"]
    with pytest.raises(CorruptionError, match="no such operation: 6") as caught:
        next(reader)
    assert caught.value.offset == len(frame(HEADER, 0)) + len(frame(CHUNK, 0))


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b"text", frame(b"lsmkv trace\x02", 0), frame(HEADER[:13], 0)]
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(CorruptionError) as caught:
        read_trace(path)
    assert caught.value.path == str(path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(lsmkv.NotFoundError):
        read_trace(tmp_path / "none")
    with pytest.raises(lsmkv.IOError, match="a directory"):
        read_trace(tmp_path)
    with pytest.raises(lsmkv.NotFoundError):
        read_trace("none", env=MemoryEnv())
