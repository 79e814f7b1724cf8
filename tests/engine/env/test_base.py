"""What every Env promises, asked of each implementation alike."""

from __future__ import annotations

import errno
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lsmkv.engine.env.base import Directory, Env
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.errors import LockedError
from lsmkv.testing.faulty import FaultyEnv

ENVS: dict[str, Callable[[], Env]] = {
    "local": LocalEnv,
    "local-posix-locks": lambda: LocalEnv(ofd_locks=False),
    "memory": MemoryEnv,
    "faulty": FaultyEnv,
}


@pytest.fixture(params=list(ENVS))
def env(request: pytest.FixtureRequest) -> Env:
    return ENVS[request.param]()


@pytest.fixture
def base(env: Env, tmp_path: Path) -> str:
    """The path of a directory that exists in ``env``."""
    if isinstance(env, LocalEnv):
        return str(tmp_path)
    env.open_directory("/base", create=True).close()
    return "/base"


@pytest.fixture
def directory(env: Env, base: str) -> Iterator[Directory]:
    with env.open_directory(os.path.join(base, "store"), create=True) as directory:
        yield directory


def put(directory: Directory, name: str, data: bytes) -> None:
    with directory.create(name) as file:
        file.append(data)


def get(directory: Directory, name: str) -> bytes:
    return directory.read_file(name, 1 << 20)


# Directories


def test_a_missing_directory_is_made_only_with_create(env: Env, base: str) -> None:
    path = os.path.join(base, "absent")
    with pytest.raises(FileNotFoundError) as caught:
        env.open_directory(path)
    assert caught.value.errno == errno.ENOENT
    assert caught.value.filename == path


def test_create_makes_one_level_only(env: Env, base: str) -> None:
    with pytest.raises(FileNotFoundError):
        env.open_directory(os.path.join(base, "a", "b"), create=True)
    env.open_directory(os.path.join(base, "a"), create=True).close()
    env.open_directory(os.path.join(base, "a", "b"), create=True).close()
    env.open_directory(os.path.join(base, "a", "b", ""), create=True).close()


def test_two_handles_see_one_directory(env: Env, base: str, directory: Directory) -> None:
    put(directory, "x", b"1")
    with env.open_directory(directory.path) as again:
        assert get(again, "x") == b"1"
        assert again.path == directory.path


def test_a_file_cannot_be_opened_as_a_directory(env: Env, directory: Directory) -> None:
    put(directory, "x", b"")
    with pytest.raises(NotADirectoryError):
        env.open_directory(os.path.join(directory.path, "x"), create=True)
    with pytest.raises(NotADirectoryError):
        directory.subdirectory("x", create=True)


def test_remove_directory_refuses_a_directory_with_files(env: Env, directory: Directory) -> None:
    put(directory, "x", b"")
    with pytest.raises(OSError, match=r"store") as caught:
        env.remove_directory(directory.path)
    assert caught.value.errno == errno.ENOTEMPTY
    directory.remove("x")
    env.remove_directory(directory.path)
    with pytest.raises(FileNotFoundError):
        env.open_directory(directory.path)
    with pytest.raises(FileNotFoundError):
        env.remove_directory(directory.path)
    with pytest.raises(FileNotFoundError):
        directory.create("y")


def test_subdirectory(env: Env, directory: Directory) -> None:
    with pytest.raises(FileNotFoundError):
        directory.subdirectory("lost")
    with directory.subdirectory("lost", create=True) as lost:
        put(lost, "x", b"1")
    with directory.subdirectory("lost", create=True) as lost:
        assert lost.names() == ["x"]
        assert lost.path == os.path.join(directory.path, "lost")
    with env.open_directory(os.path.join(directory.path, "lost")) as lost:
        assert get(lost, "x") == b"1"
    assert directory.names() == ["lost"]
    with pytest.raises(OSError, match="lost"):
        directory.open("lost")
    with pytest.raises(OSError, match="lost"):
        directory.size("lost")
    with pytest.raises(OSError, match="lost"):
        directory.append_to("lost")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a/", "../a", "a\0b"])
