"""A store on a platform without threads, sub-processes and locks."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

import lsmkv
from lsmkv import DB
from lsmkv.engine.util import checksum

pytestmark = pytest.mark.skipif(sys.platform != "emscripten", reason="make test-wasm runs these")


def test_a_store_is_written_compacted_and_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "store"
    entries = {b"%08d" % number: b"v%d" % number for number in range(5000)}
    with DB(path, create_if_missing=True, write_buffer_size=65536) as db:
        for key, value in entries.items():
            db.put(key, value)
        assert int(db.get_property(b"leveldb.num-files-at-level0") or 99) < 12
        db.compact_range()
        assert dict(db) == entries
        assert db.verify() == []
    with DB(path) as db:
        assert dict(db) == entries
        assert db.get(b"absent") is None
        assert db.get(b"00000077") == b"v77"


def test_random_operations_match_a_dict(tmp_path: Path) -> None:
    rng = random.Random(7)
    model: dict[bytes, bytes] = {}
    path = tmp_path / "store"
    for _ in range(4):
        with DB(path, create_if_missing=True, write_buffer_size=65536) as db:
            for _ in range(2000):
                key = b"%03d" % rng.randrange(400)
                if rng.random() < 0.3:
                    db.delete(key)
                    model.pop(key, None)
                else:
                    model[key] = rng.randbytes(rng.randrange(200))
                    db.put(key, model[key])
            assert list(db) == sorted(model.items())
            assert list(db.iterator(reverse=True)) == sorted(model.items(), reverse=True)


def test_work_in_the_background_is_done_in_the_calls(tmp_path: Path) -> None:
    for wrong in ("thread", "process"):
        with pytest.raises(ValueError, match="this platform has no threads"):
            DB(tmp_path / "store", create_if_missing=True, background=wrong)


def test_a_store_is_shared_by_no_processes(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError):
        lsmkv.SharedDB(tmp_path / "store", create_if_missing=True)


def test_checksums_have_fast_code() -> None:
    assert checksum.CRC32C_IMPLEMENTATION == "crc32c"


def test_checksums_are_those_of_the_table() -> None:
    content = random.Random(3).randbytes(100)
    for start in range(9):
        for stop in range(start, 100):
            running = 0xFFFFFFFF
            for byte in content[start:stop]:
                running = checksum.TABLE[(running ^ byte) & 0xFF] ^ running >> 8
            assert checksum.crc32c(content[start:stop]) == running ^ 0xFFFFFFFF
            assert checksum._extend(running ^ 0xFFFFFFFF, b"more") == checksum.crc32c(
                content[start:stop] + b"more"
            )
