"""Flushes and compactions beside writes, write stalls, and failures."""

from __future__ import annotations

import random
from typing import Any

import pytest
from stores import GatedEnv, files_at, settle
from threads import background_of

import lsmkv
from lsmkv import DB, MemoryEnv
from lsmkv.engine.db.compact.background_thread import BackgroundThread
from lsmkv.engine.format.filenames import FileType, log_name, parse_filename
from lsmkv.testing.faulty import FaultyEnv


def test_a_full_memtable_waits_for_its_flush() -> None:
    """A writer that finds both memtables full waits, and goes on as soon as there is room."""
    env = GatedEnv()
    with DB("/db", create_if_missing=True, env=env, write_buffer_size=1024) as db:
        env.open.clear()

        def write() -> None:
            for n in range(100):
                db.put(b"%05d" % n, b"v" * 100)

        thread, errors = background_of(write)
        env.waiting.wait()
        while db.stats().memtable_bytes < 2048:
            pass
        assert thread.is_alive()
        assert db.get(b"00000") == b"v" * 100  # reads go on meanwhile
        assert len(list(db)) >= 14
        env.open.set()
        thread.join()
        assert errors == []
        assert len(list(db)) == 100
        stats = db.stats()
        assert stats.stalls > 0
        assert stats.stall_seconds > 0
        assert stats.flushes > 5


@pytest.mark.parametrize("then", ["it goes on", "the store is closed", "the flush fails"])
def test_the_next_log_is_made_while_a_flush_is_waited_for(then: str) -> None:
    env = GatedEnv()
    db = DB("/db", create_if_missing=True, env=env, write_buffer_size=1024)
    directory = env.open_directory("/db")

    def logs() -> list[int]:
        parsed = [parse_filename(name) for name in directory.names()]
        return sorted(one[0] for one in parsed if one is not None and one[1] is FileType.LOG)

    env.open.clear()
    written: list[int] = []

    def write() -> None:
        for n in range(30):
            db.put(b"%05d" % n, b"v" * 100)
            written.append(n)

    thread, errors = background_of(write)
    env.waiting.wait()
    while len(logs()) < 3:
        assert thread.is_alive()
    *held, following = logs()
    view = db._store.view
    assert held == [view.immutable.log_number, view.memtable.log_number]
    assert directory.read_file(log_name(following), 1) == b""
    if then == "the store is closed":
        closing, _ = background_of(db.close)
        while not db._store.closing:
            pass
    elif then == "the flush fails":
        env.full = True
    env.open.set()
    thread.join(60)
    assert not thread.is_alive()
    if then == "it goes on":
        assert errors == []
        db.flush()
        assert env.logs_made == 1 + db.stats().flushes
        db.check()
    else:
        assert [type(error) for error in errors] == [
            lsmkv.ClosedError if then == "the store is closed" else lsmkv.IOError
        ]
    db.close()
    if then == "the store is closed":
        closing.join(60)
    if then != "it goes on":
        assert following not in logs()
    env.full = False
    with DB("/db", env=env) as db:
        assert dict(db) == {b"%05d" % n: b"v" * 100 for n in written}


@pytest.mark.parametrize("half", [False, True])
def test_a_disk_that_is_full_until_the_flush_is_done_fails_no_write(half: bool) -> None:
    env = GatedEnv()
    env.half = half
    with DB("/db", create_if_missing=True, env=env, write_buffer_size=1024) as db:
        env.open.clear()
        while db._store.view.immutable is None:
            db.put(b"k", b"v" * 100)
        env.no_logs = True

        def write() -> None:
            for n in range(20):
                db.put(b"%05d" % n, b"v" * 100)

        thread, errors = background_of(write)
        while env.refused == 0:
            assert thread.is_alive()
        env.open.set()
        thread.join(60)
        assert errors == []
        assert len(dict(db)) == 21


def test_the_background_thread_removes_obsolete_files_before_it_ends() -> None:
    """Though it has found, at the end, nothing else to do: the flush that it saved it for, say."""
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        background: Any = db._background
        settle(db)
        env.open_directory("/db").create("000001.log").close()
        runner = BackgroundThread(None, [])
        background._running_thread = runner
        background.jobs.has_obsolete_files = True
        background._run_jobs(runner)
        assert background._running_thread is None
        assert not env.open_directory("/db").exists("000001.log")


def test_a_failed_flush_ends_a_stall_with_its_error() -> None:
    env = FaultyEnv()
    with DB("/db", create_if_missing=True, env=env, write_buffer_size=1024) as db:
        written = 0

        def write() -> None:
            nonlocal written
            for n in range(1000):
                db.put(b"%05d" % n, b"v" * 100)
                written += 1

        for n in range(3):
            db.put(b"a%d" % n, b"v")
        db.flush()
        env.fail_at(1, OSError(28, "No space left on device"), sticky=True, calls={"create"})
        with pytest.raises(lsmkv.IOError, match="No space left") as caught:
            write()
        assert caught.value.errno == 28
        first = written
        with pytest.raises(lsmkv.IOError, match="No space left"):
            db.put(b"again", b"x")
        env.heal()
        assert db.get(b"a1") == b"v"
        assert len(list(db)) == first + 3
    with DB("/db", env=env) as db:
        expected = {b"%05d" % n: b"v" * 100 for n in range(first)}
        assert dict(db) == {**expected, b"a0": b"v", b"a1": b"v", b"a2": b"v"}
        db.put(b"more", b"1")


def test_many_small_tables_slow_writes_and_lose_none(path: str) -> None:
    with DB(path, create_if_missing=True, write_buffer_size=1024) as db:
        expected = {}
        rng = random.Random(9)
        for n in range(3000):
            key = b"%04d" % rng.randrange(2000)
            expected[key] = b"%d" % n * 8
            db.put(key, expected[key])
        assert dict(db) == expected
        settle(db)
        assert files_at(db)[0] < 12
        assert db.stats().compactions > 0
        db.check()