def test_names_with_several_path_components_are_refused(directory: Directory, name: str) -> None:
    calls: list[Callable[[str], object]] = [
        directory.exists,
        directory.size,
        directory.open,
        directory.create,
        directory.append_to,
        directory.remove,
        directory.lock,
        directory.subdirectory,
        lambda name: directory.rename(name, "x"),
        lambda name: directory.rename("x", name),
    ]
    put(directory, "x", b"")
    for call in calls:
        with pytest.raises(ValueError, match="plain file name"):
            call(name)
    assert directory.names() == ["x"]


def test_names_exists_size_remove(directory: Directory) -> None:
    assert directory.names() == []
    put(directory, "x", b"123")
    put(directory, "y", b"")
    assert sorted(directory.names()) == ["x", "y"]
    assert sorted(directory.names()) == ["x", "y"]  # the first listing left no trace
    assert directory.exists("x")
    assert not directory.exists("z")
    assert directory.size("x") == 3
    assert directory.size("y") == 0
    directory.remove("x")
    assert directory.names() == ["y"]
    directory.sync()


@pytest.mark.parametrize("call", ["size", "open", "append_to", "remove"])
def test_a_missing_file_is_named_with_its_directory(directory: Directory, call: str) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        getattr(directory, call)("absent")
    assert caught.value.errno == errno.ENOENT
    assert caught.value.filename == os.path.join(directory.path, "absent")


def test_rename_replaces(directory: Directory) -> None:
    put(directory, "x", b"new")
    put(directory, "y", b"old")
    directory.rename("x", "y")
    assert directory.names() == ["y"]
    assert get(directory, "y") == b"new"
    directory.rename("y", "y")
    assert get(directory, "y") == b"new"
    with pytest.raises(FileNotFoundError):
        directory.rename("x", "z")
    directory.subdirectory("d", create=True).close()
    with pytest.raises(OSError, match="y"):
        directory.rename("y", "d")


def test_a_link_is_a_second_name(env: Env, base: str, directory: Directory) -> None:
    put(directory, "x", b"1")
    with env.open_directory(os.path.join(base, "other"), create=True) as other:
        directory.link("x", other)
        assert get(other, "x") == b"1"
        with pytest.raises(FileExistsError):
            directory.link("x", other)
        with pytest.raises(FileNotFoundError):
            directory.link("missing", other)
        directory.remove("x")
        assert get(other, "x") == b"1"
        assert directory.names() == []


def test_nothing_gets_a_name_in_a_removed_directory(
    env: Env, base: str, directory: Directory
) -> None:
    put(directory, "x", b"1")
    path = os.path.join(base, "gone")
    with env.open_directory(path, create=True) as gone:
        env.remove_directory(path)
        for call in (
            lambda: gone.create("y"),
            lambda: directory.link("x", gone),
            lambda: gone.subdirectory("z", create=True),
        ):
            with pytest.raises(FileNotFoundError):
                call()
        assert gone.names() == []


def test_a_file_says_when_it_was_written(directory: Directory) -> None:
    before = time.time()
    put(directory, "x", b"1")
    assert before - 1 <= directory.modified("x") <= time.time() + 1


def test_rename_directory(env: Env, base: str, directory: Directory) -> None:
    old, new, taken = (os.path.join(base, name) for name in ("store", "new", "taken"))
    put(directory, "x", b"1")
    env.open_directory(taken, create=True).close()
    with pytest.raises(FileExistsError):
        env.rename_directory(old, taken)
    env.rename_directory(old, new)
    with env.open_directory(new) as moved:
        assert get(moved, "x") == b"1"
    assert get(directory, "x") == b"1"  # a handle stays with its directory
    with pytest.raises(FileNotFoundError):
        env.open_directory(old)
    with pytest.raises(FileNotFoundError):
        env.rename_directory(old, new + "er")


def test_a_closed_directory_is_closed(directory: Directory) -> None:
    put(directory, "x", b"")
    directory.close()
    directory.close()
    calls: list[Callable[[], object]] = [
        directory.names,
        directory.sync,
        lambda: directory.exists("x"),
        lambda: directory.size("x"),
        lambda: directory.open("x"),
        lambda: directory.create("y"),
        lambda: directory.append_to("x"),
        lambda: directory.rename("x", "y"),
        lambda: directory.remove("x"),
        lambda: directory.lock("LOCK"),
        lambda: directory.subdirectory("d", create=True),
    ]
    for call in calls:
        with pytest.raises(OSError, match="Bad file descriptor") as caught:
            call()
        assert caught.value.errno == errno.EBADF
        assert str(caught.value.filename).startswith(directory.path)


