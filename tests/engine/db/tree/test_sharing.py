"""Waiting for a write: of this handle, of another one, or of another process."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import lsmkv
from lsmkv import DB


def test_a_wait_ends_with_the_next_write() -> None:
    with DB(":memory:") as db:
        assert db.wait_for_change(0, timeout=0) == 0
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(db.wait_for_change(0)))
        thread.start()
        time.sleep(0.05)
        db.put(b"k", b"v")
        thread.join()
        assert found == [1]
        assert db.sequence == 1


def test_a_wait_for_what_has_happened_ends_at_once() -> None:
    with DB(":memory:") as db:
        db.put(b"k", b"v")
        db.put(b"k", b"w")
        assert db.wait_for_change(1) == 2


def test_an_ingest_is_a_change(tmp_path: Path) -> None:
    with lsmkv.TableWriter(tmp_path / "bulk.ldb") as table:
        table.add(b"k", b"v")
    with DB(tmp_path / "store", create_if_missing=True) as db:
        thread = threading.Timer(0.05, db.ingest, ([tmp_path / "bulk.ldb"],))
        thread.start()
        assert db.wait_for_change(0) == db.sequence > 0
        thread.join()


def test_closing_ends_a_wait() -> None:
    db = DB(":memory:")
    threading.Timer(0.05, db.close).start()
    with pytest.raises(lsmkv.ClosedError):
        db.wait_for_change(0)


def test_a_reader_in_another_process_waits_too(tmp_path: Path) -> None:
    with (
        DB(tmp_path / "store", create_if_missing=True) as db,
        DB(tmp_path / "store", read_only=True) as reader,
    ):
        threading.Timer(0.05, db.put, (b"k", b"v")).start()
        assert reader.wait_for_change(0) == 1
        assert reader.get(b"k") == b"v"


def test_many_wait_for_one_write() -> None:
    with DB(":memory:") as db:
        found: list[int] = []
        threads = [
            threading.Thread(target=lambda: found.append(db.wait_for_change(0))) for _ in range(10)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
        db.put(b"k", b"v")
        for thread in threads:
            thread.join()
        assert found == [1] * 10
