"""A checkpoint has the contents of its store, and is complete or absent."""

from __future__ import annotations

import errno
import itertools
import os
import pathlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hooked import HookedEnv, ignore
from stores import contents, fill, names, some

import lsmkv
from lsmkv import DB, MemoryEnv, WriteBatch
from lsmkv.engine.env.base import Directory
from lsmkv.testing.durable import NameModel, Tails
from lsmkv.testing.faulty import FaultyEnv

TINY: dict[str, Any] = {"write_buffer_size": 1024, "max_file_size": 1024, "block_size": 256}
State = dict[bytes, bytes]


def filled(db: DB) -> State:
    """Fill several levels, with deletions and with writes that only the log has."""
    fill(db, some(0, 60))
    db.compact_range()
    for key in some(0, 10):
        db.delete(key)
    db.flush()
    fill(db, some(50, 70))
    return dict(db.iterator())


@pytest.fixture
def db(path: str) -> Iterator[DB]:
    with DB(path, create_if_missing=True, **TINY) as db:
        yield db


def test_a_checkpoint_has_the_contents_of_the_store(db: DB, tmp_path: pathlib.Path) -> None:
    state = filled(db)
    target = tmp_path / "copy"
    db.checkpoint(target)
    fill(db, some(200, 300))
    with DB(target, error_if_exists=False) as copy:
        assert dict(copy) == state
        assert copy.verify() == []
        copy.check()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy", "db"]


def test_a_checkpoint_of_an_empty_store(db: DB, tmp_path: pathlib.Path) -> None:
    db.checkpoint(tmp_path / "copy")
    with DB(tmp_path / "copy") as copy:
        assert list(copy) == []


def test_a_checkpoint_continues_the_sequences(db: DB, tmp_path: pathlib.Path) -> None:
    """A deletion in the copy must hide entries of the tables, so its sequence must be higher."""
    filled(db)
    db.compact_range()
    with db.snapshot() as snapshot:
        sequence = snapshot.sequence
    db.checkpoint(tmp_path / "copy")
    with DB(tmp_path / "copy") as copy:
        with copy.snapshot() as snapshot:
            assert snapshot.sequence == sequence
        copy.delete(b"key0050")
        assert copy.get(b"key0050") is None
        copy.compact_range()
        assert copy.get(b"key0050") is None


def test_a_checkpoint_is_independent_of_its_store(
    db: DB, path: str, tmp_path: pathlib.Path
) -> None:
    state = filled(db)
    target = tmp_path / "copy"
    db.checkpoint(target)
    tables = [name for name in os.listdir(target) if name.endswith(".ldb")]
    logs = [name for name in os.listdir(target) if name.endswith(".log")]
    assert tables
    assert logs
    for name in tables:
        assert os.path.samefile(target / name, os.path.join(path, name))
    for name in logs:
        source = os.path.join(path, name)
        assert not os.path.exists(source) or not os.path.samefile(target / name, source)
    with DB(target, **TINY) as copy:
        fill(copy, some(500, 560))
        copy.compact_range()
        copy.delete(b"key0030")
        assert dict(db) == state
        db.delete(b"key0031")
        fill(db, some(700, 760))
        db.compact_range()
        assert dict(copy) == {
            key: value for key, value in (state | some(500, 560)).items() if key != b"key0030"
        }
    db.check()


@pytest.mark.parametrize("kind", ["store", "empty directory", "file", "dangling link"])
def test_an_existing_target_is_refused(db: DB, tmp_path: pathlib.Path, kind: str) -> None:
    state = filled(db)
    target = tmp_path / "copy"
    if kind == "store":
        DB(target, create_if_missing=True).close()
    elif kind == "empty directory":
        target.mkdir()
    elif kind == "file":
        target.write_bytes(b"mine")
    else:
        target.symlink_to(tmp_path / "nowhere")
    before = contents(target) if target.is_dir() else target.lstat()
    with pytest.raises(lsmkv.IOError) as caught:
        db.checkpoint(target)
    assert caught.value.errno == errno.EEXIST
    assert (contents(target) if target.is_dir() else target.lstat()) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy", "db"]
    assert dict(db) == state


def test_a_missing_parent_directory(db: DB, tmp_path: pathlib.Path) -> None:
    with pytest.raises(lsmkv.IOError):
        db.checkpoint(tmp_path / "no" / "copy")
    db.put(b"k", b"v")


