"""lsmkv.engine.db.opening.open: paths, locks, missing directories, and options that change."""

from __future__ import annotations

import gc
import os
import pathlib
import warnings
from typing import Any

import pytest
from processes import python_without_warnings
from stores import ENTRIES, TINY, contents, data_files, files, files_at, fill

import lsmkv
from lsmkv import DB, MemoryEnv
from lsmkv.engine.env.base import Directory, RandomAccessFile
from lsmkv.engine.format.filenames import FileType


def test_path_types(tmp_path: pathlib.Path) -> None:
    for path in (str(tmp_path / "s"), tmp_path / "p", os.fsencode(tmp_path / "b")):
        with DB(path, create_if_missing=True) as db:
            db.put(b"k", b"v")
            assert db.path == os.fsdecode(path)
            assert repr(db) == f"<lsmkv.DB {os.fsdecode(path)!r}>"
        assert repr(db).endswith("(closed)>")
        with DB(path) as db:
            assert db.get(b"k") == b"v"


def test_in_memory() -> None:
    with DB(":memory:", create_if_missing=True) as one:
        with DB(":memory:", create_if_missing=True) as two:
            one.put(b"k", b"1")
            assert two.get(b"k") is None
        one.compact_range()
        assert one.get(b"k") == b"1"
    assert not os.path.exists(":memory:")


def test_options_may_change_between_openings(path: str) -> None:
    settings: list[dict[str, Any]] = [
        {"compression": None, "block_size": 64, "bloom_filter_bits": 0},
        {"compression": "snappy", "block_size": 1 << 20, "block_restart_interval": 1},
        {"compression": "zstd", "zstd_compression_level": 9, "max_open_files": 1},
        {"reuse_logs": True, "lru_cache_size": 0, "filter_layout": "both"},
        {"paranoid_checks": True, "max_file_size": 1, "write_buffer_size": 1},
    ]
    expected = {}
    for n, options in enumerate(settings):
        with DB(path, create_if_missing=True, **options) as db:
            assert dict(db) == expected
            for key in list(ENTRIES)[n::2]:
                db.put(key, expected.setdefault(key, b"%d" % n))
                expected[key] = b"%d" % n
                db.put(key, b"%d" % n)
            db.flush()
            db.check()
    with DB(path) as db:
        db.compact_range()
        assert dict(db) == expected


