"""Flushes and compactions that find no room, and go on when there is some."""

from __future__ import annotations

import errno
import gc
import logging
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from stores import files_at, settle
from threads import background_of

import lsmkv
from lsmkv import DB, MemoryEnv, TableWriter
from lsmkv.engine.format.filenames import FileType, parse_filename
from lsmkv.testing.faulty import FaultyEnv

SMALL: dict[str, Any] = {"write_buffer_size": 1024, "max_file_size": 1024, "compression": None}
VALUE = b"v" * 100


class TightEnv(MemoryEnv):
    """There is no room for the files of one kind, for as long as ``full`` says so.

    ``call`` is the call that finds no room: ``create``, ``append``, ``sync`` or ``dir_sync``.
    """

    def __init__(self, call: str = "create", kind: str = ".ldb", code: int = errno.ENOSPC) -> None:
        super().__init__()
        self.full = False
        self.attempts = 0
        """How often that call was made."""
        self.free: int | None = None
        self.when_refused: Callable[[], None] = lambda: None
        self._call = call
        self._kind = kind
        self._code = code

    def _strike(self, call: str, name: str) -> None:
        if call == self._call and (self._kind in name or call == "dir_sync"):
            self.attempts += 1
            if self.full:
                self.when_refused()
                raise OSError(self._code, os.strerror(self._code), name)

    def open_directory(self, path: str, create: bool = False) -> Any:
        directory: Any = super().open_directory(path, create)
        inner_create, inner_sync = directory.create, directory.sync

        def make(name: str) -> Any:
            self._strike("create", name)
            file: Any = inner_create(name)
            append, sync = file.append, file.sync

            def failing_append(data: bytes) -> None:
                try:
                    self._strike("append", name)
                except OSError:
                    append(data[: len(data) // 2])
                    raise
                append(data)

            def failing_sync() -> None:
                self._strike("sync", name)
                sync()

            file.append = failing_append
            file.sync = failing_sync
            return file

        def failing_dir_sync() -> None:
            # The background thread's: those of the writers' are for new logs.
            if threading.current_thread() is not threading.main_thread():
                self._strike("dir_sync", path)
            inner_sync()

        directory.create = make
        directory.sync = failing_dir_sync
        directory.free_bytes = lambda: self.free
        return directory

    def tables(self) -> set[str]:
        """The names of all tables in the directory."""
        with self.open_directory("/db") as directory:
            return {name for name in directory.names() if name.endswith(".ldb")}


def fill(db: DB, model: dict[bytes, bytes], most: int = 1000) -> lsmkv.IOError:
    """Put until that is refused, and return the error."""
    for _ in range(most):
        key = b"%05d" % len(model)
        try:
            db.put(key, VALUE)
        except lsmkv.IOError as error:
            return error
        model[key] = VALUE
    raise AssertionError("no write was refused")


@pytest.mark.parametrize("call", ["create", "append", "sync", "dir_sync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_writes_go_on_once_a_flush_finds_room(call: str, code: int) -> None:
    env = TightEnv(call, code=code)
    model: dict[bytes, bytes] = {}
    with DB("/db", create_if_missing=True, env=env, **SMALL) as db:
        settle(db)
        env.full = True
        error = fill(db, model)
        assert len(model) > 10, "the memtable has room for these, and for as many the one before"
        assert (error.errno, error.filename) == (code, "/db")
        assert os.strerror(code) in str(error)
        assert "once this directory has more space" in str(error)
        assert env.tables() == set(), "what was written is removed, and takes up no room"
        for _ in range(3):
            with pytest.raises(lsmkv.IOError, match="once this directory"):
                db.put(b"refused", VALUE)
        assert dict(db) == model
        assert db.get(b"00000") == VALUE
        db.sync()
        env.full = False
        for n in range(40):
            db.put(b"after%02d" % n, VALUE)
            model[b"after%02d" % n] = VALUE
        assert dict(db) == model
        db.flush()
        db.check()
        numbers = [table.number for table in db.tables()]
        assert len(numbers) == len(set(numbers))
    with DB("/db", env=env) as db:
        assert dict(db) == model


def test_a_full_disk_is_reported_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    env = TightEnv()
    model: dict[bytes, bytes] = {}
    caplog.set_level(logging.INFO, "lsmkv")
    with DB("/db", create_if_missing=True, env=env, **SMALL) as db:
        for _ in range(2):
            caplog.clear()
            env.full = True
            for _ in range(5):
                fill(db, model)
            (begin,) = caplog.records
            assert begin.levelno == logging.WARNING
            assert "No space left on device" in begin.getMessage()
            caplog.clear()
            env.full = False
            for n in range(40):
                db.put(b"x%02d" % n, VALUE)
            (end,) = caplog.records
            assert "There is space for new tables again" in end.getMessage()
        with env.open_directory("/db") as directory:
            log = directory.read_file("LOG", 1 << 20)
        assert log.count(b"No space for new tables") == log.count(b"There is space") == 2


@pytest.mark.parametrize("call", ["flush", "compact_range", "rewrite_tables"])
def test_a_call_that_finds_no_room_can_be_made_again(call: str) -> None:
    env = TightEnv("append")
    with DB("/db", create_if_missing=True, env=env, compression=None) as db:
        for _ in range(2):
            for n in range(50):
                db.put(b"%03d" % n, VALUE)
            if call != "flush":
                db.flush()
        before = env.tables()
        env.full = True
        for _ in range(3):
            with pytest.raises(lsmkv.IOError) as caught:
                getattr(db, call)()
            assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/db")
            assert env.tables() == before
            db.put(b"more", b"1")
            assert len(dict(db)) == 51
            if call != "flush":
                db.delete(b"more")
                env.full = False
                db.flush()
                before = env.tables()
                env.full = True
        env.full = False
        db.put(b"more", b"1")
        getattr(db, call)()
        assert len(dict(db)) == 51
        db.check()


@pytest.mark.parametrize("flushed", [False, True])
def test_an_ingest_that_finds_no_room_can_be_made_again(flushed: bool) -> None:
    """Be it for the flush that comes first, or for its own tables."""
    env = TightEnv("append")
    with TableWriter("/bulk.table", env=env) as table:
        table.add(b"k", VALUE)
    with DB("/db", create_if_missing=True, env=env) as db:
        db.put(b"a", VALUE)
        if flushed:
            db.flush()
        before = env.tables()
        env.full = True
        for _ in range(2):
            with pytest.raises(lsmkv.IOError) as caught:
                db.ingest(["/bulk.table"])
            assert caught.value.errno == errno.ENOSPC
            assert env.tables() == before
            assert dict(db) == {b"a": VALUE}
        env.full = False
        db.ingest(["/bulk.table"])
        assert dict(db) == {b"a": VALUE, b"k": VALUE}
        db.check()


def test_a_compaction_that_finds_no_room_stops_no_write_before_level_0_is_full() -> None:
    """Then a write says so, and the next one goes on when there is room."""
    env = TightEnv("append")
    model: dict[bytes, bytes] = {}
    with DB("/db", create_if_missing=True, env=env, **SMALL) as db:

        def put(n: int) -> None:
            db.put(b"%02d" % (n % 30), b"%05d" % n * 20)
            model[b"%02d" % (n % 30)] = b"%05d" % n * 20

        store: Any = db._store
        background: Any = db._background
        create = store.directory.create

        def without_outputs(name: str) -> Any:
            """There is room for the tables of flushes alone."""
            number = parse_filename(name)
            if full and number is not None and number[0] in background.pending_outputs:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
            return create(name)

        full = True
        store.directory.create = without_outputs
        written = 0
        refused: lsmkv.IOError | None = None
        while refused is None and written < 1000:
            try:
                put(written)
                written += 1
            except lsmkv.IOError as error:
                refused = error
        assert refused is not None
        assert refused.errno == errno.ENOSPC
        assert "tables are merged once this directory has more space" in str(refused)
        assert dict(db) == model
        assert files_at(db)[0] == 12
        refused = None
        with pytest.raises(lsmkv.IOError, match="tables are merged once"):
            put(written)
        full = False
        gc.collect()  # errors and their frames
        for n in range(written, written + 200):
            put(n)
        assert dict(db) == model
        settle(db)
        assert files_at(db)[0] < 12
        db.check()
        # The frames of an error that is kept would keep versions alive, and their tables.
        assert env.tables() == {table.name for table in db.tables()}


def refusing(db: DB, refuses: Callable[[bool], bool]) -> None:
    """Have tables refused for which ``refuses`` says so; it gets whether a compaction makes one."""
    store: Any = db._store
    background: Any = db._background
    create = store.directory.create

    def make(name: str) -> Any:
        number, kind = parse_filename(name) or (0, None)
        if kind is FileType.TABLE and refuses(number in background.pending_outputs):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        return create(name)

    store.directory.create = make


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_compaction_is_tried_again_after_a_flush(by_hand: bool) -> None:
    """If it is not needed any more, the disk is no longer full either."""
    with DB("/db", create_if_missing=True, env=MemoryEnv(), **SMALL) as db:
        full = True
        refusing(db, lambda is_output: full and is_output)
        background: Any = db._background
        n = 0
        while background.no_room is None:
            n += 1
            db.put(b"%02d" % (n % 30), b"%05d" % n * 20)
            settle(db)
        assert db.stats().compactions == 0
        full = False
        if by_hand:
            background.compact_level(0, None, None)
            assert background.no_room is not None
        db.put(b"more", b"1")
        db.flush()
        settle(db)
        assert background.no_room is None
        assert db.stats().compactions > 0


def test_a_flush_is_tried_again_after_a_compaction() -> None:
    """The flush was due while it ran.  No writer waits for it."""
    with DB("/db", create_if_missing=True, env=MemoryEnv(), **SMALL) as db:
        store: Any = db._store
        background: Any = db._background
        began = threading.Event()
        refused: list[bool] = []

        def refuses(is_output: bool) -> bool:
            if is_output and not began.is_set():
                began.set()
                while store.view.immutable is None:
                    pass
            once = began.is_set() and not is_output and not refused
            if once:
                refused.append(True)
            return once

        refusing(db, refuses)
        for n in range(1000):
            if began.is_set() and store.view.immutable is not None:
                break
            try:
                db.put(b"%02d" % (n % 30), b"%05d" % n * 20)
            except lsmkv.IOError:
                break  # it was waiting for that flush
        settle(db)
        assert refused
        assert store.view.immutable is None
        assert background.no_room is None


@pytest.mark.parametrize("kind", ["MANIFEST", "EIO", "EFBIG"])
def test_other_failures_stay_final(kind: str) -> None:
    """That of the MANIFEST, also on a full disk, and any other failure of a table."""
    code = getattr(errno, kind, errno.ENOSPC)
    env = TightEnv("sync", kind="MANIFEST" if kind == "MANIFEST" else ".ldb", code=code)
    with DB("/db", create_if_missing=True, env=env, **SMALL) as db:
        env.full = True
        error = fill(db, {})
        assert error.errno == code
        env.full = False
        for call in (db.flush, db.sync, lambda: db.put(b"k", b"v"), db.compact_range):
            with pytest.raises(lsmkv.IOError):
                call()


def test_a_store_on_a_full_disk_is_closed_and_loses_nothing() -> None:
    env = TightEnv()
    model: dict[bytes, bytes] = {}
    db = DB("/db", create_if_missing=True, env=env, **SMALL)
    env.full = True
    fill(db, model)
    closing, errors = background_of(db.close)
    closing.join(60)
    assert not closing.is_alive()
    assert errors == []
    for _ in range(2):
        with pytest.raises(lsmkv.IOError):
            DB("/db", env=env)
    env.full = False
    with DB("/db", env=env) as db:
        assert dict(db) == model


def test_refused_writes_start_no_attempts_while_no_room_comes() -> None:
    env = TightEnv("append")
    env.free = 1000
    model: dict[bytes, bytes] = {}
    with DB("/db", create_if_missing=True, env=env, **SMALL) as db:
        env.full = True
        fill(db, model)
        settle(db)
        before = env.attempts
        for _ in range(100):
            with pytest.raises(lsmkv.IOError, match="once this directory"):
                db.put(b"refused", VALUE)
        assert env.attempts <= before + 2, "one a second at most"
        background: Any = db._background
        assert not background.busy, "no thread waits for room"
        env.free = 1001
        with pytest.raises(lsmkv.IOError):
            db.put(b"refused", VALUE)
        assert env.attempts > before, "more room is worth an attempt"
        env.full = False
        env.free = 100_000
        db.put(b"taken", VALUE)
        assert dict(db) == {**model, b"taken": VALUE}


def test_room_that_comes_during_an_attempt_is_seen() -> None:
    env = TightEnv("append")
    env.free = 1000
    with DB("/db", create_if_missing=True, env=env, **SMALL) as db:

        def make_room() -> None:
            env.full = False
            env.free = 100_000

        env.full = True
        fill(db, {})
        env.free = 1001
        env.when_refused = make_room
        with pytest.raises(lsmkv.IOError):
            db.put(b"k", VALUE)
        for n in range(100):
            db.put(b"%d" % n, VALUE)


def test_writers_that_wait_for_one_flush_are_all_refused() -> None:
    env = TightEnv()
    with DB("/db", create_if_missing=True, env=env, **SMALL) as db:
        env.full = True
        fill(db, {})
        threads = [background_of(lambda: db.put(b"k", VALUE)) for _ in range(8)]
        for thread, errors in threads:
            thread.join(60)
            assert not thread.is_alive()
            assert [type(error) for error in errors] == [lsmkv.IOError]
        env.full = False
        db.put(b"k", VALUE)


def test_an_open_that_finds_no_room_leaves_no_tables() -> None:
    """A large log becomes several tables: each attempt would leave less room to the next."""
    env = TightEnv("append")
    with DB("/db", create_if_missing=True, env=env, compression=None) as db:
        for n in range(100):
            db.put(b"%03d" % n, VALUE)
    with env.open_directory("/db") as directory:
        made = directory.create
        tables = 0

        def third_fails(name: str) -> Any:
            nonlocal tables
            tables += name.endswith(".ldb")
            if tables == 3:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
            return made(name)

        inner = env.open_directory

        def opened(path: str, create: bool = False) -> Any:
            found: Any = inner(path, create)
            nonlocal made
            made = found.create
            found.create = third_fails
            return found

        env.open_directory = opened  # type: ignore[method-assign]
        with pytest.raises(lsmkv.IOError):
            DB("/db", env=env, write_buffer_size=1024)
        env.open_directory = inner  # type: ignore[method-assign]
    assert tables == 3
    assert env.tables() == set()
    with DB("/db", env=env, write_buffer_size=1024) as db:
        assert len(dict(db)) == 100


ALLOCATING = {"create", "append", "sync", "dir_sync", "reserve", "rename"}


def may_be_final(struck: list[tuple[str, str]]) -> bool:
    """Whether a call failed after which the store must be opened again."""
    return any(
        "MANIFEST" in path
        or "CURRENT" in path
        or path.endswith(".tmp")
        or (path.endswith(".log") and call == "sync")
        or (call == "dir_sync" and path.endswith("/db"))
        for call, path in struck
    )


def run_through_a_full_disk(mapped: bool, n: int, failing: int) -> bool:
    """The n-th call that may find no room finds none, nor do the ones after it, until ``failing``
    calls of the store were refused.  Whether the run had so many."""
    env = FaultyEnv(mapped_logs=mapped)
    model: dict[bytes, bytes] = {}
    refused = 0
    db = DB("/db", create_if_missing=True, env=env, background="thread", **SMALL)
    env.fail_at(n, OSError(errno.ENOSPC, "no room"), sticky=True, calls=ALLOCATING)

    def insist(call: Callable[[], None], refusable: dict[bytes, bytes]) -> None:
        """Make the call until it returns, on a store that is opened again only if it must be."""
        nonlocal refused, db
        while True:
            try:
                call()
                return
            except lsmkv.IOError as error:
                code = error.errno
            assert code == errno.ENOSPC
            assert dict(db) == model
            refused += 1
            if refused >= failing:
                was_full = env.failures > 0
                env.heal()
                assert was_full
                if refused > failing:
                    assert may_be_final(env.struck), env.struck
                    try:
                        db.close()
                    except lsmkv.IOError:
                        pass
                    db = DB("/db", env=env, background="thread", **SMALL)
                    # A write whose sync failed was refused, and may be there.
                    assert dict(db) in (model, {**model, **refusable})
                    refused = -1_000_000  # nothing fails from now on

    for at in range(60):
        key, value = b"%02d" % (at % 23), b"%03d" % at * 30

        def write(key: bytes = key, value: bytes = value, at: int = at) -> None:
            db.put(key, value, sync=at % 7 == 0)

        insist(write, {key: value})
        model[key] = value
        if at % 25 == 24:
            insist(lambda: db.flush(), {})  # noqa: PLW0108 - of the store that is open then
        if at == 55:
            insist(lambda: db.compact_range(), {})  # noqa: PLW0108 - likewise
    found_any = env.failures > 0
    env.heal()
    assert dict(db) == model
    try:
        db.close()
    except lsmkv.IOError:
        assert may_be_final(env.struck)
    with DB("/db", env=env, **SMALL) as db:
        assert dict(db) == model
        db.check()
    return found_any


@pytest.mark.parametrize(("mapped", "failing"), [(False, 1), (True, 3)])
def test_no_acknowledged_write_is_lost_wherever_the_disk_fills_up(
    mapped: bool, failing: int
) -> None:
    n = 1
    while run_through_a_full_disk(mapped, n, failing):
        n += 1
    assert n > 100
