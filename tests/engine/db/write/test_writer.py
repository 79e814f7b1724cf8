"""lsmkv.engine.db.write.writer: group commit, interrupted leaders, and the marks of a memtable."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hooked import HookedEnv
from stores import contents

import lsmkv
from lsmkv import DB
from lsmkv.engine.db.write.write_queue import PendingWrite
from lsmkv.testing.faulty import FaultyEnv


def test_a_done_batch_left_in_the_queue_is_removed() -> None:
    """Its writer was interrupted while it led, and again before it could remove the batch."""
    with DB(":memory:") as db:
        writer = db._writer
        assert writer is not None
        left = PendingWrite([], False, None)
        left.done = True
        writer._queue.waiting.append(left)
        db.put(b"k", b"v")
        assert len(writer._queue.waiting) == 0


def test_a_batch_whose_writer_was_interrupted_is_led_by_another() -> None:
    """The interrupted batch is written or not; the next one is written."""
    with DB(":memory:") as db:
        writer = db._writer
        assert writer is not None
        writer._queue.waiting.append(PendingWrite([(b"left", b"v")], False, None))
        db.put(b"k", b"v")
        assert dict(db) in ({b"k": b"v"}, {b"k": b"v", b"left": b"v"})
        assert len(writer._queue.waiting) == 0


@pytest.mark.parametrize("fails", [False, True])
def test_group_commit_syncs_followers_after_interrupt(fails: bool) -> None:
    """A signal interrupts the leader before the sync that it owes its followers."""
    env = FaultyEnv()
    inside, go_on = threading.Event(), threading.Event()
    syncs: list[str] = []

    def sync_of(file: Any) -> Callable[[], None]:
        inner = file.sync

        def sync() -> None:
            syncs.append(threading.current_thread().name)
            if len(syncs) == 1:
                inside.set()
                go_on.wait()
            elif len(syncs) == 2:
                if fails:
                    env.fail_at(1, calls={"sync"})
                raise KeyboardInterrupt
            inner()

        return sync

    open_directory = env.open_directory

    def with_hook(path: str, create: bool = False) -> Any:
        directory: Any = open_directory(path, create)
        create_file = directory.create

        def create_hooked(name: str) -> Any:
            file = create_file(name)
            if name.endswith(".log"):
                file.sync = sync_of(file)
            return file

        directory.create = create_hooked
        return directory

    env.open_directory = with_hook  # type: ignore[method-assign]
    db = DB("db", create_if_missing=True, env=env)
    writer = db._writer
    assert writer is not None
    outcome: dict[bytes, BaseException | None] = {}

    def write(key: bytes) -> None:
        try:
            db.put(key, b"v", sync=True)
            outcome[key] = None
        except BaseException as error:
            outcome[key] = error

    threads: list[threading.Thread] = []
    for key in (b"first", b"leader", b"follower"):
        thread = threading.Thread(target=write, args=(key,))
        threads.append(thread)
        thread.start()
        inside.wait()
        while len(writer._queue.waiting) < len(threads) - 1:  # the first did not queue
            threading.Event().wait(0.001)  # until it has queued
    go_on.set()
    for thread in threads:
        thread.join()
    assert outcome[b"first"] is None
    assert isinstance(outcome[b"leader"], KeyboardInterrupt)
    assert isinstance(outcome[b"follower"], lsmkv.IOError if fails else type(None))
    with DB("db", env=env.power_cut()) as again:
        kept = set(again.iterator(include_value=False))
    assert kept == ({b"first"} if fails else {b"first", b"leader", b"follower"})
    if fails:
        with pytest.raises(lsmkv.IOError):
            db.close()
    else:
        db.close()


def test_writes_alone_enter_no_key_into_the_memtable(tmp_path: Path) -> None:
    """Neither the writes nor the flushes between them need a lookup."""
    with DB(tmp_path / "db", create_if_missing=True, write_buffer_size=20_000) as db:
        for n in range(1000):
            db.put(b"%d" % n, b"v", sync=n % 500 == 0)
            with db.write_batch() as batch:
                batch.put(b"%d again" % n, b"w")
                batch.delete(b"%d" % (n - 1))
        memtable = db._store.view.memtable
        assert memtable._newest == {}
        assert len(memtable._buffer.keys) > 0
        assert db.stats().flushes > 3
        assert len(dict(db)) == 1001
        db.put(b"k", b"v")  # this memtable has been read
        assert memtable._buffer is None


def test_counters_of_writes(db: DB) -> None:
    with db.write_batch() as batch:
        batch.put(b"abc", b"12345")
        batch.delete(b"de")
    db.put(b"f", b"", sync=True)
    stats = db.stats()
    assert (stats.writes, stats.operations, stats.user_bytes) == (2, 3, 11)
    assert (stats.log_writes, stats.log_syncs) == (2, 1)
    # A record's header is 7 bytes, a batch's 12; an operation has a kind and its lengths.
    assert stats.log_bytes == 2 * (7 + 12) + (1 + 1 + 3 + 1 + 5) + (1 + 1 + 2) + (1 + 1 + 1 + 1)
    db.close()  # which cuts off the room that was reserved
    assert sum(len(d) for n, d in contents(db.path).items() if n.endswith(".log")) == (
        stats.log_bytes
    )


def test_a_queued_batch_of_an_interrupted_writer_blocks_no_write() -> None:
    """A signal may strike when the batch is in the queue and nobody leads for it yet."""
    with DB(":memory:") as db:
        db.put(b"a", b"1")
        writer = db._writer
        assert writer is not None
        writer._queue.waiting.append(PendingWrite([(b"orphan", b"1")], False, None))
        thread = threading.Thread(target=db.put, args=(b"b", b"1"), daemon=True)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
        assert dict(db) == {b"a": b"1", b"b": b"1", b"orphan": b"1"}


def test_a_sync_waits_for_the_write_under_way() -> None:
    calls: list[str] = []

    def before(call: str, name: str) -> None:
        if syncing and name.endswith(".log"):
            calls.append(call)
            if call == "append":
                syncing[0].start()
                syncing[0].join(0.2)  # as long as a sync that did not wait would need
                calls.append("appended")

    syncing: list[threading.Thread] = []
    with DB("/db", create_if_missing=True, env=HookedEnv(before)) as db:
        syncing.append(threading.Thread(target=db.sync))
        db.put(b"k", b"v")
        syncing[0].join()
    assert calls == ["append", "appended", "sync"]


@pytest.mark.parametrize("call", ["flush", "sync", "checkpoint", "put"])
def test_a_call_that_gets_the_lock_after_the_log_was_closed(call: str, tmp_path: Path) -> None:
    """``close`` has closed the log, and has not taken the view away yet."""
    with DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"k", b"v")
        calls: dict[str, Callable[[], object]] = {
            "flush": db.flush,
            "sync": db.sync,
            "checkpoint": lambda: db.checkpoint(tmp_path / "copy"),
            "put": lambda: db.put(b"late", b"v"),
        }
        writer, store = db._writer, db._store
        assert writer is not None
        assert store is not None
        store.closing = True
        writer.close()
        with pytest.raises(lsmkv.ClosedError):
            calls[call]()
