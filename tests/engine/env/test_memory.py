"""What is special about the file system in memory; the rest is in the contract's tests."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lsmkv.engine.env.memory import MemoryEnv


def test_two_envs_share_nothing() -> None:
    one, two = MemoryEnv(), MemoryEnv()
    one.open_directory("/a", create=True).create("x").close()
    with pytest.raises(FileNotFoundError):
        two.open_directory("/a")


@pytest.mark.parametrize("path", ["/a", "a", "a/", "//a", "/b/../a", "./a"])
def test_spellings_of_one_path(path: str) -> None:
    env = MemoryEnv()
    env.open_directory("/a", create=True).create("x").close()
    with env.open_directory(path) as directory:
        assert directory.names() == ["x"]
        assert directory.path == path


def test_the_root_is_always_there() -> None:
    env = MemoryEnv()
    assert env.open_directory("/").names() == []
    env.open_directory(":memory:", create=True).close()
    assert env.open_directory("/", create=True).names() == [":memory:"]
    with pytest.raises(OSError, match="/") as caught:
        env.remove_directory("/")
    assert caught.value.errno == errno.EBUSY


def test_paths_that_no_system_has() -> None:
    with pytest.raises(FileNotFoundError):
        MemoryEnv().open_directory("", create=True)
    with pytest.raises(ValueError, match="null"):
        MemoryEnv().open_directory("a\0b", create=True)


def test_errors_are_those_of_the_system() -> None:
    directory = MemoryEnv().open_directory("/a", create=True)
    with pytest.raises(FileNotFoundError) as caught:
        directory.open("x")
    assert caught.value.strerror == os.strerror(errno.ENOENT)
    assert str(caught.value) == "[Errno 2] No such file or directory: '/a/x'"


def test_a_directory_made_again_is_another_directory() -> None:
    env = MemoryEnv()
    old = env.open_directory("/a", create=True)
    env.remove_directory("/a")
    env.open_directory("/a", create=True).create("x").close()
    assert old.names() == []
    with pytest.raises(FileNotFoundError):
        old.subdirectory("d", create=True)
    with pytest.raises(FileNotFoundError):
        old.lock("LOCK")


def test_readers_run_beside_a_writer() -> None:
    directory = MemoryEnv().open_directory("/a", create=True)
    writer = directory.create("x")
    reader = directory.open("x")
    start = threading.Barrier(4)

    def write() -> None:
        start.wait()
        for number in range(2000):
            writer.append(b"%08d" % number)

    def read() -> None:
        start.wait()
        length = 0
        while length < 2000 * 8:
            data = reader.read(0, 1 << 20)
            assert len(data) % 8 == 0
            assert len(data) >= length
            assert data[-8:] == b"%08d" % (len(data) // 8 - 1) if data else True
            length = len(data)

    with ThreadPoolExecutor(4) as pool:
        for work in [pool.submit(write), *(pool.submit(read) for _ in range(3))]:
            work.result()
