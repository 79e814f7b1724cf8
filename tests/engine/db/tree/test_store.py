"""lsmkv.engine.db.tree.store: the state of an open store, in its own process and in a forked
child.
"""

from __future__ import annotations

import os

import pytest
from processes import python_without_warnings

from lsmkv import DB
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store import StateChange, View
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.keys import InternalKeyComparator, pack
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.util.comparator import BYTEWISE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_is_refused(path: str) -> None:
    program = """
        import os, sys, warnings, lsmkv
        path = sys.argv[1]
        db = lsmkv.DB(path, create_if_missing=True, write_buffer_size=1024)
        db.put(b"before", b"1")
        iterator = iter(db)
        snapshot = db.snapshot()
        batch = db.write_batch()
        batch.put(b"child", b"1")
        ready, found = os.pipe()
        child = os.fork()
        if child == 0:
            outcome = 0
            for n, call in enumerate((
                lambda: db.get(b"before"),
                lambda: db.put(b"child", b"1"),
                lambda: db.delete(b"before"),
                lambda: db.write(batch),
                db.sync, db.flush, db.compact_range, db.snapshot, db.iterator,
                lambda: snapshot.get(b"before"),
            )):
                try:
                    call()
                    os._exit(10 + n)
                except lsmkv.ForkedError as error:
                    if "fork" not in str(error):
                        os._exit(50 + n)
            try:
                next(iterator)
                os._exit(90)
            except lsmkv.ClosedError:
                pass
            try:
                lsmkv.DB(path)  # the parent's lock still holds
                os._exit(91)
            except lsmkv.LockedError as error:
                if error.pid != os.getppid():
                    os._exit(92)
            db.close()
            del db, snapshot, iterator, batch
            os.read(ready, 1)  # lives on while the parent closes and opens again
            os._exit(0)
        for n in range(200):
            db.put(b"parent%03d" % n, b"v" * 20)
        assert next(iterator) == (b"before", b"1")
        assert snapshot.get(b"parent000") is None
        db.close()
        with lsmkv.DB(path) as db:
            assert len(list(db)) == 201, list(db)
            db.check()
        os.write(found, b"x")
        _, status = os.waitpid(child, 0)
        print("child", os.waitstatus_to_exitcode(status))
    """
    result = python_without_warnings(program, path)
    assert result.stderr == ""
    assert result.stdout == "child 0\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_waits_for_no_lock_that_its_parent_held(path: str) -> None:
    program = """
        import os, signal, sys, lsmkv
        db = lsmkv.DB(sys.argv[1], create_if_missing=True)
        batch = db.write_batch()
        batch.put(b"child", b"1")
        with db._writer._lock.guard:  # as another thread would, that the child does not have
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                for n, call in enumerate((
                    lambda: db.put(b"child", b"1"),
                    lambda: db.delete(b"before"),
                    lambda: db.write(batch),
                    db.sync, db.flush, db.compact_range,
                )):
                    try:
                        call()
                        os._exit(10 + n)
                    except lsmkv.ForkedError:
                        pass
                db.close()
                os._exit(0)
        _, status = os.waitpid(child, 0)
        print("child", os.waitstatus_to_exitcode(status))
        db.close()
    """
    result = python_without_warnings(program, path)
    assert result.stderr == ""
    assert result.stdout == "child 0\n"


# Tickets for the next change


def test_a_change_releases_every_ticket_that_was_taken_before() -> None:
    changed = StateChange()
    tickets = [changed.ticket(), changed.ticket()]
    assert changed.awaited
    assert not tickets[0].acquire_soon()
    changed.notify_all()
    assert not changed.awaited
    for ticket in tickets:
        ticket.acquire()
    later = changed.ticket()
    assert changed.awaited
    assert not later.acquire_soon()


# Views and pins


def test_a_pin_keeps_its_sequence_live_until_it_is_released() -> None:
    with DB(":memory:") as db:
        store = db._store
        assert store is not None
        db.put(b"a", b"1")
        first = store.read_view()
        assert (first.sequence, store.pinned.all()) == (1, [1])
        db.put(b"a", b"2")
        older = store.read_view(1)
        newer = store.read_view()
        assert store.pinned.all() == [1, 2]
        first.release()
        assert store.pinned.all() == [1, 2]
        older.release()
        assert store.pinned.all() == [2]
        newer.release()
        assert store.pinned.all() == []


def test_a_nested_view_holds_all_of_the_batch_that_is_being_applied() -> None:
    with DB(":memory:") as db:
        db.put(b"k", b"old")
        store = db._open_store()
        operations: list[Operation] = [(b"k", b"new"), (b"new", b"v")]
        with store.lock.nested, store.lock.guard:
            memtable = store.open_view().memtable
            memtable.add(2, operations, -1)
            read = store.read_view()
            assert read.sequence == 3
            read.release()
            with db.snapshot() as snapshot:
                assert dict(snapshot) == {b"k": b"new", b"new": b"v"}
            store.versions.last_sequence = 3
            memtable.applying = None
        assert dict(db) == {b"k": b"new", b"new": b"v"}


def test_each_file_of_level_0_from_the_eighth_on_delays_writes_more() -> None:
    """A memtable that is being flushed counts as the file that it will be."""
    comparator = InternalKeyComparator(BYTEWISE)
    memtable = MemTable(BYTEWISE, StoreLock())

    def delay(files: int, immutable: MemTable | None = None) -> float:
        key = pack(b"k", 1, 1)
        levels = [[FileMetaData(number, 1, key, key) for number in range(files)]]
        levels += [[] for _ in range(6)]
        return View(memtable, immutable, Version(comparator, levels)).delay

    assert delay(0) == delay(7) == 0.0 < delay(8) < delay(9) < delay(11) < delay(12)
    assert delay(7, memtable) == delay(8)
    assert delay(1000) == delay(12)
