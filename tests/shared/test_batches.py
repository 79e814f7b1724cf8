"""Iterators over committed batches, in several processes: across kills, handing over, and logs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from others import Other, new

import lsmkv

Start = Callable[..., Other]


def logs(path: Path) -> list[str]:
    return sorted(name for name in os.listdir(path) if name.endswith(".log"))


def keys(batches: lsmkv.Batches) -> list[bytes]:
    return [key for batch in batches for key, _ in batch.operations]


def test_a_member_follows_what_all_write(path: Path, other: Start) -> None:
    owner, third = other(create_if_missing=True), other()
    with new(path) as db:
        batches = db.batches(0)
        owner("db.put(b'a', b'1')")
        third("db.put(b'b', b'2')")
        db.put(b"c", b"3")
        assert keys(batches) == [b"a", b"b", b"c"]
        assert owner("[key for batch in db.batches(1) for key, _ in batch.operations]") == [
            b"b",
            b"c",
        ]
        third.ask("next(db.batches(3, timeout=None))")
        db.delete(b"a")
        assert third.answer().endswith("operations=[(b'a', None)])")


def test_the_owner_keeps_the_logs_that_a_member_reads(path: Path, other: Start) -> None:
    with new(path) as db:
        first = other()
        first("batches = db.batches(0)")
        for n in range(4):
            db.put(b"%d" % n, b"v")
            db.flush()
        assert len(logs(path)) > 4
        read = "[key for batch in batches for key, _ in batch.operations]"
        assert first(read) == [b"0", b"1", b"2", b"3"]
        first("batches.close()")
        db.put(b"more", b"v")
        db.flush()
        assert len(logs(path)) <= 2


def test_a_killed_member_keeps_nothing(path: Path, other: Start) -> None:
    with new(path) as db:
        first = other()
        first("batches = db.batches(0)")
        db.put(b"a", b"v")
        db.flush()
        first.kill()
        db.put(b"b", b"v")
        db.flush()
        assert len(logs(path)) <= 2


@pytest.mark.parametrize("end", ["kill", "close"])
def test_it_goes_on_under_the_next_owner(path: Path, other: Start, end: str) -> None:
    owner, second = other(create_if_missing=True), other()
    with new(path, may_own=False) as db:
        batches = db.batches(0)
        owner("db.put(b'a', b'1')")
        owner("db.put(b'b', b'1'); db.flush(); db.put(b'c', b'1')")
        if end == "kill":
            owner.kill()
        else:
            owner("db.close()")
        second("db.put(b'd', b'1'); db.flush(); db.put(b'e', b'1')")
        assert keys(batches) == [b"a", b"b", b"c", b"d", b"e"]
        third = other()
        second.kill()
        third("db.put(b'f', b'1')")
        assert keys(batches) == [b"f"]


def test_it_goes_on_when_its_own_process_becomes_the_owner(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path) as db:
        batches = db.batches(0)
        owner("db.put(b'a', b'1'); db.flush(); db.put(b'b', b'1')")
        assert next(batches).operations == [(b"a", b"1")]
        owner.kill()
        db.put(b"c", b"1")
        assert db.role == "owner"
        db.flush()
        db.put(b"d", b"1")
        assert keys(batches) == [b"b", b"c", b"d"]
        for n in range(3):
            db.put(b"%d" % n, b"1")
            db.flush()
        assert keys(batches) == [b"0", b"1", b"2"]
        db.put(b"e", b"1")
        assert keys(batches) == [b"e"]
        db.flush()
        assert len(logs(path)) <= 2


def test_what_a_child_inherits(path: Path, other: Start) -> None:
    other(create_if_missing=True)
    with new(path) as db:
        batches = db.batches(0)
        child = os.fork()
        if child == 0:
            try:
                next(batches)
            except lsmkv.ForkedError:
                db.put(b"child", b"1")
                os._exit(7 if keys(db.batches(0)) == [b"child"] else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert keys(batches) == [b"child"]


def test_a_store_that_a_child_outlives_keeps_no_log(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path) as db:
        batches = db.batches(0)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(read, 1)
            os._exit(0)
        owner("db.put(b'a', b'1'); db.flush()")
        batches.close()
        owner("db.put(b'b', b'1'); db.flush()")
        assert len(logs(path)) <= 2
        os.write(write, b"x")
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)


def test_a_closed_member(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    db = new(path)
    owner("db.put(b'a', b'1'); db.put(b'b', b'1')")
    batches = db.batches(0)
    next(batches)
    db.close()
    with pytest.raises(lsmkv.ClosedError):
        next(batches)
    owner("db.flush(); db.put(b'c', b'1'); db.flush()")
    assert len(logs(path)) <= 2
