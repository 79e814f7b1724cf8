"""What a process under Windows' rules (``tests/helpers/windows_rules.py``) runs.

``test_windows.py`` starts it.
"""

from __future__ import annotations

import errno
import importlib
import mmap
import os
import signal
import stat
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import IO

import pytest
import windows_rules
from threads import run_threads

import lsmkv
from lsmkv import DB, IOError, LocalEnv, LockedError, destroy_db, repair_db
from lsmkv.engine.env import windows, windows_lock
from lsmkv.engine.env.process import can_start
from lsmkv.engine.env.windows import WindowsDirectory
from lsmkv.shards.remote.disk_cache import DiskCache
from lsmkv.shards.remote.disk_page import page_key

RULES = str(Path(windows_rules.__file__).parent)
HOME = str(Path(lsmkv.__file__).parent.parent)


def start(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    """A process of its own under the same rules."""
    boot = f"import sys; sys.path[:0] = [{HOME!r}, {RULES!r}]\nimport windows_rules\n"
    command = [sys.executable, "-c", f"{boot}windows_rules.install()\n{script}", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def kill(process: subprocess.Popen[bytes]) -> None:
    windows_rules.real.kill(process.pid, 9)
    process.wait()


@contextmanager
def started(script: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """A process that has said that it is ready, and what it says after that."""
    with start(script, *arguments) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process, process.stdout


def open_directory(path: Path) -> WindowsDirectory:
    directory = LocalEnv().open_directory(str(path))
    assert isinstance(directory, WindowsDirectory)
    return directory


def test_no_processes_share_a_store(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="only Linux and macOS can share a store"):
        lsmkv.SharedDB(tmp_path / "store", create_if_missing=True)
    assert not (tmp_path / "store").exists()


@pytest.fixture
def directory(tmp_path: Path) -> WindowsDirectory:
    return open_directory(tmp_path)


def fill(db: DB, seed: int, count: int = 2000) -> dict[bytes, bytes]:
    rng = Random(seed)
    pairs = {b"%06d" % rng.randrange(10**6): rng.randbytes(100) for _ in range(count)}
    for key, value in pairs.items():
        db.put(key, value)
    return pairs


def tables(path: Path) -> set[str]:
    return {name for name in os.listdir(path) if name.endswith(".ldb")}


# The rules themselves


def test_the_rules_hold(tmp_path: Path) -> None:
    assert sys.platform == "win32"
    for name in ("pread", "sync", "fdatasync", "O_NOFOLLOW", "O_DIRECTORY", "fork", "fchmod"):
        assert not hasattr(os, name)
    assert not hasattr(signal, "pthread_sigmask")
    for name in ("fcntl", "resource", "termios"):
        with pytest.raises(ImportError):
            importlib.import_module(name)
    path = tmp_path / "file"
    path.write_bytes(b"content")
    for call in (
        os.unlink,
        lambda name: os.rename(name, f"{name}2"),
        lambda name: os.replace(name, f"{name}2"),
    ):
        with path.open("rb"), pytest.raises(PermissionError):
            call(str(path))
    (tmp_path / "other").write_bytes(b"")
    with path.open("rb"), pytest.raises(PermissionError):
        os.replace(tmp_path / "other", path)
    with pytest.raises(FileExistsError):
        os.rename(tmp_path / "other", path)
    with path.open("rb"), pytest.raises(PermissionError):
        os.rename(tmp_path, f"{tmp_path}2")
    os.unlink(path)


# Files


def test_a_file_is_written_cut_and_read(directory: WindowsDirectory) -> None:
    with directory.create("000001.log") as file:
        file.append(b"one\ntwo\r\n\x1a")
        assert file.raw_write(b"three") == 5
        file.truncate(9)
        file.append(b"four")
        file.sync()
        assert file.size() == 13
    with directory.append_to("000001.log") as file:
        file.append(b"!")
    with directory.open("000001.log") as read:
        assert (read.size, read.read(0, 100)) == (14, b"one\ntwo\r\nfour!")
        assert read.read(4, 3) == read.raw_read(3, 4) == b"two"
        assert read.read(20, 5) == b""
    with pytest.raises(OSError, match=r"000001\.log") as caught:
        read.read(0, 1)
    assert caught.value.errno == errno.EBADF
    with pytest.raises(FileExistsError):
        directory.create("000001.log")
    assert directory.names() == ["000001.log"]
    assert directory.exists("000001.LOG")
    assert not directory.exists("000002.log")
    assert directory.size("000001.log") == 14
    assert directory.modified("000001.log") > 0
    directory.sync()


def test_a_new_name_is_synced(
    directory: WindowsDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the file, Windows writes the journal, which has the name."""
    calls: list[str] = []
    replace, rename, fsync = os.replace, os.rename, os.fsync

    def note(name: str, call: Callable[..., None]) -> Callable[..., None]:
        def noted(*arguments: object) -> None:
            calls.append(name)
            call(*arguments)

        return noted

    directory.create("new").close()
    (tmp_path / "staged").mkdir()
    (tmp_path / "staged" / "CURRENT").touch()
    monkeypatch.setattr(windows.os, "replace", note("replace", replace))
    monkeypatch.setattr(windows.os, "rename", note("rename", rename))
    monkeypatch.setattr(windows.os, "fsync", note("sync", fsync))
    directory.rename("new", "CURRENT")
    assert calls == ["replace", "sync"]
    windows.rename_directory(str(tmp_path / "staged"), str(tmp_path / "checkpoint"))
    assert calls == ["replace", "sync", "rename", "sync"]


def test_short_reads_are_completed(
    directory: WindowsDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with directory.create("file") as file:
        file.append(bytes(range(100)))
    whole = os.read
    monkeypatch.setattr(os, "read", lambda fd, length: whole(fd, min(length, 7)))
    with directory.open("file") as read:
        assert read.read(10, 50) == bytes(range(10, 60))
        assert read.read(90, 50) == bytes(range(90, 100))


def test_threads_share_a_file(directory: WindowsDirectory) -> None:
    """A seek and its read belong together."""
    with directory.create("file") as file:
        file.append(b"".join(b"%08d" % number for number in range(10_000)))
    wrong: list[object] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with directory.open("file") as read:

        def look(seed: int) -> None:
            rng = Random(seed)
            for _ in range(3000):
                at = rng.randrange(10_000)
                data = read.read(at * 8, 8)
                if data != b"%08d" % at:
                    wrong.append((at, data))

        assert run_threads(*[partial(look, seed) for seed in range(4)]) == []
    sys.setswitchinterval(interval)
    assert wrong == []


@pytest.mark.parametrize("name", ["a:b", "con", "NUL.ldb", "Com1", "x.", "x ", "a\\b", "a?", "a/b"])
def test_names_of_no_files_are_refused(directory: WindowsDirectory, name: str) -> None:
    with pytest.raises(ValueError, match="not a plain file name"):
        directory.create(name)


def test_links_are_refused(directory: WindowsDirectory, tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "000001.ldb").symlink_to(tmp_path / "target")
    (tmp_path / "folder").mkdir()
    (tmp_path / "lost").symlink_to(tmp_path / "folder")
    for call in (directory.open, directory.append_to, directory.size):
        with pytest.raises(OSError, match="symbolic link") as caught:
            call("000001.ldb")
        assert caught.value.errno == errno.ELOOP
    with pytest.raises(FileExistsError):
        directory.create("000001.ldb")
    with pytest.raises(OSError, match="symbolic link"):
        directory.subdirectory("lost")
    with pytest.raises(IsADirectoryError):
        directory.open("folder")
    with pytest.raises(NotADirectoryError):
        directory.subdirectory("target")
    following = LocalEnv(follow_symlinks=True).open_directory(str(tmp_path))
    assert following.read_file("000001.ldb", 10) == b"x"


def test_a_link_that_takes_a_files_place_is_noticed(
    directory: WindowsDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the name and the opening."""
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "file").write_bytes(b"y")
    opened = os.open

    def swap(path: str, *arguments: int) -> int:
        (tmp_path / "file").unlink()
        (tmp_path / "file").symlink_to(tmp_path / "target")
        monkeypatch.undo()
        return opened(path, *arguments)

    monkeypatch.setattr(windows.os, "open", swap)
    with pytest.raises(OSError, match="symbolic link"):
        directory.open("file")


def test_a_junction_is_no_subdirectory(
    directory: WindowsDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lost").mkdir()
    plain = os.lstat(tmp_path / "lost")
    junction = types.SimpleNamespace(st_mode=plain.st_mode, st_reparse_tag=0xA0000003)
    assert stat.S_ISDIR(junction.st_mode)
    monkeypatch.setattr(windows.os, "lstat", lambda path: junction)
    with pytest.raises(OSError, match="symbolic link"):
        directory.subdirectory("lost")
    with pytest.raises(NotADirectoryError):
        LocalEnv().remove_directory(str(tmp_path / "lost"))


def test_a_closed_directory_answers_nothing(directory: WindowsDirectory) -> None:
    directory.close()
    directory.close()
    for call in (directory.names, directory.sync, lambda: directory.exists("x")):
        with pytest.raises(OSError, match=r"\[Errno 9\]"):
            call()


def test_a_working_directory_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory = LocalEnv().open_directory("store", create=True)
    monkeypatch.chdir("/")
    directory.create("file").close()
    assert os.listdir(tmp_path / "store") == ["file"]
    with pytest.raises(OSError, match="store"):
        directory.remove("other")


@pytest.mark.parametrize(
    ("winerror", "number"),
    [
        (1, errno.ENOTSUP),
        (50, errno.ENOTSUP),
        (17, errno.EXDEV),
        (1142, errno.EMLINK),
        (5, errno.EACCES),
    ],
)
def test_why_there_is_no_hard_link(
    directory: WindowsDirectory, monkeypatch: pytest.MonkeyPatch, winerror: int, number: int
) -> None:
    def refuse(old: str, new: str) -> None:
        raise windows_rules.SharingError.of(winerror)

    directory.create("file").close()
    target = directory.subdirectory("copy", create=True)
    monkeypatch.setattr(windows.os, "link", refuse)
    with pytest.raises(OSError, match="file") as caught:
        directory.link("file", target)
    assert caught.value.errno == number


# LOCK


def test_a_lock_has_one_owner_in_a_process(directory: WindowsDirectory, tmp_path: Path) -> None:
    assert directory.lock_holder("LOCK") is None
    lock = directory.lock("LOCK")
    with pytest.raises(LockedError) as caught:
        open_directory(tmp_path).lock("LOCK")
    assert caught.value.pid == os.getpid()
    assert directory.lock_holder("LOCK") == os.getpid()
    lock.close()
    lock.close()
    assert directory.size("LOCK") == 0
    assert directory.lock_holder("LOCK") is None
    again = directory.lock("LOCK")
    del again
    assert directory.lock_holder("LOCK") is None


HOLD = """
import os, sys
from lsmkv import LocalEnv
lock = LocalEnv().open_directory(sys.argv[1]).lock("LOCK")
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_lock_of_another_process(directory: WindowsDirectory, tmp_path: Path) -> None:
    with started(HOLD, str(tmp_path)) as (owner, _):
        with pytest.raises(LockedError) as caught:
            directory.lock("LOCK")
        assert caught.value.pid == owner.pid == directory.lock_holder("LOCK")
        kill(owner)
    directory.lock("LOCK").close()


def test_a_lock_of_leveldb(directory: WindowsDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """LevelDB shares LOCK with no writer."""
    directory.create("LOCK").close()
    opened = os.open

    def share(path: str, flags: int, *arguments: int) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise windows_rules.SharingError.of(32, path)
        return opened(path, flags, *arguments)

    monkeypatch.setattr(windows.os, "open", share)
    with pytest.raises(LockedError):
        directory.lock("LOCK")


def test_a_lock_that_cannot_be_taken_at_all(
    directory: WindowsDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int, mode: int, length: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(windows_lock.msvcrt, "locking", fail)
    with pytest.raises(OSError, match="Invalid") as caught:
        directory.lock("LOCK")
    assert not isinstance(caught.value, LockedError)
    monkeypatch.undo()
    directory.remove("LOCK")  # nobody has it open


def test_data_in_lock_is_not_overwritten(directory: WindowsDirectory, tmp_path: Path) -> None:
    (tmp_path / "LOCK").write_bytes(b"data of a user, which is longer than a process id")
    directory.lock("LOCK").close()
    assert (tmp_path / "LOCK").read_bytes().startswith(b"data of a user")


# A store


def test_a_store_lives(tmp_path: Path) -> None:
    path = tmp_path / "store"
    expected: dict[bytes, bytes] = {}
    for round_ in range(5):
        with DB(str(path), create_if_missing=True, write_buffer_size=64 << 10) as db:
            expected |= fill(db, round_)
            for key in list(expected)[::7]:
                db.delete(key)
                del expected[key]
            db.compact_range()
            assert dict(db) == expected
            db.verify()
    assert not {name for name in os.listdir(path) if name.endswith((".dbtmp", ".old.old"))}
    with DB(str(path), read_only=True) as db:
        assert dict(db) == expected
    destroy_db(str(path))
    assert os.listdir(tmp_path) == []


def test_logs_are_reused(tmp_path: Path) -> None:
    for number in range(3):
        with DB(str(tmp_path), create_if_missing=True, reuse_logs=True) as db:
            db.put(b"%d" % number, b"value")
    with DB(str(tmp_path), reuse_logs=True) as db:
        assert list(db) == [(b"%d" % number, b"value") for number in range(3)]
    assert len([name for name in os.listdir(tmp_path) if name.endswith(".log")]) == 1


def test_tables_of_an_iterator_are_removed_later(tmp_path: Path) -> None:
    with DB(str(tmp_path), create_if_missing=True) as db:
        before = fill(db, 1)
        db.compact_range()
        old = tables(tmp_path)
        iterator = db.iterator()
        next(iterator)
        db.put(b"500000", b"new")
        db.compact_range()
        assert old <= tables(tmp_path)
        assert len(list(iterator)) == len(before) - 1
        del iterator
        db.put(b"500001", b"new")
        db.compact_range()
        assert not old & tables(tmp_path)


READ = """
import sys
from lsmkv import DB
with DB(sys.argv[1], read_only=True) as db:
    iterator = db.iterator()
    count = len([next(iterator)])
    print("ready", flush=True)
    sys.stdin.readline()
    print(count + len(list(iterator)), len(list(db)), flush=True)
"""


def test_a_reader_beside_a_writer(tmp_path: Path) -> None:
    """It keeps the tables that it has open; the next opening removes them."""
    with DB(str(tmp_path), create_if_missing=True) as db:
        pairs = fill(db, 1)
        db.compact_range()
        old = tables(tmp_path)
        with started(READ, str(tmp_path)) as (reader, said):
            assert reader.stdin is not None
            for key in pairs:
                db.delete(key)
            db.compact_range()
            assert list(db) == []
            assert old & tables(tmp_path)
            reader.stdin.write(b"\n")
            reader.stdin.flush()
            assert said.readline() == b"%d %d\n" % (len(pairs), len(pairs))
    with DB(str(tmp_path)) as db:
        assert list(db) == []
        assert not old & tables(tmp_path)


def test_a_mapped_table_is_removed_later(tmp_path: Path) -> None:
    with DB(str(tmp_path), create_if_missing=True) as db:
        fill(db, 1)
        db.compact_range()
        (old,) = tables(tmp_path)
        with (tmp_path / old).open("rb") as file:
            view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        db.put(b"500000", b"y")
        db.compact_range()
        assert old in tables(tmp_path)
        view.close()
        db.put(b"500000", b"z")
        db.compact_range()
        assert old not in tables(tmp_path)


HOLD_CURRENT = """
import sys, time
with open(sys.argv[1] + "/CURRENT", "rb"):
    print("ready", flush=True)
    if sys.argv[2] == "briefly":
        time.sleep(0.3)
    else:
        sys.stdin.read()
"""


def test_current_is_replaced_once_its_reader_is_gone(tmp_path: Path) -> None:
    with DB(str(tmp_path), create_if_missing=True) as db:
        pairs = fill(db, 1)
    before = (tmp_path / "CURRENT").read_bytes()
    with started(HOLD_CURRENT, str(tmp_path), "briefly"), DB(str(tmp_path)) as db:
        assert dict(db) == pairs
    assert (tmp_path / "CURRENT").read_bytes() != before


def test_current_that_stays_open_fails_an_opening_and_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DB(str(tmp_path), create_if_missing=True) as db:
        pairs = fill(db, 1)
    monkeypatch.setattr(windows, "_PAUSES", (0.001,) * 3)
    holding = started(HOLD_CURRENT, str(tmp_path), "for long")
    with holding, pytest.raises(IOError, match="used by another process"):
        DB(str(tmp_path))
    with DB(str(tmp_path)) as db:
        assert dict(db) == pairs


def test_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DB(str(tmp_path / "store"), create_if_missing=True) as db:
        pairs = fill(db, 1)
        db.compact_range()
        iterator = db.iterator()
        next(iterator)  # a linked table is open
        db.checkpoint(str(tmp_path / "linked"))

        def refuse(old: str, new: str) -> None:
            raise windows_rules.SharingError.of(1)

        monkeypatch.setattr(windows.os, "link", refuse)
        db.checkpoint(str(tmp_path / "copied"))
        with pytest.raises(IOError, match="exists"):
            db.checkpoint(str(tmp_path / "copied"))
    for name, links in (("linked", 2), ("copied", 1)):
        path = tmp_path / name
        assert {os.stat(path / table).st_nlink for table in tables(path)} == {links}
        with DB(str(path)) as db:
            assert dict(db) == pairs
    assert sorted(os.listdir(tmp_path)) == ["copied", "linked", "store"]


def test_destroying_what_is_in_use_can_be_done_again(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with DB(str(path), create_if_missing=True) as db:
        fill(db, 1)
        db.compact_range()
    (table,) = tables(path)
    with (path / table).open("rb"), pytest.raises(IOError, match=table):
        destroy_db(str(path))
    assert (path / "CURRENT").exists()
    destroy_db(str(path))
    assert not path.exists()


def test_destroying_leaves_a_link_to_a_directory(tmp_path: Path) -> None:
    DB(str(tmp_path / "store"), create_if_missing=True).close()
    (tmp_path / "link").symlink_to(tmp_path / "store")
    destroy_db(str(tmp_path / "link"))
    assert sorted(os.listdir(tmp_path)) == ["link", "store"]
    assert os.listdir(tmp_path / "store") == []


def test_a_repair_beside_a_reader(tmp_path: Path) -> None:
    """The files that a reader has open are removed when the store is opened next."""
    path = tmp_path / "store"
    with DB(str(path), create_if_missing=True) as db:
        pairs = fill(db, 1)
        db.compact_range()
    (table,) = tables(path)
    (path / "CURRENT").unlink()
    with (path / table).open("rb"):
        repair_db(str(path))
    with DB(str(path)) as db:
        assert dict(db) == pairs


def test_an_ingest(tmp_path: Path) -> None:
    with lsmkv.TableWriter(str(tmp_path / "new.ldb")) as writer:
        for number in range(1000):
            writer.add(b"%06d" % number, b"new")
    with DB(str(tmp_path / "store"), create_if_missing=True) as db:
        fill(db, 1)
        snapshot = db.snapshot()
        db.ingest([str(tmp_path / "new.ldb")])
        assert db.get(b"000500") == b"new"
        assert snapshot.get(b"000500") != b"new"
    os.unlink(tmp_path / "new.ldb")


WRITE = """
import sys
from lsmkv import DB
db = DB(sys.argv[1], create_if_missing=True, write_buffer_size=64 << 10)
number = 0
while True:
    db.put(b"%08d" % number, b"v" * 100)
    print(number, flush=True)
    number += 1
"""


def test_a_killed_writer_loses_nothing(tmp_path: Path) -> None:
    acknowledged = -1
    for count in (100, 1500, 3000):
        with start(WRITE, str(tmp_path)) as writer:
            assert writer.stdout is not None
            for line in writer.stdout:
                acknowledged = max(acknowledged, int(line))
                if int(line) >= count:
                    break
            kill(writer)
            rest = [line for line in writer.stdout if line.endswith(b"\n")]
            acknowledged = max([acknowledged, *map(int, rest)])
        with DB(str(tmp_path)) as db:
            keys = list(db.iterator(include_value=False))
            assert len(keys) > acknowledged
            assert keys == [b"%08d" % number for number in range(len(keys))]
            db.verify()


def test_compaction_runs_in_a_thread(tmp_path: Path) -> None:
    assert not can_start()
    with DB(str(tmp_path), create_if_missing=True, background="process") as db:
        pairs = fill(db, 1, 5000)
        db.compact_range()
        assert dict(db) == pairs


# What else touches files or processes


def test_a_cache_of_pages(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    with closing(DiskCache(path, 1 << 20)) as cache, closing(DiskCache(path, 1 << 20)) as other:
        for number in range(100):
            (cache if number % 2 else other).put("object", number, b"%d\r\n" % number * 5000)
        held = next(page for page in path.rglob("??/*") if page.is_file())
        with held.open("rb"):
            for number in range(100, 200):
                cache.put("object", number, b"%d\n" % number * 5000)
        assert cache.evictions > 0
        assert cache.get("object", 199) == b"199\n" * 5000
        assert cache.puts_skipped == 0
        os.utime(cache._path_of(page_key("object", 199)), (1, 1))
        assert cache.get("object", 199) == b"199\n" * 5000
        cache.check()


def test_a_page_that_another_process_reads_is_not_replaced(tmp_path: Path) -> None:
    with closing(DiskCache(tmp_path, 1 << 20)) as cache:
        cache.put("object", 1, b"data")
        with Path(cache._path_of(page_key("object", 1))).open("rb"):
            cache.put("object", 1, b"data")
        assert (cache.puts, cache.puts_skipped) == (1, 1)
        cache.put("object", 2, b"data")
        assert cache.puts == 2
