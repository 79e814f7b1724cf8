"""A read-only store writes nothing, takes no lock, and is consistent beside a writer."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import operator
import os
import pathlib
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hooked import HookedEnv
from stores import fill, some

import lsmkv
from lsmkv import DB, MemoryEnv
from lsmkv.engine.env.memory import MemoryDirectory, MemoryFolder, MemoryRandomAccessFile
from lsmkv.engine.format.batch import encode_batch
from lsmkv.engine.format.log import LogWriter
from lsmkv.testing.faulty import FaultyEnv

TINY: dict[str, Any] = {"write_buffer_size": 1024, "max_file_size": 1024, "block_size": 256}
CALLS = {"open_directory", "names", "exists", "size", "open", "read"}


def traces(path: str) -> dict[str, tuple[int, int, int, bytes]]:
    """The visible state of a directory, without access times."""
    found = {}
    for entry in [pathlib.Path(path), *pathlib.Path(path).rglob("*")]:
        status = entry.stat()
        data = entry.read_bytes() if entry.is_file() else b""
        found[str(entry)] = status.st_ino, status.st_mtime_ns, status.st_ctime_ns, data
    return found


def only(path: str, suffix: str) -> str:
    (name,) = [name for name in os.listdir(path) if name.endswith(suffix)]
    return os.path.join(path, name)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    """A store with tables, and a log with 50 more writes."""
    path = str(tmp_path / "db")
    with DB(path, create_if_missing=True, **TINY) as db:
        fill(db, some(0, 50))
    with DB(path) as db:
        fill(db, some(40, 90))
        db.delete(b"key0000")
    return path


STATE = {key: value for key, value in some(0, 90).items() if key != b"key0000"}


def use(db: DB) -> None:
    """Call every method that reads."""
    list(db)
    with db.snapshot() as snapshot:
        list(snapshot.iterator(reverse=True))
    db.multi_get([b"key0001", b"key0080"])
    db.explain(b"key0001")
    db.verify()
    db.check()
    db.get_property("leveldb.stats")
    db.approximate_size(b"a", b"z")
    db.stats()
    db.refresh()
    db.raw_iterator(prefix=b"key").seek_to_last()
    for key in some(0, 100):
        db.get(key)
        db.may_contain(key)


def test_shows_tables_and_log_and_writes_nothing(path: str) -> None:
    before = traces(path)
    with DB(path, read_only=True) as db:
        assert dict(db) == STATE
        use(db)
    assert traces(path) == before


@pytest.mark.parametrize("cut", [1, 7, 200])
def test_a_torn_log_is_left_as_it_is(path: str, cut: int, caplog: pytest.LogCaptureFixture) -> None:
    log = only(path, ".log")
    os.truncate(log, os.path.getsize(log) - cut)
    before = traces(path)
    with caplog.at_level(logging.INFO, "lsmkv"), DB(path, read_only=True) as db:
        shown = dict(db)
        use(db)
    assert traces(path) == before
    # Beside a live writer that is what a write looks like that goes on just now.
    assert {record.levelno for record in caplog.records} == {logging.INFO}
    with DB(path) as db:
        assert dict(db) == shown
    assert b"key0050" in shown


def test_a_gap_in_the_log(path: str, caplog: pytest.LogCaptureFixture) -> None:
    log = only(path, ".log")
    with open(log, "r+b") as file:
        file.seek(os.path.getsize(log) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0xFF]))
    before = traces(path)
    with (
        caplog.at_level(logging.WARNING, "lsmkv"),
        pytest.warns(lsmkv.RecoveryWarning, match="missing"),
    ):
        db = DB(path, read_only=True)
    with db:
        shown = dict(db)
        use(db)
        (dropped,) = db.recovery.dropped
        assert dropped.name == os.path.basename(log)
        assert dropped.kept_as is None
        assert db.recovery.operations + (dropped.missing or 0) + len(shown) == 91
        assert len(db.verify()) == 1
    assert "missing" in caplog.text
    assert traces(path) == before
    count = len(shown)
    assert 50 < count < 89
    assert shown == some(0, count)  # the prefix: key0000 was deleted last
    with pytest.raises(lsmkv.CorruptionError):
        DB(path, read_only=True, paranoid_checks=True)
    assert traces(path) == before


def test_damage_at_the_head_of_a_log_that_was_taken_over(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The MANIFEST's last sequence may belong to a write that only the log holds."""
    path = str(tmp_path / "db")
    for key in (b"first", b"second"):
        with DB(path, create_if_missing=True, reuse_logs=True) as db:
            db.put(key, b"1")
    log = pathlib.Path(only(path, ".log"))
    content = bytearray(log.read_bytes())
    content[content.index(b"first")] ^= 1
    log.write_bytes(content)
    with pytest.raises(lsmkv.CorruptionError, match="missing"):
        DB(path, read_only=True, paranoid_checks=True)
    with caplog.at_level(logging.WARNING, "lsmkv"), pytest.warns(lsmkv.RecoveryWarning):
        db = DB(path, read_only=True)
    with db:
        assert db.recovery.dropped[0].missing is None
        assert dict(db) == {}  # "second" alone is a state that the store was never in
    assert "writes are missing" in caplog.text


