"""Logs are kept as long as an iterator over batches needs them, and no longer."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

import lsmkv
from lsmkv import DB
from lsmkv.engine.db.tree.log_holds import LogHold, LogHolds


def logs(path: Path) -> list[str]:
    return sorted(name for name in os.listdir(path) if name.endswith(".log"))


def test_logs_that_nobody_needs_any_more_go(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with DB(path, create_if_missing=True) as db:
        kept, closed = db.batches(0), db.batches(0)
        for n in range(3):
            db.put(b"%d" % n, b"v")
            db.flush()
        assert len(logs(path)) > 3
        closed.close()
        del kept
        gc.collect()
        db.put(b"more", b"v")
        db.flush()
        assert len(logs(path)) <= 2
        with pytest.raises(lsmkv.ClosedError):
            next(closed)


def test_iterators_that_are_gone_leave_nothing_behind() -> None:
    with DB(":memory:") as db:
        for _ in range(10):
            db.batches()
        gc.collect()
        db.batches(0)
        assert len(db._opened.store.log_holds._holds) <= 1


def test_the_oldest_log_decides() -> None:
    holds, others = LogHolds(), LogHolds()
    assert holds.oldest() is None
    first, second = LogHold(), LogHold()
    holds.add(first)
    holds.add(second)
    first.move(7, None)
    second.move(5, None)
    assert holds.oldest() == 5
    others.add(second)  # its store has another owner now
    assert (holds.oldest(), others.oldest()) == (7, 5)
    first.end()
    del second
    gc.collect()
    assert (holds.oldest(), others.oldest()) == (None, None)
