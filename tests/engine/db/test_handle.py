"""The handle of an open store: closing it, what is refused then, what waits, and what is raised."""

from __future__ import annotations

import _thread
import errno
import gc
import threading
import warnings
from collections.abc import Callable

import pytest
from processes import python_without_warnings
from stores import ENTRIES, TINY, GatedEnv, files, files_at, fill, settle
from threads import background_of, run_threads

import lsmkv
from lsmkv import DB, MemoryEnv, WriteBatch
from lsmkv.engine.format.filenames import FileType
from lsmkv.testing.faulty import FaultyEnv


def test_every_call_on_a_closed_store_is_refused(path: str) -> None:
    db = DB(path, create_if_missing=True)
    db.put(b"k", b"v")
    iterator = iter(db)
    idle = iter(db)
    snapshot = db.snapshot()
    batch = db.write_batch()
    batch.put(b"k", b"w")
    assert next(iterator) == (b"k", b"v")
    assert not db.closed
    db.close()
    db.close()
    assert db.closed
    assert iterator.closed
    calls: list[Callable[[], object]] = [
        lambda: db.get(b"k"),
        lambda: db.put(b"k", b"x"),
        lambda: db.delete(b"k"),
        lambda: db.write(batch),
        lambda: db.write(WriteBatch()),
        db.write_batch,
        batch.write,
        db.iterator,
        lambda: iter(db),
        db.snapshot,
        db.sync,
        db.flush,
        db.compact_range,
        lambda: db.get_property("leveldb.stats"),
        lambda: db.approximate_size(b"a", b"b"),
        db.stats,
        db.check,
        iterator.next,
        iterator.prev,
        idle.next,
        lambda: iterator.seek(b"a"),
        iterator.seek_to_start,
        iterator.seek_to_stop,
        lambda: snapshot.get(b"k"),
        snapshot.iterator,
    ]
    for call in calls:
        with pytest.raises(lsmkv.ClosedError):
            call()
    iterator.close()
    snapshot.close()
    with DB(path) as db:
        assert dict(db) == {b"k": b"v"}


def test_a_block_that_raises_closes(path: str) -> None:
    def block() -> None:
        with DB(path, create_if_missing=True) as db:
            db.put(b"k", b"v")
            raise KeyError("inside")

    with pytest.raises(KeyError):
        block()
    with DB(path) as db:
        assert db.get(b"k") == b"v"


def test_an_unclosed_store_warns_and_closes(path: str) -> None:
    db = DB(path, create_if_missing=True)
    db.put(b"k", b"v")
    stores = [db]
    del db
    with pytest.warns(ResourceWarning, match="unclosed.*db"):
        stores.clear()
    with warnings.catch_warnings(), DB(path) as db:  # the lock is free
        assert db.get(b"k") == b"v"


def test_a_forgotten_store_that_its_own_comparator_knows_is_collected(path: str) -> None:
    """Options lie in every table, and what a block is searched by in every block."""

    def use() -> None:
        known: list[DB] = []

        def compare(a: bytes, b: bytes) -> int:
            assert len(known) <= 1
            return (a > b) - (a < b)

        db = DB(path, create_if_missing=True, comparator=compare, comparator_name="knowing")
        known.append(db)
        for number in range(100):
            db.put(b"%03d" % number, bytes(50))
        db.compact_range()
        for number in range(1000):
            assert db.get(b"%03d" % (number % 100)) is not None
        assert len(list(db)) == 100

    use()
    with pytest.warns(ResourceWarning, match="unclosed.*db"):
        gc.collect()
    with DB(path, comparator=lambda a, b: (a > b) - (a < b), comparator_name="knowing"):
        pass  # the lock is free


def test_at_interpreter_exit(path: str) -> None:
    """Background work at exit neither hangs nor loses anything, and the lock is free after."""
    program = """
        import sys, lsmkv
        db = lsmkv.DB(sys.argv[1], create_if_missing=True, write_buffer_size=1024)
        for n in range(500):
            db.put(b"%05d" % n, b"v" * 50)
    """
    result = python_without_warnings(program, path)
    assert result.stderr == ""
    assert result.returncode == 0
    with DB(path) as db:
        assert len(list(db)) == 500


@pytest.mark.parametrize("where", ["disk", "memory"])
@pytest.mark.parametrize("round_", range(4))
def test_closing_under_readers_and_writers(path: str, where: str, round_: int) -> None:
    env = None
    if where == "memory":
        env, path = MemoryEnv(), "/db"
    # No cache, and room for ten tables only: readers open and close files all the time.
    options = {**TINY, "lru_cache_size": 0, "max_open_files": 20, "env": env}
    db = DB(path, create_if_missing=True, **options)
    fill(db)
    acknowledged: dict[bytes, bytes] = {}
    running = threading.Barrier(7)
    keys = list(ENTRIES)

    def until_closed(step: Callable[[int], object]) -> Callable[[], None]:
        def loop() -> None:
            running.wait()
            n = round_
            while True:
                n += 1
                try:
                    step(n)
                except lsmkv.ClosedError:
                    return

        return loop

    def write(n: int) -> None:
        db.put(b"new%d" % n, b"v" * 40)
        acknowledged[b"new%d" % n] = b"v" * 40

    def close() -> None:
        running.wait()
        while len(acknowledged) < 60:
            pass
        db.close()

    errors = run_threads(
        until_closed(lambda n: db.get(keys[n * 7 % 300])),
        until_closed(lambda n: list(db.iterator(start=keys[n * 11 % 300]))),
        until_closed(lambda n: list(db.iterator(reverse=True, stop=keys[n * 13 % 300]))),
        until_closed(write),
        until_closed(lambda _: db.snapshot().get(b"key0100")),
        until_closed(lambda _: db.flush()),
        close,
    )
    assert errors == []
    with DB(path, env=env) as db:
        assert {**ENTRIES, **acknowledged}.items() <= dict(db).items()


