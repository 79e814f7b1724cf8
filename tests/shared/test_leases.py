"""Who keeps what of a shared store, as its owner and its members report it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from others import Other, new
from processes import IS_DARWIN
from waiting import wait_until

import lsmkv
import lsmkv.owner
from lsmkv.shared.leases import decoded

Start = Callable[..., Other]


def of(report: lsmkv.LeaseReport, pid: int | None) -> lsmkv.Lease:
    (found,) = (one for one in report.leases if one.pid == pid)
    return found


def fill(db: lsmkv.SharedDB, value: bytes) -> None:
    for n in range(100):
        db.put(b"%03d" % n, value * 200)
    db.flush()
    db.compact_range()


named = pytest.mark.skipif(IS_DARWIN, reason="the system does not say who has a lock")


@named
def test_who_leases_which_versions_and_what_that_keeps(path: Path, other: Start) -> None:
    with new(path, compression=None) as db:
        assert db.leases() == lsmkv.LeaseReport(0, ())
        fill(db, b"a")
        reading, idle = other(), other()
        reading("iterator = db.iterator(); next(iterator)")
        tables = {table.name: table.size for table in db.tables()}
        report = db.leases()
        assert report.bytes == 0
        assert [one.pid for one in report.leases] == sorted((reading.pid, idle.pid))
        assert of(report, reading.pid).versions == of(report, idle.pid).versions
        for value in (b"b", b"c"):
            fill(db, value)
            reading("db.get(b'001')")
        idle("db.tables()")
        report = db.leases()
        assert of(report, reading.pid).bytes >= sum(tables.values()) > 20_000
        assert of(report, idle.pid).bytes == 0
        assert report.bytes == of(report, reading.pid).bytes
        assert idle("db.leases()") == repr(report)
        reading.kill()
        assert db.leases().bytes == 0
        assert [one.pid for one in db.leases().leases] == [idle.pid]


@named
def test_a_log_that_an_iterator_needs(path: Path, other: Start) -> None:
    with new(path) as db:
        first = other()
        first("batches = db.batches(0)")
        for n in range(4):
            db.put(b"%d" % n, b"v" * 1000)
            db.flush()
        logs = [name for name in os.listdir(path) if name.endswith(".log")]
        report = db.leases()
        assert of(report, first.pid).log is not None
        kept = sum((path / name).stat().st_size for name in sorted(logs)[:4])
        assert report.bytes == kept > 4000


@pytest.mark.skipif(not IS_DARWIN, reason="the system says who has a lock")
def test_where_the_system_does_not_tell_others_are_together(path: Path, other: Start) -> None:
    with new(path, compression=None) as db:
        fill(db, b"a")
        for reading in (other(), other()):
            reading("iterator = db.iterator(); next(iterator)")
        with new(path) as member:
            assert member.leases().leases[0].pid == os.getpid()
        fill(db, b"b")
        (lease,) = db.leases().leases
        assert lease.pid is None
        assert lease.bytes == db.leases().bytes > 20_000


@named
def test_a_process_that_is_no_member_any_more(path: Path, other: Start) -> None:
    """It has not needed an owner since the last one was killed, and reads what it leases."""
    owner = other(create_if_missing=True, compression=None)
    owner("[db.put(b'%03d' % n, b'a' * 200) for n in range(100)]; db.flush()")
    reading = other()
    reading("iterator = db.iterator(); next(iterator)")
    owner.kill()
    with new(path, compression=None) as db:
        db.put(b"k", b"v")
        assert db.role == "owner"
        fill(db, b"b")
        fill(db, b"c")
        report = db.leases()
        assert of(report, None).bytes == report.bytes > 20_000
        reading("db.get(b'k')")
        assert of(db.leases(), reading.pid).bytes > 20_000


def test_who_holds_leases_with_names_and_who_waits(path: Path, other: Start) -> None:
    with new(path) as db:
        one, another = other(), other()
        one("lease = db._hold(b'n', label='Lock 1')")
        another.ask("last = db._hold(b'n', label='Lock 1')")
        wait_until(lambda: any(name.waiters for name in db.leases().names))
        expected = (lsmkv.LeasedName("Lock 1", (one.pid,), (another.pid,)),)
        assert db.leases().names == expected
        assert one("db.leases().names") == repr(expected)
        one("lease.release()")
        assert another.answer() is None
        assert db.leases().names == (lsmkv.LeasedName("Lock 1", (another.pid,), ()),)
        assert decoded([0, []]).names == (), "what an older owner sends"


def test_a_live_owner_publishes_who_waits(path: Path, other: Start) -> None:
    with new(path, publish_stats=True) as db:
        mine = db._hold(b"n", label="Lock 1")
        assert mine is not None
        waiter = other()
        waiter.ask("lease = db._hold(b'n')")
        expected = (lsmkv.LeasedName("Lock 1", (os.getpid(),), (waiter.pid,)),)
        wait_until(lambda: published_names(path) == expected)
        mine.release()
        assert waiter.answer() is None


def published_names(path: Path) -> tuple[lsmkv.LeasedName, ...]:
    published = lsmkv.owner.read_owner(path).published
    return () if published is None else published.leased_names