# Files


def test_create_refuses_a_name_that_is_taken(directory: Directory) -> None:
    put(directory, "x", b"kept")
    with pytest.raises(FileExistsError) as caught:
        directory.create("x")
    assert caught.value.filename == os.path.join(directory.path, "x")
    assert get(directory, "x") == b"kept"
    directory.subdirectory("d", create=True).close()
    with pytest.raises(FileExistsError):
        directory.create("d")


def test_reads_by_position(directory: Directory) -> None:
    data = bytes(range(256)) * 40
    put(directory, "x", data)
    with directory.open("x") as file:
        assert file.path == os.path.join(directory.path, "x")
        assert file.size == len(data)
        assert file.read(0, len(data)) == data
        assert file.read(300, 5) == data[300:305]
        assert file.read(len(data) - 3, 3) == data[-3:]
        assert file.read(len(data) - 3, 100) == data[-3:]
        assert file.read(len(data), 1) == b""
        assert file.read(1 << 40, 1) == b""
        assert file.read(5, 0) == b""
        assert file.read(0, 1 << 60) == data  # asks for no memory beyond the file's length
        with pytest.raises(OSError, match="x"):
            file.read(-1, 2)
        with pytest.raises(OSError, match="x"):
            file.read(0, -1)


def test_reads_what_was_written_after_opening(directory: Directory) -> None:
    with directory.create("x") as writer:
        writer.append(b"ab")
        with directory.open("x") as reader:
            assert reader.read(0, 10) == b"ab"
            writer.append(b"cd")
            assert reader.size == 2
            assert reader.read(0, 10) == b"abcd"
            assert reader.read(1, 2) == b"bc"


def test_append_and_append_to(directory: Directory) -> None:
    with directory.create("x") as file:
        assert file.size() == 0
        file.append(b"ab")
        file.append(b"")
        file.append(b"c")
        assert file.size() == 3
        file.sync()
        file.sync()
    with directory.append_to("x") as file:
        assert file.size() == 3
        file.append(b"d")
        assert file.size() == 4
        assert file.path == os.path.join(directory.path, "x")
    assert get(directory, "x") == b"abcd"


def test_a_raw_write_goes_to_the_end_until_the_file_is_closed(directory: Directory) -> None:
    with directory.create("x") as file:
        write = file.raw_write
        assert write(b"ab") == 2
        file.append(b"cd")
        assert write(b"ef") == 2
        file.truncate(3)
        assert write(b"g") == 1
        assert file.size() == 4
    with pytest.raises((OSError, ValueError)):
        write(b"h")
    assert get(directory, "x") == b"abcg"


def test_free_bytes_are_a_number_or_unknown(directory: Directory) -> None:
    free = directory.free_bytes()
    assert free is None or free >= 0


def test_begin_sync_changes_nothing(directory: Directory) -> None:
    with directory.create("x") as file:
        file.begin_sync()
        file.append(bytes(10_000))
        file.begin_sync()
        file.truncate(5_000)
        file.begin_sync()
        file.append(b"end")
        file.sync()
        file.begin_sync()
        assert file.size() == 5_003
    assert get(directory, "x") == bytes(5_000) + b"end"


def test_truncate_goes_on_at_the_cut(directory: Directory) -> None:
    put(directory, "x", b"abcdef")
    with directory.append_to("x") as file:
        file.truncate(2)
        assert file.size() == 2
        file.append(b"Z")
        for length in (-1, 4):
            with pytest.raises(ValueError, match="cannot truncate"):
                file.truncate(length)
        assert file.size() == 3
    assert get(directory, "x") == b"abZ"


def test_a_removed_file_stays_with_its_handles(directory: Directory) -> None:
    put(directory, "x", b"old")
    with directory.open("x") as reader, directory.append_to("x") as writer:
        directory.remove("x")
        put(directory, "x", b"new one")
        writer.append(b"er")
        assert reader.read(0, 10) == b"older"
    assert get(directory, "x") == b"new one"


def test_a_replaced_file_stays_with_its_handles(directory: Directory) -> None:
    put(directory, "x", b"old")
    put(directory, "y", b"new")
    with directory.open("x") as reader:
        directory.rename("y", "x")
        assert reader.read(0, 10) == b"old"