@pytest.mark.parametrize("waiter", ["flush", "compact_range", "stalled put", "second flush"])
def test_closing_while_a_thread_waits_for_background_work(waiter: str) -> None:
    """A compaction is at work; who waits for what comes after it must not wait for ever."""
    env = GatedEnv()
    db = DB("/db", create_if_missing=True, env=env, write_buffer_size=1024)
    for n in range(3):  # they land on levels 2, 1 and 0
        fill(db, {b"a": b"%d" % n, b"z": b"%d" % n})
        db.flush()
    env.open.clear()
    env.waiting.clear()
    compacting, compaction_errors = background_of(
        lambda: db._background.compact_level(0, None, None)
    )
    assert env.waiting.wait(60)
    threads = []

    def put_until_refused() -> None:
        for n in range(100):
            db.put(b"%d" % n, b"v" * 100)

    db.put(b"m", b"1")
    target = {
        "flush": db.flush,
        "second flush": db.flush,
        "compact_range": db.compact_range,
        "stalled put": put_until_refused,
    }[waiter]
    threads.append(background_of(target))
    while db._store.view.immutable is None:
        pass
    if waiter == "second flush":
        threads.append(background_of(db.flush))
    closing, close_errors = background_of(db.close)
    while not db._store.closing:
        pass
    env.open.set()
    for thread, errors in [*threads, (compacting, compaction_errors)]:
        thread.join(60)
        assert not thread.is_alive()
        assert all(isinstance(error, lsmkv.ClosedError) for error in errors), errors
    closing.join(60)
    assert not closing.is_alive()
    assert close_errors == []
    with DB("/db", env=env) as db:
        assert db.get(b"m") == b"1"
        assert db.get(b"a") == b"2"


def test_closing_ends_a_compaction_early(path: str) -> None:
    with DB(path, create_if_missing=True, compression=None) as db:
        for _ in range(2):
            for n in range(3000):
                db.put(b"%05d" % n, b"v" * 300)
            db.flush()
        thread, errors = background_of(db.compact_range)
        while not db._background.busy and thread.is_alive():
            pass
    thread.join()
    assert all(isinstance(error, lsmkv.ClosedError) for error in errors)
    with DB(path) as db:
        assert len(list(db.iterator(include_value=False))) == 3000
        db.check()
        assert len(files(path, FileType.TABLE)) == sum(files_at(db))


def test_an_interrupted_close_takes_no_file_from_the_background_thread() -> None:
    """The next close finishes it; until then every other call is refused, and the lock is held."""
    env = GatedEnv()
    db = DB("/db", create_if_missing=True, env=env, background="thread")
    db.put(b"k", b"v")
    env.open.clear()
    thread, errors = background_of(db.flush)
    assert env.waiting.wait(60)
    for _ in range(2):
        interrupt = threading.Timer(0.02, _thread.interrupt_main)
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - which comes in close(), or too late
            db.close()
            interrupt.join()
        assert db.closed
        with pytest.raises(lsmkv.ClosedError):
            db.put(b"k", b"w")
        with env.open_directory("/db") as directory, pytest.raises(lsmkv.LockedError):
            directory.lock("LOCK")
    env.open.set()
    db.close()
    thread.join()
    assert all(isinstance(error, lsmkv.ClosedError) for error in errors)
    with DB("/db", env=env) as again:
        assert again.recovery.dropped == ()
        assert dict(again) == {b"k": b"v"}


def failed_after_the_last_write(env: FaultyEnv, call: str, n: int) -> tuple[DB, dict[bytes, bytes]]:
    """A store whose last write set off a flush, which failed: in making the table, say."""
    db = DB("/db", create_if_missing=True, env=env, write_buffer_size=1024, background="thread")
    state = {b"%d" % number: b"v" * 300 for number in range(4)}
    for key, value in state.items():
        db.put(key, value)
    env.fail_at(n, OSError(errno.EIO, "disk failed"), calls={call})
    state[b"last"] = b"1"
    db.put(b"last", b"1")
    settle(db)
    assert env.failures == 1
    return db, state


# The log comes first, created and synced by the writer; then the table; then the MANIFEST.
@pytest.mark.parametrize(("call", "n"), [("create", 2), ("sync", 2), ("sync", 3)])
def test_closing_does_not_raise_the_error_of_a_flush(
    call: str, n: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It was logged, and all is there: after a power cut, too."""
    env = FaultyEnv()
    db, state = failed_after_the_last_write(env, call, n)
    assert "Background work ended by an error: [Errno 5] disk failed" in caplog.text
    with pytest.raises(lsmkv.IOError, match="disk failed"):
        db.put(b"refused", b"")
    db.close()
    for after in (env.kill(), env.power_cut(), env):
        with DB("/db", env=after) as again:
            assert dict(again) == state


def test_a_block_that_raises_is_not_hidden_by_a_failed_flush() -> None:
    db, _ = failed_after_the_last_write(FaultyEnv(), "create", 2)
    with pytest.raises(LookupError, match="of the block") as caught, db:
        raise LookupError("of the block")
    assert caught.value.__context__ is None
    assert db.closed


def test_closing_raises_the_error_of_syncing_the_log() -> None:
    env = FaultyEnv()
    db = DB("/db", create_if_missing=True, env=env)
    db.put(b"k", b"v")
    env.fail_at(1, OSError(errno.EIO, "bad disk"), calls={"sync"})
    with pytest.raises(lsmkv.IOError, match="bad disk"):
        db.close()
    assert db.closed
    db.close()
    with DB("/db", env=env) as again:  # the lock was given up
        assert dict(again) == {b"k": b"v"}
