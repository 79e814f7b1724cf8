"""What is special about objects in a directory; the rest is in the contract's tests."""

from __future__ import annotations

import errno
import itertools
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.env.memory import MemoryDirectory, MemoryEnv, MemoryWritableFile
from lsmkv.shards.remote.objects import local
from lsmkv.shards.remote.objects.base import ObjectStore
from lsmkv.shards.remote.objects.local import LocalObjects
from lsmkv.shards.remote.objects.open_files import MOST_OPEN
from lsmkv.testing.durable import NameModel, Tails
from lsmkv.testing.faulty import FaultyEnv

OLD, NEW = b"old" * 3000, b"new!" * 2500

Write = Callable[[ObjectStore], None]


def put(store: ObjectStore) -> None:
    store.put("a/b/x", NEW)


def put_if_absent(store: ObjectStore) -> None:
    store.put_if_absent("a/b/x", NEW)


every_write = pytest.mark.parametrize("write", [put, put_if_absent])


def files(env: FaultyEnv, path: str = "/place") -> list[str]:
    """All files below a directory, temporary ones included."""
    found: list[str] = []
    with env.open_directory(path) as directory:
        for name in directory.names():
            try:
                directory.size(name)
                found.append(f"{path}/{name}")
            except IsADirectoryError:
                found += files(env, f"{path}/{name}")
    return found


def content(env: FaultyEnv) -> bytes | None:
    """What the object is now; None if it is not there."""
    with LocalObjects(env, "/place", create=True) as store:
        listed = store.list("")
        try:
            data = store.get("a/b/x")
        except FileNotFoundError:
            assert listed == []
            return None
        assert [(found.name, found.size) for found in listed] == [("a/b/x", len(data))]
        return data


def failure_of(call: Callable[[], None]) -> OSError | None:
    try:
        call()
    except OSError as error:
        return error
    return None


def prepared(old: bool) -> tuple[FaultyEnv, LocalObjects]:
    env = FaultyEnv()
    store = LocalObjects(env, "/place", create=True)
    if old:
        store.put("a/b/x", OLD)
    return env, store


def calls_of(write: Write, old: bool) -> int:
    """How many calls of the system it makes."""
    env, store = prepared(old)
    before = env.calls
    write(store)
    return env.calls - before


@every_write
def test_no_failure_leaves_part_of_an_object(write: Write) -> None:
    old = write is put
    calls = calls_of(write, old)
    assert calls > 5
    for n, short in itertools.product(range(1, calls + 1), (False, True)):
        env, store = prepared(old)
        env.fail_at(n, OSError(errno.ENOSPC, "disk full"), short=short)
        error = failure_of(lambda store=store: write(store))  # type: ignore[misc]
        if error is None:
            assert content(env) == NEW
        else:
            assert (error.errno, error.filename) == (errno.ENOSPC, "/place/a/b/x")
            assert content(env) in (OLD if old else None, NEW)
        if env.struck[0][0] not in ("remove", "remove_directory"):
            assert files(env) in ([], ["/place/a/b/x"])
        env.heal()
        if content(env) is None or old:  # it can be written now, and then it is there
            write(store)
        assert content(env) == NEW


@every_write
def test_what_a_power_cut_leaves_is_whole(write: Write) -> None:
    old = write is put
    calls = calls_of(write, old)
    for n, names, tails in itertools.product(range(1, calls + 1), NameModel, Tails):
        env, store = prepared(old)
        env.fail_at(n, sticky=True)
        with pytest.raises(OSError, match="error"):
            write(store)
        left = env.power_cut(names, random.Random(n), tails=tails)
        assert content(left) in (OLD if old else None, NEW)


@every_write
def test_what_was_written_outlives_a_power_cut(write: Write) -> None:
    env, store = prepared(write is put)
    write(store)
    for names, tails in itertools.product(NameModel, Tails):
        assert content(env.power_cut(names, tails=tails)) == NEW


def test_what_is_found_taken_outlives_a_power_cut() -> None:
    """Although the one who put it failed to make its name durable."""
    clean, untouched = prepared(False)
    before = len(clean.history)
    put_if_absent(untouched)
    last = len(clean.history) - clean.history[::-1].index("dir_sync") - before
    env, store = prepared(False)
    env.fail_at(last)
    with pytest.raises(OSError, match="error"):
        put_if_absent(store)
    assert env.struck[0][0] == "dir_sync"
    assert (content(env), content(env.power_cut())) == (NEW, None)
    with pytest.raises(FileExistsError):
        put_if_absent(store)
    assert content(env.power_cut()) == NEW