def test_progress(db: DB, tmp_path: pathlib.Path) -> None:
    filled(db)
    seen: list[tuple[int, int, str]] = []
    db.checkpoint(
        tmp_path / "copy", progress=lambda done, total, what: seen.append((done, total, what))
    )
    tables = len([name for name in os.listdir(tmp_path / "copy") if name.endswith(".ldb")])
    assert [done for done, _, _ in seen] == list(range(1, tables + 1))
    assert {total for _, total, _ in seen} == {tables}


def test_an_exception_in_progress_leaves_no_file(db: DB, tmp_path: pathlib.Path) -> None:
    state = filled(db)

    def interrupt(done: int, total: int, phase: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        db.checkpoint(tmp_path / "copy", progress=interrupt)
    assert [p.name for p in tmp_path.iterdir()] == ["db"]
    assert dict(db) == state
    db.checkpoint(tmp_path / "copy")


def test_a_store_that_is_closed_meanwhile_says_so(tmp_path: pathlib.Path) -> None:
    db = DB(tmp_path / "db", create_if_missing=True, **TINY)
    for key, value in some(0, 100).items():
        db.put(key, value)
    db.compact_range()
    with pytest.raises(lsmkv.ClosedError):
        db.checkpoint(tmp_path / "copy", progress=lambda done, total, what: db.close())
    assert db.closed
    assert os.listdir(tmp_path) == ["db"]


def test_names_of_older_tables(db: DB, path: str, tmp_path: pathlib.Path) -> None:
    state = filled(db)
    db.close()
    for name in os.listdir(path):
        if name.endswith(".ldb"):
            os.rename(os.path.join(path, name), os.path.join(path, name[:-4] + ".sst"))
    with DB(path, **TINY) as again:
        again.checkpoint(tmp_path / "copy")
    assert any(name.endswith(".sst") for name in os.listdir(tmp_path / "copy"))
    with DB(tmp_path / "copy") as copy:
        assert dict(copy) == state


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP])
def test_copies_where_links_fail(code: int) -> None:
    env = FaultyEnv()
    with DB("/db", create_if_missing=True, env=env, **TINY) as db:
        state = filled(db)
        env.fail_at(1, OSError(code, "no links"), sticky=True, calls={"link"})
        db.checkpoint("/copy")
        assert env.failures > 0
        env.heal()
    with DB("/copy", env=env.power_cut()) as copy:
        assert dict(copy) == state
        assert copy.verify() == []


def test_another_failure_of_a_link_is_raised() -> None:
    env = FaultyEnv()
    with DB("/db", create_if_missing=True, env=env, **TINY) as db:
        filled(db)
        env.fail_at(1, OSError(errno.EIO, "broken"), calls={"link"})
        with pytest.raises(lsmkv.IOError, match="broken"):
            db.checkpoint("/copy")
    assert names(env) == ["db"]


def crash_points(sticky: bool) -> Iterator[tuple[FaultyEnv, DB, State, BaseException | None]]:
    """A checkpoint whose n-th call fails, for every n; the last one succeeds."""
    base = FaultyEnv()
    with DB("/db", create_if_missing=True, env=base, **TINY) as db:
        filled(db)
    image = base.kill()
    for n in itertools.count(1):
        env = image.kill()
        with DB("/db", env=env, **TINY, seek_compaction=False) as db:
            db.compact_range()
            db.put(b"unflushed", b"1")
            db.sync()
            state = dict(db)
            env.fail_at(n, sticky=sticky)
            failure: BaseException | None = None
            try:
                db.checkpoint("/copy")
            except lsmkv.Error as error:
                failure = error
            struck = env.failures > 0
            yield env, db, state, failure
            env.heal()
        if not struck:
            return


def test_every_call_failing_once() -> None:
    for env, db, state, failure in crash_points(sticky=False):
        env.heal()
        present = names(env)
        assert ("copy" in present) is (failure is None)
        assert present in (["db"], ["copy", "db"]), "a staging directory was left behind"
        db.put(b"more", b"2")
        db.flush()
        assert dict(db) == state | {b"more": b"2"}
        if failure is None:
            with DB("/copy", env=env) as copy:
                assert dict(copy) == state
        else:
            db.checkpoint("/copy")  # nothing stands in the way of another try


def test_every_moment_of_a_kill_and_a_power_cut() -> None:
    for env, db, state, failure in crash_points(sticky=True):
        env.heal()
        images = [env.kill()] + [
            env.power_cut(model, tails=tails) for model in NameModel for tails in Tails
        ]
        for image in images:
            with DB("/db", env=image) as source:
                assert dict(source) == state
            if "copy" in names(image):
                with DB("/copy", env=image) as copy:
                    assert dict(copy) == state
                    assert copy.verify() == []
            else:
                assert failure is not None, "an acknowledged checkpoint was lost"
        assert dict(db) == state


