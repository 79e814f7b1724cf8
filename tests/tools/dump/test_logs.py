"""Logs and MANIFESTs as records: torn and damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from dumped import (
    LOG,
    LOG_TEXT,
    SMALL,
    batch_record,
    covers,
    dump,
    encode_delete,
    encode_put,
    faults,
    lines,
    make_log,
    records,
)

from lsmkv.engine.format.log import BLOCK_SIZE
from lsmkv.files import LogRecord, Operation
from lsmkv.tools.dump.records import Fault


def test_a_log_is_read_on_after_a_bad_record(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    path.write_bytes(LOG[:20] + b"\xff" + LOG[21:])
    status, printed, err = dump(path)
    assert printed == [
        "!!! offset 0; damage: fragment checksum mismatch",
        *lines(LOG_TEXT)[2:],
    ]
    assert (status, err) == (2, f"lsmkv: {path}: 1 damaged place\n")


def test_a_torn_log(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    path.write_bytes(LOG[:-5])
    for zeros in (1, 4, 40, BLOCK_SIZE, 3 * BLOCK_SIZE):  # room for more records
        covers("1.log", LOG + bytes(zeros))
        assert faults("1.log", LOG + bytes(zeros)) == []
        torn = LOG[:-5] + bytes(5 + zeros)
        covers("1.log", torn)
        assert faults("1.log", torn) == [Fault("torn", 30, "fragment checksum mismatch")]
    status, printed, err = dump(path)
    assert printed == [
        *lines(LOG_TEXT)[:2],
        "!!! offset 30; torn: a fragment runs past its block",
    ]
    assert (status, err) == (2, f"lsmkv: {path}: 1 torn write\n")
    long = make_log([batch_record(1, 1, encode_put(b"k", b"v" * 90_000))])
    for half in (
        bytes(7) + long[7:],  # a copy whose first bytes are stored last
        bytes(64) + long[64:50_000],
        long[:BLOCK_SIZE] + bytes(6) + long[BLOCK_SIZE + 6 :],
        long[: BLOCK_SIZE + 6],
    ):
        half += bytes(-len(half) % BLOCK_SIZE)
        covers("1.log", half)
        assert [one.kind for one in faults("1.log", half)] == ["torn"]
    path.write_bytes(make_log([batch_record(1, 1, encode_put(b"k", bytes(90_000)))])[:BLOCK_SIZE])
    assert dump(path)[1] == ["!!! offset 0; torn: a record without its end"]
    assert dump(path, "--annotate")[1][0] == "!!! offset 0; torn: a record without its end"


@pytest.mark.parametrize(
    ("payload", "shown", "reason"),
    [
        (b"short", 0, "a record of 5 bytes, too short for a batch"),
        (
            batch_record(1, 2, encode_put(b"a", b"b")),
            1,
            "the batch header states 2 operations, not 1",
        ),
        (
            batch_record(1, 2, encode_put(b"a", b"b") + b"\x07"),
            1,
            "a batch operation of unknown kind 7, at byte 17 of the record",
        ),
        (
            batch_record(1, 2, encode_delete(b"a") + b"\x01\x7fk"),
            1,
            "string runs past the end, at byte 16 of the record",
        ),
    ],
)
def test_a_sound_record_with_a_bad_batch(payload: bytes, shown: int, reason: str) -> None:
    data = make_log([payload, LOG[7:30]])
    found = records("1.log", data)
    assert found[:-2] != []
    assert [one for one in found if isinstance(one, Fault)] == [Fault("damage", 0, reason)]
    assert sum(isinstance(one, Operation) for one in found) == shown + 1
    assert isinstance(found[-2], LogRecord)
    batches = [one for one in found if isinstance(one, LogRecord)]
    assert len(batches) == (1 if payload == b"short" else 2)  # one without a header has no heading
    covers("1.log", data)


def test_a_sound_record_with_a_bad_edit() -> None:
    data = make_log([b"\x07\x80\x04", SMALL.encode(), b"\x06\x80\x04\x01"])
    first, good, last = records("MANIFEST-1", data)
    assert first == Fault("damage", 0, "invalid level 512, at byte 1 of the record")
    assert last == Fault("damage", 10 + 39, "invalid level 512, at byte 1 of the record")
    assert type(good).__name__ == "Edit"
    covers("MANIFEST-1", data)
    covers("MANIFEST-1", make_log([b"\x06\x80\x04\x01"]))