def test_what_was_deleted_stays_so_after_a_power_cut() -> None:
    env, store = prepared(True)
    store.put("a/other", b"")
    store.delete(["a/b/x"])
    left = env.power_cut()
    with LocalObjects(left, "/place") as store:
        assert [found.name for found in store.list("")] == ["a/other"]


@every_write
def test_a_ctrl_c_leaves_whole_objects(
    write: Write,
    interrupted_at: Callable[[ModuleType, int, Callable[[], object]], bool],
    signals_are_heard: None,
) -> None:
    for line in itertools.count(1):
        env, store = prepared(write is put)
        interrupted = interrupted_at(local, line, lambda store=store: write(store))  # type: ignore[misc]
        assert content(env) in (OLD if write is put else None, NEW)
        if not interrupted:
            assert content(env) == NEW
            assert line > 20
            return


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS])
def test_put_if_absent_needs_hard_links(code: int) -> None:
    env, store = prepared(False)
    env.fail_at(1, OSError(code, "no"), sticky=True, calls={"link"})
    with pytest.raises(OSError, match="no hard links, so no object") as caught:
        put_if_absent(store)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOTSUP, "/place/a/b/x")
    assert files(env) == []
    put(store)
    assert content(env) == NEW


def test_a_taken_name_costs_no_write() -> None:
    env, store = prepared(True)
    before = env.history.count("append")
    with pytest.raises(FileExistsError):
        put_if_absent(store)
    assert env.history.count("append") == before


def test_the_directory_is_made_with_those_above_it(tmp_path: Path) -> None:
    place = tmp_path / "new" / "one"
    for path in (place, place.parent):
        with pytest.raises(FileNotFoundError):
            LocalObjects(LocalEnv(), str(path))
    with LocalObjects(LocalEnv(), f"{place}/", create=True) as store:
        assert store.url == str(place)
        store.put("x", b"1")
    with LocalObjects(LocalEnv(), str(place)) as store:
        assert store.get("x") == b"1"
    assert (place / "x").read_bytes() == b"1"


def test_deleting_removes_directories_that_became_empty(tmp_path: Path) -> None:
    with LocalObjects(LocalEnv(), str(tmp_path)) as store:
        for name in ("a/b/c/1", "a/b/c/2", "a/2", "d/e/3"):
            store.put(name, b"")
        store.delete(["a/b/c/1", "d/e/3"])
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["2", "2", "a", "b", "c"]
        store.delete(["a/b/c/2", "a/b/nix/5"])
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["2", "a"]
        store.delete(["a/2"])
        assert list(tmp_path.iterdir()) == []
        store.put("a/b/c/1", b"back")
        assert store.get("a/b/c/1") == b"back"


@pytest.mark.parametrize("disk", [False, True])
@pytest.mark.usefixtures("quick_switches")
def test_writers_meet_directories_that_are_being_removed(tmp_path: Path, disk: bool) -> None:
    env = LocalEnv() if disk else MemoryEnv()
    path = str(tmp_path) if disk else "place"
    LocalObjects(env, path, create=True).close()

    def work(who: int) -> None:
        with LocalObjects(env, path) as store:
            for turn in range(30):
                name = f"a/b/{who}-{turn}"
                (store.put if turn % 2 else store.put_if_absent)(name, b"%d" % who)
                assert store.get(name) == b"%d" % who
                store.delete([name])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    with LocalObjects(env, path) as store:
        assert store.list("") == []


def test_what_killed_writers_left_is_swept(tmp_path: Path) -> None:
    left = {"a/b/.put-1": 1.0, ".put-d/x": 2.0, "a/.put-2": 9.0}
    with LocalObjects(LocalEnv(), str(tmp_path)) as store:
        store.put("a/x", OLD)
        for name, modified in left.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(b"some")
            os.utime(tmp_path / name, (modified, modified))
        os.utime(tmp_path / "a/x", (1.0, 1.0))
        store.sweep(5.0)
        there = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert sorted(there) == [tmp_path / "a/.put-2", tmp_path / "a/x"]
        assert not (tmp_path / ".put-d").exists()
        assert store.get("a/x") == OLD


