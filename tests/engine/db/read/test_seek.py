"""lsmkv.engine.db.read.seek: where iterators begin to read, forwards and backwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from observing import kinds

from lsmkv import DB


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace"


@pytest.fixture(params=["memtable", "table", "both"])
def db(trace: Path, request: Any) -> Iterator[DB]:
    with DB(":memory:", trace=trace) as db:
        for n in range(10):
            db.put(b"k%d" % n, b"v" * n)
            if request.param == "both" and n == 5:
                db.flush()
        if request.param == "table":
            db.flush()
        yield db


def seeks(db: DB, trace: Path) -> list[tuple[bytes, int | None]]:
    db.close()
    return [(key, size) for kind, key, size in kinds(trace) if kind == "seek"]


def test_iterators(db: DB, trace: Path) -> None:
    assert len(list(db)) == 10
    assert len(list(db.iterator(reverse=True))) == 10
    assert len(list(db.iterator(start=b"k3", stop=b"k6"))) == 3
    assert list(db.iterator(prefix=b"none")) == []
    iterator = db.iterator()
    iterator.seek(b"k7x")
    assert next(iterator)[0] == b"k8"
    iterator.seek_to_stop()
    assert iterator.prev()[0] == b"k9"
    db.iterator()  # reads nothing
    assert seeks(db, trace) == [
        (b"", 0),
        (b"", 9),
        (b"k3", 3),
        (b"none", None),
        (b"k7x", 8),
        (b"", 9),
    ]


def test_raw_iterators(db: DB, trace: Path) -> None:
    raw = db.raw_iterator()
    raw.seek(b"k4")
    assert raw.key() == b"k4"
    raw.seek_to_first()
    raw.next()
    raw.seek_to_last()
    raw.prev()
    raw.seek(b"l")
    assert not raw.valid()
    assert seeks(db, trace) == [(b"k4", 4), (b"", 0), (b"", 9), (b"l", None)]


def test_snapshots_and_prefixed_stores(db: DB, trace: Path) -> None:
    with db.snapshot() as snapshot:
        db.delete(b"k1")
        assert [key for key, _ in snapshot.iterator(start=b"k1", stop=b"k2")] == [b"k1"]
    assert len(list(db.prefixed_db(b"k").iterator(include_value=False))) == 9
    assert seeks(db, trace) == [(b"k1", 1), (b"k", 0)]


def test_steps_are_not_seeks(trace: Path) -> None:
    with DB(":memory:", trace=trace, block_size=256) as db:
        for n in range(3000):
            db.put(b"k%05d" % n, b"v" * 20)
        db.flush()
        assert len(list(db)) == 3000
    assert [kind for kind, _, _ in kinds(trace)].count("seek") == 1