def test_reuse_logs(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        db.put(b"a", b"1")
    logs = files(path, FileType.LOG)
    with DB(path, reuse_logs=True) as db:
        assert files(path, FileType.LOG) == logs
        assert db.get(b"a") == b"1"
        db.put(b"b", b"2")
    with DB(path, reuse_logs=True) as db:
        assert files(path, FileType.LOG) == logs
        assert dict(db) == {b"a": b"1", b"b": b"2"}
        assert files_at(db) == [0] * 7
    with DB(path) as db:
        assert files(path, FileType.LOG).isdisjoint(logs)
        assert dict(db) == {b"a": b"1", b"b": b"2"}


def test_a_missing_database(tmp_path: pathlib.Path, path: str) -> None:
    with pytest.raises(lsmkv.NotFoundError, match="create_if_missing") as caught:
        DB(path)
    assert caught.value.filename == path
    assert isinstance(caught.value, FileNotFoundError)
    assert os.listdir(tmp_path) == []
    os.mkdir(path)
    with pytest.raises(lsmkv.NotFoundError):
        DB(path)
    assert os.listdir(path) == []
    pathlib.Path(path, "notes.txt").write_text("mine")
    with pytest.raises(lsmkv.NotFoundError):
        DB(path)
    assert os.listdir(path) == ["notes.txt"]


def test_a_missing_parent(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        DB(tmp_path / "no" / "db", create_if_missing=True)
    assert isinstance(caught.value, lsmkv.Error)
    assert "create_if_missing is false" not in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_path_that_is_no_directory(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"mine")
    for create in (False, True):
        with pytest.raises(lsmkv.IOError) as caught:
            DB(file, create_if_missing=create)
        assert caught.value.filename == str(file)
    assert file.read_bytes() == b"mine"
    with pytest.raises(TypeError):
        DB(5, create_if_missing=True)  # type: ignore[arg-type]


def test_error_if_exists(path: str) -> None:
    with DB(path, create_if_missing=True, error_if_exists=True) as db:
        fill(db)
    before = data_files(path)
    with pytest.raises(lsmkv.Error, match="error_if_exists"):
        DB(path, error_if_exists=True)
    assert data_files(path) == before
    with DB(path) as db:
        assert dict(db) == ENTRIES


def test_a_second_opening_in_the_same_process(db: DB) -> None:
    fill(db)
    before = contents(db.path)
    for attempt in (db.path, os.path.join(db.path, "..", "db")):
        with pytest.raises(lsmkv.LockedError) as caught:
            DB(attempt)
        assert caught.value.pid == os.getpid()
        assert isinstance(caught.value, BlockingIOError)
    assert contents(db.path) == before
    assert dict(db) == ENTRIES
    db.put(b"more", b"1")


def test_a_lock_held_by_another_process(db: DB) -> None:
    fill(db)
    before = contents(db.path)
    program = """
        import sys, lsmkv
        try:
            lsmkv.DB(sys.argv[1])
        except lsmkv.LockedError as error:
            print(error.pid, error, sep="|")
        try:
            lsmkv.destroy_db(sys.argv[1])
        except lsmkv.LockedError as error:
            print(error.pid)
    """
    result = python_without_warnings(program, db.path)
    assert result.stderr == ""
    opened, destroyed = result.stdout.splitlines()
    assert opened.startswith(f"{os.getpid()}|")
    assert f"held by process {os.getpid()}" in opened
    assert destroyed == str(os.getpid())
    assert contents(db.path) == before
    db.put(b"more", b"1")
    assert db.get(b"key0001") == ENTRIES[b"key0001"]


def test_a_lock_dies_with_its_holder(path: str) -> None:
    program = """
        import os, sys, lsmkv
        db = lsmkv.DB(sys.argv[1], create_if_missing=True)
        db.put(b"k", b"v")
        os._exit(7)
    """
    assert python_without_warnings(program, path).returncode == 7
    with DB(path) as db:
        assert dict(db) == {b"k": b"v"}


def test_a_failed_opening_leaves_no_warning(path: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(lsmkv.NotFoundError):
            DB(path)
        with pytest.raises(TypeError):
            DB(path, nonsense=1)
        gc.collect()


def test_an_interrupted_opening_gives_up_the_lock(path: str) -> None:
    DB(path, create_if_missing=True).close()

    class Interrupting(lsmkv.LocalEnv):
        def open_directory(self, path: str, create: bool = False) -> Any:
            directory: Any = super().open_directory(path, create)

            def interrupted(name: str) -> RandomAccessFile:
                raise KeyboardInterrupt

            directory.open = interrupted
            return directory

    with pytest.raises(KeyboardInterrupt):
        DB(path, env=Interrupting())
    DB(path).close()


def test_a_directory_that_moves_while_open(path: str) -> None:
    """The path is resolved once: the store follows its directory, not the name."""
    with DB(path, create_if_missing=True, **TINY) as db:
        fill(db)
        os.rename(path, path + "2")
        os.mkdir(path)
        db.put(b"more", b"1")
        db.compact_range()
        assert db.get(b"key0001") == ENTRIES[b"key0001"]
        assert os.listdir(path) == []
    with DB(path + "2") as db:
        assert dict(db) == {**ENTRIES, b"more": b"1"}


def test_the_directory_may_be_reached_through_a_symbolic_link(path: str) -> None:
    DB(path, create_if_missing=True).close()
    os.symlink(path, path + "-link")
    with DB(path + "-link") as db:
        db.put(b"k", b"v")
        with pytest.raises(lsmkv.LockedError):
            DB(path)
    with DB(path) as db:
        assert db.get(b"k") == b"v"


def test_an_env_with_only_the_abstract_methods_is_enough() -> None:
    """A custom file system only has to derive from Env."""

    class Strict(lsmkv.Env):
        def __init__(self) -> None:
            self.inner = MemoryEnv()

        def open_directory(self, path: str, create: bool = False) -> Directory:
            return self.inner.open_directory(path, create)

        def remove_directory(self, path: str) -> None:
            self.inner.remove_directory(path)

        def rename_directory(self, old: str, new: str) -> None:
            self.inner.rename_directory(old, new)

    with DB("somewhere", create_if_missing=True, env=Strict(), **TINY) as db:
        fill(db)
        db.compact_range()
        assert dict(db) == ENTRIES


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("damage", ["no CURRENT", "a bad CURRENT", "a missing table"])
def test_damage_is_raised_with_a_note_on_what_to_do(
    tmp_path: pathlib.Path, damage: str, read_only: bool
) -> None:
    store = tmp_path / "store"
    with DB(store, create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.flush()
    if damage == "no CURRENT":
        (store / "CURRENT").unlink()
    elif damage == "a bad CURRENT":
        (store / "CURRENT").write_bytes(b"?")
    else:
        manifest = next(store.glob("MANIFEST-*"))
        manifest.write_bytes(manifest.read_bytes()[:-3])
        next(store.glob("*.ldb")).unlink()
    with pytest.raises(lsmkv.CorruptionError) as caught:
        DB(store, read_only=read_only)
    (note,) = caught.value.__notes__
    assert f"lsmkv rescue {store}" in note
    assert "rescue" not in str(caught.value)  # which programs read


def test_a_store_that_is_not_on_disk_has_no_note() -> None:
    env = MemoryEnv()
    DB("store", create_if_missing=True, env=env).close()
    with env.open_directory("store") as directory:
        directory.remove("CURRENT")
        with directory.create("CURRENT") as file:
            file.append(b"?")
    with pytest.raises(lsmkv.CorruptionError) as caught:
        DB("store", env=env)
    assert not hasattr(caught.value, "__notes__")