@pytest.mark.parametrize("name", [".put-", ".put-1", "a/.put-x", ".put-d/a"])
def test_temporary_names_are_not_for_objects(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"left by a process that was killed")
    with LocalObjects(LocalEnv(), str(tmp_path)) as store:
        assert store.list("") == []
        for call in (
            store.get,
            lambda name: store.put(name, b""),
            lambda name: store.delete([name]),
        ):
            with pytest.raises(ValueError, match="temporary name"):
                call(name)


def test_only_regular_files_are_objects(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("x")
    (tmp_path / "directory").symlink_to("a")
    os.mkfifo(tmp_path / "fifo")
    with LocalObjects(LocalEnv(), str(tmp_path)) as store:
        store.put("x", b"1")
        store.put("a/y", b"2")
        assert [found.name for found in store.list("")] == ["a/y", "x"]
        for name in ("link", "directory/y", "directory"):
            with pytest.raises(FileNotFoundError):
                store.get(name)
        with pytest.raises(OSError, match="in the way") as caught:
            store.put("directory/z", b"")
        assert caught.value.errno == errno.EINVAL
        os.utime(tmp_path / "x", (5, 1234.5))
        assert store.list("")[-1].modified == 1234.5


def test_a_name_does_not_go_on_behind_an_object(tmp_path: Path) -> None:
    for env, path in ((LocalEnv(), str(tmp_path)), (MemoryEnv(), "place")):
        with LocalObjects(env, path, create=True) as store:
            store.put("a/b", b"x")
            for write in (store.put, store.put_if_absent):
                with pytest.raises(OSError, match="in the way") as caught:
                    write("a/b/c", b"y")
                assert (caught.value.errno, caught.value.filename) == (
                    errno.EINVAL,
                    store.url_of("a/b/c"),
                )
            with pytest.raises(OSError, match="in the way"):
                store.put("a", b"z")
            assert store.get("a/b") == b"x"
            assert [found.name for found in store.list("")] == ["a/b"]


def test_ranges_of_one_object_open_its_file_once() -> None:
    env, store = prepared(True)
    before = env.history.count("open")
    for offset in range(0, len(OLD), 100):
        assert store.get_range("a/b/x", offset, 100) == OLD[offset : offset + 100]
    assert env.history.count("open") - before == 1
    env.fail_at(1, sticky=True, calls={"open", "subdirectory"})
    assert store.get_range("a/b/x", 3, 3) == b"old"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors in /proc")
def test_few_files_stay_open(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    (tmp_path / "a").mkdir()
    for at in range(3 * MOST_OPEN):
        (tmp_path / f"a/{at}").write_bytes(b"%d" % at)
    before = descriptors()
    with LocalObjects(LocalEnv(), str(tmp_path)) as store:
        for at in range(3 * MOST_OPEN):
            assert store.get_range(f"a/{at}", 0, 10) == b"%d" % at
        assert descriptors() - before == MOST_OPEN + 1
        store.delete(f"a/{at}" for at in range(3 * MOST_OPEN))
        assert descriptors() - before == 1
        store.put("x", b"1")
        store.get_range("x", 0, 1)
    assert descriptors() == before


@pytest.mark.usefixtures("quick_switches")
def test_a_replaced_object_is_never_read_from_the_old_file() -> None:
    env = MemoryEnv()
    with LocalObjects(env, "place", create=True) as store:
        store.put("x", b"0000000")
        latest, done = 0, threading.Event()

        def read() -> None:
            while not done.is_set():
                least = latest
                assert int(store.get_range("x", 0, 7)) >= least

        with ThreadPoolExecutor(2) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            for turn in range(1, 500):
                store.put("x", b"%07d" % turn)
                latest = turn
            done.set()
            for reader in readers:
                reader.result()


@pytest.mark.parametrize("durable", [True, False])
def test_what_need_not_be_durable_does_not_wait_for_the_disk(
    durable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    for kind in (MemoryWritableFile, MemoryDirectory):
        monkeypatch.setattr(kind, "sync", lambda self: synced.append(self.path))
    with LocalObjects(MemoryEnv(), "/set", create=True, durable=durable) as objects:
        objects.put("a/b", b"content")
        assert objects.get("a/b") == b"content"
    assert len(synced) == (2 if durable else 0)