def test_files_left_by_a_dead_process_are_replaced(db: DB, tmp_path: pathlib.Path) -> None:
    state = filled(db)
    for number in range(8):
        stale = tmp_path / f"copy.checkpoint-{os.getpid()}-{number}"
        stale.mkdir()
        (stale / "000005.log").write_bytes(b"rubbish")
    db.checkpoint(tmp_path / "copy")
    with DB(tmp_path / "copy") as copy:
        assert dict(copy) == state


def test_a_flush_that_commits_meanwhile() -> None:
    """The flush removes a log whose writes the checkpoint's version does not have."""
    env = HookedEnv()
    db = DB("/db", create_if_missing=True, env=env)
    fill(db, some(0, 20))
    reached, proceed = threading.Event(), threading.Event()

    def hold_up(call: str, about: str) -> None:
        if call == "create" and about.endswith(".ldb"):
            reached.set()
            proceed.wait()

    env.before = hold_up
    flusher = threading.Thread(target=db.flush)
    flusher.start()
    reached.wait()
    db.put(b"later", b"1")
    main = threading.current_thread()

    def let_go(call: str, about: str) -> None:
        if call == "names" and threading.current_thread() is main:
            env.before = ignore
            proceed.set()
            flusher.join()

    env.before = let_go
    db.checkpoint("/copy")
    assert env.before is ignore, "the checkpoint looked at no names"
    state = dict(db)
    db.close()
    with DB("/copy", env=env) as copy:
        assert dict(copy) == state


@pytest.mark.parametrize("mapped", [False, True])
def test_a_write_whose_sync_has_failed_is_in_none(mapped: bool) -> None:
    """The log has it, but readers do not see it.  Reopening the store may bring it back."""
    env = FaultyEnv(mapped_logs=mapped)
    db = DB("/db", create_if_missing=True, env=env)
    db.put(b"k", b"old", sync=True)
    db.put(b"other", b"not synced")
    env.fail_at(1, calls={"sync"})
    with pytest.raises(lsmkv.IOError):
        db.put(b"k", b"new", sync=True)
    assert dict(db) == {b"k": b"old", b"other": b"not synced"}
    db.checkpoint("/copy")
    with DB("/copy", env=env) as copy:
        assert dict(copy) == dict(db)
    with pytest.raises(lsmkv.IOError, match="reopen the store"):
        db.close()


def test_two_checkpoints_at_once_to_one_target() -> None:
    """The second begins just before the first renames, and must not remove its files."""
    env = HookedEnv()
    db = DB("/db", create_if_missing=True, env=env, **TINY)
    state = filled(db)
    errors: list[BaseException] = []

    def second() -> None:
        try:
            db.checkpoint("/copy", progress=pause)
        except lsmkv.Error as error:
            errors.append(error)

    begun, finish = threading.Event(), threading.Event()

    def pause(done: int, total: int, phase: str) -> None:
        begun.set()
        finish.wait()

    thread = threading.Thread(target=second)

    def meanwhile(call: str, about: str) -> None:
        if call == "create" and about.endswith(".dbtmp"):
            env.before = ignore
            thread.start()
            begun.wait()

    env.before = meanwhile
    db.checkpoint("/copy")
    with DB("/copy", env=env, read_only=True) as copy:
        assert dict(copy) == state
    finish.set()
    thread.join()
    (error,) = errors
    assert isinstance(error, lsmkv.IOError)
    assert isinstance(error, FileExistsError)
    assert names(env) == ["copy", "db"]
    with DB("/copy", env=env) as copy:
        assert dict(copy) == state
    db.close()