def test_files_outlive_their_directory_handle(directory: Directory) -> None:
    with directory.create("x") as writer:
        directory.close()
        writer.append(b"ab")
        assert writer.size() == 2
        writer.sync()


def test_closed_files_are_closed(directory: Directory) -> None:
    put(directory, "x", b"abc")
    reader = directory.open("x")
    writer = directory.append_to("x")
    for _ in range(2):
        reader.close()
        writer.close()
    with directory.open("x") as other:  # may have been given the same descriptor
        calls: list[Callable[[], object]] = [
            lambda: reader.read(0, 1),
            lambda: reader.read(0, 100),
            lambda: writer.append(b"x"),
            lambda: writer.truncate(0),
            writer.size,
            writer.sync,
        ]
        for call in calls:
            with pytest.raises(OSError, match="Bad file descriptor") as caught:
                call()
            assert caught.value.errno == errno.EBADF
            assert caught.value.filename == os.path.join(directory.path, "x")
        reader.close()
        writer.close()
        assert other.read(0, 10) == b"abc"


def test_read_file_has_a_limit(directory: Directory) -> None:
    put(directory, "x", b"abc")
    assert directory.read_file("x", 3) == b"abc"
    with pytest.raises(ValueError, match="at most 2"):
        directory.read_file("x", 2)


def test_threads_share_a_directory_and_a_reader(directory: Directory) -> None:
    for number in range(50):
        put(directory, f"{number}", b"%04d" % number * 100)
    names = set(directory.names())
    start = threading.Barrier(4)

    def work(number: int) -> None:
        start.wait()
        for step in range(50):
            assert set(directory.names()) == names
            assert shared.read(step * 4, 8) == b"00070007"
            assert get(directory, f"{step}") == b"%04d" % step * 100

    with directory.open("7") as shared, ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


# Locks


def test_the_lock_has_one_owner(env: Env, directory: Directory) -> None:
    with env.open_directory(directory.path) as again:
        assert again.lock_holder("LOCK") is None
        lock = directory.lock("LOCK")
        assert again.lock_holder("LOCK") == os.getpid()
        assert directory.names() == ["LOCK"]
        for holder in (directory, again):
            with pytest.raises(LockedError) as caught:
                holder.lock("LOCK")
            assert caught.value.pid == os.getpid()
            assert caught.value.filename == os.path.join(directory.path, "LOCK")
        lock.close()
        with again.lock("LOCK"):
            lock.close()  # closing twice does not release what another handle holds now
            with pytest.raises(LockedError):
                directory.lock("LOCK")
        assert again.lock_holder("LOCK") is None
        assert directory.size("LOCK") == 0  # as LevelDB leaves it
        with directory.lock("LOCK"):
            pass


def test_another_name_is_another_lock(directory: Directory) -> None:
    with directory.lock("LOCK"), directory.lock("OTHER"), pytest.raises(LockedError):
        directory.lock("OTHER")


def test_the_lock_survives_reading_its_file(directory: Directory) -> None:
    with directory.lock("LOCK"):
        with pytest.raises(LockedError):
            directory.lock("LOCK")
        assert directory.exists("LOCK")
        with pytest.raises(LockedError):
            directory.lock("LOCK")


def test_an_unlinked_lock_file_gives_no_second_owner(directory: Directory) -> None:
    with directory.lock("LOCK"):
        directory.remove("LOCK")
        with pytest.raises(LockedError):
            directory.lock("LOCK")
    with directory.lock("LOCK"):
        pass


def test_a_deleted_lock_is_released(directory: Directory) -> None:
    lock = directory.lock("LOCK")
    del lock
    gc.collect()
    directory.lock("LOCK").close()


def test_one_thread_gets_the_lock(directory: Directory) -> None:
    start = threading.Barrier(8)

    def work(_: int) -> bool:
        start.wait()
        try:
            locks.append(directory.lock("LOCK"))
        except LockedError:
            return False
        return True

    locks: list[object] = []
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 1


def test_a_lock_is_a_regular_file(directory: Directory) -> None:
    directory.subdirectory("LOCK", create=True).close()
    with pytest.raises(IsADirectoryError):
        directory.lock("LOCK")