def test_a_log_from_after_an_ingest_beside_a_manifest_from_before(tmp_path: pathlib.Path) -> None:
    """Only the MANIFEST names an ingest; no later write is shown without it."""
    with lsmkv.TableWriter(tmp_path / "bulk.ldb") as table:
        table.add(b"b", b"ingested")
    path = tmp_path / "db"
    with DB(path, create_if_missing=True) as db:
        db.put(b"a", b"old")
        db.flush()
        before = {
            name: (path / name).read_bytes()
            for name in os.listdir(path)
            if name.startswith(("MANIFEST", "CURRENT")) or name.endswith(".log")
        }
        db.ingest([tmp_path / "bulk.ldb"])
        db.put(b"c", b"later")
    with DB(path, read_only=True) as db:
        assert dict(db) == {b"a": b"old", b"b": b"ingested", b"c": b"later"}
    for name, content in before.items():
        (path / name).write_bytes(content)
    with pytest.warns(lsmkv.RecoveryWarning):
        db = DB(path, read_only=True)
    with db:
        assert dict(db) == {b"a": b"old"}


def test_a_missing_log(path: str, caplog: pytest.LogCaptureFixture) -> None:
    os.remove(only(path, ".log"))
    before = traces(path)
    with caplog.at_level(logging.WARNING, "lsmkv"), DB(path, read_only=True) as db:
        assert dict(db) == some(0, 50)
    assert "missing" in caplog.text
    assert traces(path) == before


def test_makes_no_call_that_writes() -> None:
    env = FaultyEnv()
    with DB("/db", create_if_missing=True, env=env, **TINY) as db:
        fill(db, some(0, 60))
    mark = len(env.history)
    with DB("/db", read_only=True, env=env, **TINY) as db:
        assert dict(db) == some(0, 60)
        use(db)
    assert set(env.history[mark:]) <= CALLS
    for missing in ("/db2", "/"):
        with pytest.raises(lsmkv.NotFoundError):
            DB(missing, read_only=True, env=env)
    assert set(env.history[mark:]) <= CALLS


def test_every_call_failing_once() -> None:
    """A failing read is raised, not taken for the end of a log, and no file stays open."""
    env = FaultyEnv()
    with DB("/db", create_if_missing=True, env=env, **TINY) as db:
        fill(db, some(0, 40))
    for n in range(1, 1000):
        env.fail_at(n)
        failures = env.failures
        try:
            with DB("/db", read_only=True, env=env) as db:
                shown = dict(db)
        except lsmkv.IOError:
            assert env.failures > failures
            continue
        assert env.failures == failures
        assert shown == some(0, 40)
        break


