"""The local file system: what only real files, links, locks and processes can show."""

from __future__ import annotations

import errno
import gc
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from lsmkv.engine.env.local import LocalDirectory, LocalEnv
from lsmkv.errors import LockedError

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc here")


def open_descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


# Opening


def test_the_path_may_be_a_symbolic_link(tmp_path: Path, store: LocalDirectory) -> None:
    store.create("x").close()
    (tmp_path / "link").symlink_to(store.path)
    with LocalEnv().open_directory(str(tmp_path / "link"), create=True) as directory:
        assert directory.names() == ["x"]


def test_a_directory_stays_the_same_one_when_its_path_moves(tmp_path: Path) -> None:
    env = LocalEnv()
    with env.open_directory(str(tmp_path / "store"), create=True) as directory:
        os.rename(tmp_path / "store", tmp_path / "moved")
        (tmp_path / "store").mkdir()
        directory.create("x").close()
        assert (tmp_path / "moved" / "x").exists()
        assert not (tmp_path / "store" / "x").exists()


def test_new_directories_are_synced_into_their_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def record(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}") if os.path.isdir("/proc") else "")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", record)
    with LocalEnv().open_directory(str(tmp_path / "store"), create=True) as store:
        assert len(synced) == 1
        store.subdirectory("lost", create=True).close()
        assert len(synced) == 2
        store.sync()
    LocalEnv().open_directory(str(tmp_path / "store")).close()
    if os.path.isdir("/proc"):
        real = os.path.realpath(tmp_path)
        assert synced == [real, f"{real}/store", f"{real}/store"]


@pytest.mark.parametrize("made", [True, False])
def test_a_failed_sync_of_the_parent_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "gone")

    if not made:
        (tmp_path / "store").mkdir()
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"gone: .*store"):
        LocalEnv().open_directory(str(tmp_path / "store"), create=True)


@pytest.mark.parametrize("made", [True, False])
def test_a_parent_that_cannot_be_synced_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    def refuse(fd: int) -> None:
        raise OSError(errno.EINVAL, "no fsync here")

    syncs: list[int] = []
    if not made:
        (tmp_path / "store").mkdir()
    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(os, "sync", lambda: syncs.append(1))
    LocalEnv().open_directory(str(tmp_path / "store"), create=True).close()
    assert len(syncs) == made


def test_an_unsupported_platform_is_refused(tmp_path: Path) -> None:
    class Elsewhere(LocalEnv):
        supported = False

    with pytest.raises(OSError, match="directory descriptors") as caught:
        Elsewhere().open_directory(str(tmp_path))
    assert caught.value.errno == errno.ENOSYS


def make_link(path: Path) -> None:
    (path.parent.parent / "outside").write_bytes(b"secret")
    path.symlink_to(path.parent.parent / "outside")


def make_dangling_link(path: Path) -> None:
    path.symlink_to(path.parent.parent / "nowhere")


def make_socket(path: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    os.chdir(path.parent)  # a socket's path has to be short
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(path.name)
    finally:
        os.fchdir(here)
        os.close(here)


@pytest.mark.parametrize("call", ["open", "append_to", "lock"])
@pytest.mark.parametrize(
    ("make", "word"),
    [
        (make_link, "symbolic link"),
        (make_dangling_link, "symbolic link"),
        (os.mkfifo, "not a regular file"),
        (make_socket, "not a regular file"),
        (os.mkdir, "a directory"),
    ],
)
def test_only_regular_files(
    tmp_path: Path, store: LocalDirectory, make: Callable[[Path], None], word: str, call: str
) -> None:
    make(tmp_path / "store" / "x")
    with pytest.raises(OSError, match=word) as caught:
        getattr(store, call)("x")
    assert caught.value.errno
    assert caught.value.filename == os.path.join(store.path, "x")
    if word == "symbolic link":
        assert "follow_symlinks=True" in str(caught.value)
    assert not (tmp_path / "nowhere").exists()
    if make is make_link:
        assert (tmp_path / "outside").read_bytes() == b"secret"


def test_links_are_names_and_no_more(tmp_path: Path, store: LocalDirectory) -> None:
    make_link(tmp_path / "store" / "x")
    make_dangling_link(tmp_path / "store" / "y")
    assert store.exists("y")
    with pytest.raises(OSError, match="symbolic link"):
        store.size("x")
    with pytest.raises(FileExistsError):
        store.create("y")
    store.remove("x")
    assert (tmp_path / "outside").read_bytes() == b"secret"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store" / "lost").symlink_to(tmp_path / "elsewhere")
    for create in (False, True):
        with pytest.raises(OSError, match="symbolic link"):
            store.subdirectory("lost", create=create)


def test_links_can_be_read_through_if_asked(tmp_path: Path, store: LocalDirectory) -> None:
    make_link(tmp_path / "store" / "x")
    with LocalEnv(follow_symlinks=True).open_directory(store.path) as directory:
        assert directory.read_file("x", 100) == b"secret"
        assert directory.size("x") == 6
        with pytest.raises(OSError, match="symbolic link"):
            directory.append_to("x")
        with pytest.raises(OSError, match="symbolic link"):
            directory.lock("x")
        os.mkfifo(tmp_path / "fifo")
        (tmp_path / "store" / "y").symlink_to(tmp_path / "fifo")
        with pytest.raises(OSError, match="not a regular file"):
            directory.open("y")


@needs_proc
def test_no_descriptor_is_leaked_or_inherited(tmp_path: Path, store: LocalDirectory) -> None:
    before = open_descriptors()
    os.mkfifo(tmp_path / "store" / "fifo")
    store.create("x").close()
    for _ in range(3):
        store.names()
        with pytest.raises(OSError, match="regular"):
            store.open("fifo")
        with store.lock("LOCK"), pytest.raises(LockedError):
            store.lock("LOCK")
    assert open_descriptors() == before
    handles = [
        store.open("x"),
        store.append_to("x"),
        store.lock("LOCK"),
        store.subdirectory("d", create=True),
        LocalEnv().open_directory(store.path),
    ]
    assert open_descriptors() == before + len(handles)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and os.path.exists(f"/proc/self/fd/{name}"):
            target = os.readlink(f"/proc/self/fd/{name}")
            assert not target.startswith(store.path) or not os.get_inheritable(int(name))
    handles.clear()  # forgotten, not closed: no warning either
    assert open_descriptors() == before