def test_eight_threads_write_meanwhile(db: DB, tmp_path: pathlib.Path) -> None:
    """A copy has a prefix of each thread's batches, and every batch that had returned."""
    done = [0] * 8
    stop = threading.Event()

    def write(own: int) -> None:
        while not stop.is_set():
            number = b"%d" % (done[own] + 1)
            batch = WriteBatch()
            for name in (b"a", b"b"):
                batch.put(b"%s%d" % (name, own), number)
            batch.put(b"log%d:%05d" % (own, done[own] + 1), number)
            db.write(batch)
            done[own] += 1

    threads = [threading.Thread(target=write, args=(own,)) for own in range(8)]
    for thread in threads:
        thread.start()
    try:
        for at in range(6):
            before = list(done)
            db.checkpoint(tmp_path / f"copy{at}")
            after = list(done)
            with DB(tmp_path / f"copy{at}", read_only=True) as copy:
                for own in range(8):
                    count = int(copy.get(b"a%d" % own, b"0"))
                    assert copy.get(b"b%d" % own, b"0") == b"%d" % count
                    assert before[own] <= count <= after[own] + 1
                    entries = list(copy.iterator(prefix=b"log%d:" % own, include_key=False))
                    assert entries == [b"%d" % n for n in range(1, count + 1)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_leveldb_opens_it(db: DB, tmp_path: pathlib.Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    state = filled(db)
    db.checkpoint(tmp_path / "copy")
    copy = plyvel.DB(str(tmp_path / "copy"), paranoid_checks=True)
    assert dict(copy) == state
    copy.put(b"k", b"v")
    copy.close()
    assert b"k" not in db
    with DB(tmp_path / "copy") as again:
        assert dict(again) == state | {b"k": b"v"}


def test_a_checkpoint_of_a_checkpoint(db: DB, tmp_path: pathlib.Path) -> None:
    state = filled(db)
    db.checkpoint(tmp_path / "one")
    with DB(tmp_path / "one") as one:
        one.put(b"k", b"v")
        one.checkpoint(tmp_path / "two")
    with DB(tmp_path / "two") as two:
        assert dict(two) == state | {b"k": b"v"}


def test_a_checkpoint_of_a_closed_store(tmp_path: pathlib.Path) -> None:
    db = DB(":memory:")
    db.close()
    with pytest.raises(lsmkv.ClosedError):
        db.checkpoint(tmp_path / "copy")


def test_a_link_across_envs_raises_exdev() -> None:
    """A checkpoint copies files where this error says that they cannot be linked."""
    one, two = MemoryEnv(), MemoryEnv()
    source: Directory = one.open_directory("/a", create=True)
    with source.create("x"):
        pass
    with pytest.raises(OSError, match="cross-device") as caught:
        source.link("x", two.open_directory("/a", create=True))
    assert caught.value.errno == errno.EXDEV


# Of a store that is open for reading only


@pytest.mark.parametrize("flushed", [False, True])
def test_a_checkpoint_of_a_view_has_what_the_view_shows(
    db: DB, path: str, tmp_path: pathlib.Path, flushed: bool
) -> None:
    """Another process goes on writing to the store, and the view is not refreshed."""
    filled(db)
    if flushed:
        db.flush()
    with DB(path, read_only=True) as view:
        state = dict(view)
        db.put(b"later", b"1")
        view.checkpoint(tmp_path / "copy")
        assert dict(view) == state
    for _ in range(2):
        with DB(tmp_path / "copy") as copy:
            assert dict(copy) == state
            assert copy.verify() == []
            copy.put(b"mine", b"1")
            copy.delete(b"mine")
    assert db.get(b"later") == b"1"


def test_a_checkpoint_of_a_refreshed_view(db: DB, path: str, tmp_path: pathlib.Path) -> None:
    with DB(path, read_only=True) as view:
        for turn in range(4):
            db.put(b"turn", b"%d" % turn)
            if turn == 2:
                db.flush()
            view.refresh()
            view.checkpoint(tmp_path / f"copy{turn}")
            with DB(tmp_path / f"copy{turn}") as copy:
                assert dict(copy) == dict(db)


def test_a_checkpoint_moves_a_view_forward_whose_tables_are_gone(
    db: DB, path: str, tmp_path: pathlib.Path
) -> None:
    filled(db)
    db.flush()
    with DB(path, read_only=True) as view:
        filled(db)
        db.put(b"new", b"1")
        db.compact_range()
        view.checkpoint(tmp_path / "copy")
        assert view.get(b"new") == b"1"
    with DB(tmp_path / "copy") as copy:
        assert dict(copy) == dict(db)


def test_a_checkpoint_of_a_view_of_a_damaged_log_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db"
    with DB(path, create_if_missing=True) as db:
        for n in range(50):
            db.put(b"%02d" % n, bytes(100))
    (log,) = path.glob("*.log")
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    with pytest.warns(lsmkv.RecoveryWarning):
        view = DB(path, read_only=True)
    with view, pytest.raises(lsmkv.Error, match="log is damaged"):
        view.checkpoint(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
