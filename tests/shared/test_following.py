"""A member's view: what it shows when, and the versions that it leases."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from others import Other, new

from lsmkv.engine.format.batch import encode_batch
from lsmkv.engine.format.log import LogWriter
from lsmkv.shared.system.shared_page import SEQUENCE

Start = Callable[..., Other]


def test_a_record_that_has_not_happened_is_not_shown(path: Path, other: Start) -> None:
    """It is in the log, whole, and the page does not say so: its sync may fail yet."""
    with new(path, mapped_log=False) as db:
        db.put(b"k", b"v")
        first = other(mapped_log=False)
        assert first("db.get(b'k')") == b"v"
        (log,) = [name for name in os.listdir(path) if name.endswith(".log")]
        with db._opened.directory.append_to(log) as raw:
            LogWriter(raw, os.path.getsize(path / log)).add_record(
                encode_batch(2, [(b"k", b"too early")])
            )
        assert first("db.get(b'k')") == b"v"
        assert first("dict(db)") == {b"k": b"v"}
        assert other(mapped_log=False)("db.get(b'k')") == b"v"
        db._part.publishing.page.words[SEQUENCE] = 2  # type: ignore[union-attr]
        assert first("db.get(b'k')") == b"too early"
        db._part.publishing.page.words[SEQUENCE] = 1  # type: ignore[union-attr]


def test_flushes_and_compactions_while_a_member_reads(path: Path, other: Start) -> None:
    with new(path, write_buffer_size=65536) as db:
        first = other(write_buffer_size=65536)
        first.ask(
            "for n in range(400):"
            " assert [value for _, value in db.iterator(prefix=b'x')] == [db.get(b'x0')] * 3 or"
            " len({value for _, value in db.iterator(prefix=b'x')}) <= 1"
        )
        for n in range(300):
            with db.write_batch() as batch:
                for key in (b"x0", b"x1", b"x2"):
                    batch.put(key, b"%d" % n * 300)
            if n % 40 == 0:
                db.compact_range()
        assert first.answer() is None
        assert first("db.get(b'x2')") == b"299" * 300


@pytest.mark.parametrize("end", ["del snapshot{}", "snapshot{}.close()"])
def test_leases_end_when_nobody_reads_a_version(path: Path, other: Start, end: str) -> None:
    with new(path) as db:
        file = db._part.publishing.file  # type: ignore[union-attr]
        first = other()
        for n in range(5):
            db.put(b"k", b"%d" % n)
            db.flush()
            first(f"snapshot{n} = db.snapshot(); db.tables()")
        assert file.is_leased_at_all()

        def newest() -> int:
            return int(db._part.publishing._version)  # type: ignore[union-attr]

        for n in range(5):
            first(end.format(n))
        first("import gc; gc.collect()")
        before = newest()
        for n in range(3):  # compiled, the version before may end one step later
            db.put(b"k", b"last %d" % n)
            db.flush()
            while not file.is_leased(newest(), newest()):
                first("db.tables()")  # a compaction may have made another version
        assert not file.is_leased(0, before)
        first("db.close()")
        assert not file.is_leased_at_all()


def test_an_idle_member_takes_no_processor_time(path: Path, other: Start) -> None:
    with new(path) as db:
        first = other()
        db.put(b"k", b"v")
        assert first("db.get(b'k')") == b"v"
        first("import os")
        before = first("sum(os.times()[:2])")
        time.sleep(0.5)
        assert first("sum(os.times()[:2])") - before <= 0.02


def test_a_member_follows_an_owner_that_has_written_much(path: Path, other: Start) -> None:
    with new(path, write_buffer_size=65536) as db:
        first = other(write_buffer_size=65536)
        for n in range(2000):
            db.put(b"%05d" % n, b"v" * 200)
        assert first("len(list(db))") == 2000
        assert first("db.get(b'01999')") == b"v" * 200


def test_a_member_follows_many_writes_of_one_log(path: Path, other: Start) -> None:
    with new(path) as db:
        first = other()
        for n in range(2500):
            db.put(b"%05d" % (n % 7), b"%d" % n)
        assert first("dict(db)") == {b"%05d" % (n % 7): b"%d" % n for n in range(2493, 2500)}
