"""lsmkv.engine.db.write.memtable_room: what happens as a memtable fills."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lsmkv import DB
from lsmkv.engine.env.local import LocalWritableFile


def test_the_disk_begins_to_write_a_log_before_its_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[str, int]] = []
    monkeypatch.setattr(
        LocalWritableFile,
        "begin_sync",
        lambda file: begun.append((os.path.basename(file.path), file.size())),
    )
    size = 256 * 1024
    with DB(tmp_path / "db", create_if_missing=True, write_buffer_size=size) as db:
        logs = []
        for number in range(2000):
            wal = db._writer._logs.current  # type: ignore[union-attr]
            if wal not in logs:
                logs.append(wal)
            db.put(b"%09d" % number, bytes(1000))
        first = [os.path.basename(log._file.path) for log in logs[:-1]]
    # The memtable's usage counts some bytes for each entry that the log does not have.
    at = [place for name, place in begun if name in first]
    assert [name for name, _ in begun if name in first] == first
    assert len(first) >= 6
    assert all(0.8 * size < place < 0.9 * size for place in at)


def test_a_large_batch_does_not_begin_a_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(LocalWritableFile, "begin_sync", lambda file: begun.append(file.path))
    with DB(tmp_path / "db", create_if_missing=True, write_buffer_size=65536) as db:
        for number in range(5):
            db.put(b"%d" % number, bytes(100_000))
        assert begun == []
        db.flush()
        db.put(b"half", bytes(40_000))
        for number in range(19):
            db.put(b"%d" % number, bytes(1000))
        assert len(begun) == 1