def test_directories_of_leveldb(tmp_path: pathlib.Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    path = str(tmp_path / "db")
    with plyvel.DB(path, create_if_missing=True, write_buffer_size=1 << 16) as other:
        fill(other, some(0, 3000))
        other.delete(b"key0007")
        with DB(path, read_only=True) as db:  # beside its writer
            assert dict(db) == dict(other)
            use(db)
    before = traces(path)
    with DB(path, read_only=True) as db:
        assert len(list(db)) == 2999
    assert traces(path) == before


def test_writes_are_refused(path: str) -> None:
    before = traces(path)
    with DB(path, read_only=True) as db:
        calls: list[Callable[[], object]] = [
            lambda: db.put(b"k", b"v"),
            lambda: db.delete(b"k"),
            lambda: db.write(lsmkv.WriteBatch()),
            lambda: db.write_batch().write(),
            db.flush,
            db.sync,
            db.compact_range,
        ]
        for call in calls:
            with pytest.raises(lsmkv.ReadOnlyError):
                call()
        transaction = db.transaction()
        transaction.put(b"k", b"v")
        with pytest.raises(lsmkv.ReadOnlyError):
            transaction.commit()
        assert dict(db) == STATE
    assert traces(path) == before


@pytest.mark.parametrize("where", ["missing", "empty", ":memory:"])
def test_no_database(tmp_path: pathlib.Path, where: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(lsmkv.NotFoundError):
        DB(where if where == ":memory:" else tmp_path / where, read_only=True)
    assert [p.name for p in tmp_path.iterdir()] == ["empty"]
    assert not list((tmp_path / "empty").iterdir())


@pytest.mark.parametrize("option", ["create_if_missing", "error_if_exists"])
def test_options_about_writing_are_refused(path: str, option: str) -> None:
    with pytest.raises(ValueError, match="read_only"):
        DB(path, read_only=True, **{option: True})  # type: ignore[arg-type]


# Beside a writer


def replace_tables(path: str, writer: DB) -> None:
    """Write something, and let a compaction replace every table."""
    old = {name for name in os.listdir(path) if name.endswith(".ldb")}
    fill(writer, dict.fromkeys(some(20, 200), b"new"))
    writer.compact_range()
    assert not old & set(os.listdir(path))


def test_open_tables_stay_readable_when_they_are_removed(path: str) -> None:
    """Snapshots and iterators open the tables that they need, unless there are very many."""
    with DB(path, **TINY) as writer, DB(path, read_only=True) as view:
        assert dict(writer) == STATE
        snapshot, iterator, raw = view.snapshot(), view.iterator(reverse=True), view.raw_iterator()
        replace_tables(path, writer)
        assert dict(snapshot) == STATE
        assert [snapshot.get(key) for key in STATE] == list(STATE.values())
        assert list(iterator) == sorted(STATE.items(), reverse=True)
        raw.seek_to_first()
        assert raw.item() == min(STATE.items())


READS: dict[str, Callable[[DB], object]] = {
    "get": lambda db: db.get(b"key0050"),
    "in": lambda db: b"key0050" in db,
    "multi_get": lambda db: db.multi_get([b"key0001", b"key0050"]),
    "may_contain": lambda db: db.may_contain(b"key0050"),
    "explain": lambda db: db.explain(b"key0050").found,
    "iterator": lambda db: list(db.iterator(start=b"key0003")),
    "raw_iterator": lambda db: db.raw_iterator().seek_to_first(),
    "snapshot": lambda db: dict(db.snapshot()),
    "approximate_size": lambda db: db.approximate_size(b"", b"key0150") > 0,
    "written_keys": lambda db: db.written_keys(),
    "verify": lambda db: db.verify(),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_that_needs_a_removed_table_moves_the_view_forward(path: str, name: str) -> None:
    """It never answers for an old moment from newer tables: all of the view moves."""
    with DB(path, **TINY) as writer, DB(path, read_only=True) as view:
        replace_tables(path, writer)
        assert READS[name](view) == READS[name](writer)
        if name != "written_keys":  # which needs no table here
            with view.snapshot() as shown, writer.snapshot() as newest:
                assert shown.sequence == newest.sequence
        assert dict(view) == dict(writer)


def test_a_snapshot_with_too_many_tables_to_hold_says_that_one_is_gone(path: str) -> None:
    """It is not answered from the tables of a later moment."""
    with DB(path, **TINY) as writer, DB(path, read_only=True, max_open_files=20) as view:
        fill(writer, some(0, 300))
        writer.compact_range()
        view.refresh()
        assert len(view.tables()) > 5
        snapshot, iterator = view.snapshot(), view.iterator()
        fill(writer, dict.fromkeys(some(0, 300), b"new"))
        writer.compact_range()
        with pytest.raises(lsmkv.StaleViewError) as raised:
            snapshot.get(b"key0050")
        assert raised.value.path.startswith(path)
        with pytest.raises(lsmkv.StaleViewError):
            list(iterator)
        assert view.get(b"key0050") == writer.get(b"key0050")
        with pytest.raises(lsmkv.StaleViewError):
            dict(snapshot)


def test_a_table_that_is_really_missing_is_damage(path: str) -> None:
    with DB(path, read_only=True) as view:
        os.remove(max(os.path.join(path, name) for name in os.listdir(path) if ".ldb" in name))
        with pytest.raises(lsmkv.CorruptionError, match="the table is missing"):
            dict(view)
        (damage,) = view.verify()
        assert damage.reason == "the table is missing"
    with pytest.raises(lsmkv.CorruptionError, match="the table is missing"):
        DB(path, read_only=True)


def test_refresh_keeps_what_was_made_before(path: str) -> None:
    with DB(path, **TINY) as writer, DB(path, read_only=True) as view:
        snapshot, started = view.snapshot(), view.iterator()
        first = next(started)
        states = [dict(view)]
        snapshots = [snapshot]
        for turn in range(4):
            fill(writer, {b"key%04d" % n: b"turn %d" % turn for n in range(0, 90, 2)})
            writer.compact_range()
            view.refresh()
            states.append(dict(writer))
            snapshots.append(view.snapshot())
            assert dict(view) == states[-1]
        assert [first, *started] == sorted(states[0].items())
        for state, then in zip(states, snapshots, strict=True):
            assert dict(then) == state
            assert then.get(b"key0002") == state[b"key0002"]
            assert list(then.iterator(reverse=True)) == sorted(state.items(), reverse=True)
    for then in snapshots:
        with pytest.raises(lsmkv.ClosedError):
            then.get(b"key0002")
    with pytest.raises(lsmkv.ClosedError):
        list(view.iterator())
    with pytest.raises(lsmkv.ClosedError):
        view.refresh()


def test_refresh_of_a_writable_store_does_nothing(path: str) -> None:
    with DB(path) as db:
        db.put(b"k", b"v")
        db.refresh()
        assert db.get(b"k") == b"v"


def test_a_refresh_that_fails_leaves_the_view(path: str) -> None:
    with DB(path, read_only=True) as view:
        os.rename(os.path.join(path, "CURRENT"), os.path.join(path, "elsewhere"))
        with pytest.raises(lsmkv.Error):
            view.refresh()
        assert dict(view) == STATE
        os.rename(os.path.join(path, "elsewhere"), os.path.join(path, "CURRENT"))
        view.refresh()
        assert dict(view) == STATE


def test_refresh_opens_new_tables_only(path: str) -> None:
    with DB(path, seek_compaction=False) as writer, DB(path, read_only=True) as view:
        writer.put(b"zzz", b"1")
        writer.flush()
        dict(view)
        before = view.stats()
        view.refresh()
        dict(view)
        tables = [name for name in os.listdir(path) if name.endswith(".ldb")]
        assert 0 < (view.stats() - before).tables_opened < len(tables)


@pytest.mark.parametrize("moment", ["MANIFEST", ".log", ".ldb"])
@pytest.mark.parametrize("times", [1, 5])
def test_starts_again_when_files_are_removed(moment: str, times: int) -> None:
    """Before each file of a kind is opened, the writer replaces every file."""
    inner = MemoryEnv()
    with DB("/db", create_if_missing=True, env=inner, **TINY) as writer:
        fill(writer, some(0, 60))
        left = times
        states = [dict(writer)]

        def move(call: str, name: str) -> None:
            nonlocal left
            if call == "open" and moment in name and left > 0:
                left -= 1
                fill(writer, dict.fromkeys(some(0, 60), b"%d" % left))
                states.append(dict(writer))
                writer.compact_range()
                writer.put(b"n", b"%d" % left)
                states.append(dict(writer))

        with DB("/db", read_only=True, env=HookedEnv(move, inner)) as view:
            assert dict(view) in states
            assert left < times
            assert view.verify() == []
            left = 0
            view.refresh()
            assert dict(view) == states[-1]


def test_gives_up_after_many_attempts() -> None:
    inner = MemoryEnv()
    with DB("/db", create_if_missing=True, env=inner) as writer:
        opened = 0

        def move(call: str, name: str) -> None:
            nonlocal opened
            if call == "open" and name.endswith(".log"):
                opened += 1
                assert opened < 10_000
                writer.put(b"n", b"%d" % opened)
                writer.flush()

        writer.put(b"k", b"v")
        writer.flush()
        with pytest.raises(lsmkv.Error):
            DB("/db", read_only=True, env=HookedEnv(move, inner))
        assert opened >= 100
        assert writer.get(b"k") == b"v"


WRITER = """
import sys, threading, importlib
engine = importlib.import_module(sys.argv[1])
db = engine.DB(sys.argv[2], create_if_missing=True, write_buffer_size=1 << 20)
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
n = 0
while not stop.is_set():
    n += 1
    with db.write_batch(transaction=True) as batch:
        value = b"%d " % n + b"x" * 100
        batch.put(b"a:%02d" % (n % 40), value)
        batch.put(b"b:%02d" % (n % 40), value)
        batch.put(b"n", b"%d" % n)
    if n == 100:
        print("ready", flush=True)
    if n % 2000 == 0:
        db.compact_range()
db.close()
print(n, flush=True)
"""


@pytest.mark.untraced  # too slow a reader never catches up with the writer
@pytest.mark.parametrize("engine", ["lsmkv", "plyvel"])
def test_beside_a_process_that_writes(tmp_path: pathlib.Path, engine: str) -> None:
    if engine == "plyvel":
        pytest.importorskip("plyvel")
    path = str(tmp_path / "db")
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, engine, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdin is not None
    with writer:
        try:
            assert writer.stdout.readline() == "ready\n"
            newest = 100
            openings = 0
            while openings < 6 or newest == 100:  # the writer may not have had a turn yet
                openings += 1
                with DB(path, read_only=True) as db:
                    for turn in range(10):
                        if turn > 0:
                            db.refresh()
                        entries = dict(db)
                        count = int(entries.pop(b"n"))
                        assert count >= newest
                        newest = count
                        expected = {
                            b"%s:%02d" % (half, n % 40): b"%d " % n + b"x" * 100
                            for n in range(count - 39, count + 1)
                            for half in (b"a", b"b")
                        }
                        assert entries == expected
        finally:
            writer.stdin.close()
            last = writer.stdout.read()
    assert writer.returncode == 0
    assert newest <= int(last)


# Descriptors and processes


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors")
def test_close_closes_all_descriptors(path: str) -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    view = DB(path, read_only=True)
    iterator = view.iterator()
    next(iterator)
    tables = len([name for name in os.listdir(path) if name.endswith(".ldb")])
    others = 3  # the directory, the MANIFEST, and the log
    assert len(os.listdir("/proc/self/fd")) == before + tables + others
    with DB(path, **TINY) as writer:
        fill(writer, some(0, 100))
        writer.compact_range()
        for _ in range(3):
            view.refresh()
    view.close()
    del iterator
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
    for _ in range(3):
        with pytest.raises(lsmkv.NotFoundError):
            DB(path + "x", read_only=True)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_unpickled_store_is_opened_again(path: str) -> None:
    with DB(path, read_only=True, lru_cache_size=1 << 16) as db:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pickle.loads(pickle.dumps(db, protocol)) as again:
                assert again is not db
                assert dict(again) == STATE
                assert again.options.read_only
                assert again.options.block_cache.capacity == 1 << 16
        pool = multiprocessing.get_context("spawn").Pool(1)
        try:
            get = operator.methodcaller("get", b"key0050")
            assert pool.apply(get, (db,)) == STATE[b"key0050"]
        finally:
            pool.close()
            pool.join()


def test_a_writer_cannot_be_pickled(path: str) -> None:
    with DB(path) as db, pytest.raises(TypeError, match="read_only=True"):
        pickle.dumps(db)


class _GoingOn(MemoryDirectory):
    """Its writer goes over to the next log right after the older one was read."""

    is_over = False

    def open(self, name: str) -> MemoryRandomAccessFile:
        directory = self
        file = super().open(name)

        class Read(MemoryRandomAccessFile):
            def read(self, offset: int, length: int) -> bytes:
                data = file.read(offset, length)
                directory.go_over()
                return data

        if name != "000101.log":
            return file
        return Read(file.path, self._mutex, self._file(name))

    def go_over(self) -> None:
        if not self.is_over:
            self.is_over = True
            with self.append_to("000101.log") as older, self.append_to("000102.log") as newer:
                LogWriter(older, older.size()).add_record(encode_batch(2, [(b"b", b"2")]))
                LogWriter(newer).add_record(encode_batch(3, [(b"c", b"3")]))


@pytest.mark.parametrize("paranoid", [True, False])
def test_no_gap_where_the_writer_goes_over_to_the_next_log(
    paranoid: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It changes no name: the next log was there already."""
    env = MemoryEnv()
    DB("/db", create_if_missing=True, env=env).close()
    going_on: _GoingOn | None = None

    class Env(MemoryEnv):
        def open_directory(self, path: str, create: bool = False) -> MemoryDirectory:
            nonlocal going_on
            if going_on is None:
                folder = env.root.entries["db"]
                assert isinstance(folder, MemoryFolder)
                going_on = _GoingOn(path, self.mutex, folder)
                with going_on.create("000101.log") as older, going_on.create("000102.log"):
                    LogWriter(older).add_record(encode_batch(1, [(b"a", b"1")]))
            return going_on

    with DB("/db", read_only=True, env=Env(env.root), paranoid_checks=paranoid) as view:
        assert dict(view) == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert going_on is not None
    assert going_on.is_over
    assert caplog.records == []
