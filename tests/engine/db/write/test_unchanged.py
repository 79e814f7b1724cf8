"""Writes that depend on keys which were read just before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stores import GatedEnv
from threads import background_of

from lsmkv import DB, TableWriter
from lsmkv.errors import ClosedError, ConflictError


@pytest.fixture
def db() -> Iterator[DB]:
    with DB(":memory:") as opened:
        opened.put(b"k", b"v")
        yield opened


def write(db: DB, sequence: int, *keys: bytes) -> None:
    db._open_writer().write_unless_changed([(b"mine", b"1")], sequence, list(keys))


def test_what_others_wrote_elsewhere_does_not_matter(db: DB) -> None:
    sequence = db.sequence
    db.put(b"other", b"1")
    write(db, sequence, b"k", b"absent")
    assert db.get(b"mine") == b"1"


@pytest.mark.parametrize("value", [b"theirs", None])
def test_a_key_was_written(db: DB, value: bytes | None) -> None:
    sequence = db.sequence
    if value is None:
        db.delete(b"k")
    else:
        db.put(b"k", value)
    with pytest.raises(ConflictError, match=r"^b'k' was written since it was read$"):
        write(db, sequence, b"absent", b"k")
    assert db.get(b"mine") is None
    write(db, db.sequence, b"absent", b"k")


def test_a_key_was_written_in_a_memtable_that_is_full_now() -> None:
    env = GatedEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        sequence = db.sequence
        db.put(b"k", b"theirs")
        last = db.sequence
        env.open.clear()
        flushing, errors = background_of(db.flush)
        while db._store.view.immutable is None:  # type: ignore[union-attr]
            pass
        with pytest.raises(ConflictError):
            write(db, sequence, b"k")
        write(db, last, b"k")
        env.open.set()
        flushing.join()
        assert errors == []
        assert db.get(b"mine") == b"1"


def test_what_was_flushed_meanwhile_may_have_been_written(db: DB) -> None:
    """The memtables no longer tell; reading again helps."""
    sequence = db.sequence
    db.put(b"other", b"1")
    db.flush()
    with pytest.raises(ConflictError, match=r"^a table has appeared since the keys were read$"):
        write(db, sequence, b"k")
    write(db, db.sequence, b"k")
    assert db.get(b"mine") == b"1"


def test_a_compaction_may_drop_the_only_trace(db: DB) -> None:
    db.flush()
    sequence = db.sequence
    db.delete(b"k")
    db.compact_range()
    with pytest.raises(ConflictError):
        write(db, sequence, b"k")


def test_an_ingest_is_newer_than_its_version_says(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        sequence = db.sequence
        table = tmp_path / "made.ldb"
        with TableWriter(table) as writer:
            writer.add(b"k", b"theirs")
        db.ingest([table])
        with pytest.raises(ConflictError):
            write(db, sequence, b"k")
        write(db, db.sequence, b"k")


def test_a_reopened_store_goes_on(tmp_path: Path) -> None:
    with DB(tmp_path, create_if_missing=True) as db:
        db.put(b"k", b"v")
    with DB(tmp_path) as db:
        write(db, db.sequence, b"k")
        with pytest.raises(ConflictError):
            write(db, 0, b"k")


def test_a_closed_store(db: DB) -> None:
    writer = db._open_writer()
    db.close()
    with pytest.raises(ClosedError):
        writer.write_unless_changed([(b"mine", b"1")], 5, [b"k"])
