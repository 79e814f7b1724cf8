"""The local file system: what only real files, links, locks and processes can show."""

from __future__ import annotations

import errno
import gc
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import python

from lsmkv.env import local_file
from lsmkv.env.local import LocalDirectory, LocalEnv, LocalRandomAccessFile, LocalWritableFile
from lsmkv.errors import LockedError

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc here")


@pytest.fixture
def store(tmp_path: Path) -> LocalDirectory:
    return LocalEnv().open_directory(str(tmp_path / "store"), create=True)


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


# Reading and writing


def test_a_read_is_one_system_call(store: LocalDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.create("x") as file:
        file.append(bytes(1000))
    calls: list[str] = []
    pread, fstat = os.pread, os.fstat
    reader = store.open("x")

    def count_pread(fd: int, length: int, offset: int) -> bytes:
        calls.append("pread")
        return pread(fd, length, offset)

    def count_fstat(fd: int) -> os.stat_result:
        calls.append("fstat")
        return fstat(fd)

    monkeypatch.setattr(os, "pread", count_pread)
    monkeypatch.setattr(os, "fstat", count_fstat)
    reader.read(100, 900)
    assert calls == ["pread"]
    reader.read(100, 901)
    assert calls == ["pread", "fstat", "pread"]


def test_a_raw_read_is_the_system_call_itself(store: LocalDirectory) -> None:
    class Own(LocalRandomAccessFile):
        def read(self, offset: int, length: int) -> bytes:
            return b"own"

    with store.create("x") as file:
        file.append(b"0123456789")
    reader = store.open("x")
    assert reader.raw_read(3, 2) == b"234"
    assert reader.raw_read(5, 8) == b"89"  # short where the file ends
    reader.close()
    with pytest.raises(OSError, match="store/x") as caught:
        reader.raw_read(3, 2)
    assert caught.value.errno == errno.EBADF
    with Own(os.open(f"{store.path}/x", os.O_RDONLY), "x", 10) as own:
        assert own.raw_read(3, 2) == b"own"


def test_short_reads_are_carried_on(store: LocalDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.create("x") as file:
        file.append(b"0123456789")
    pread = os.pread
    with store.open("x") as reader:
        monkeypatch.setattr(os, "pread", lambda fd, n, at: pread(fd, min(n, 3), at))
        assert reader.read(0, 10) == b"0123456789"
        assert reader.read(1, 8) == b"12345678"
        with store.append_to("x") as writer:
            writer.truncate(5)
        assert reader.read(0, 10) == b"01234"  # shorter than when it was opened


def test_short_writes_are_carried_on(
    store: LocalDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    with store.create("x") as file:
        monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
        file.append(b"0123456789")
        assert file.size() == 10
        monkeypatch.setattr(os, "write", lambda fd, data: 0)
        with pytest.raises(OSError, match="no more bytes"):
            file.append(b"0")
    assert store.read_file("x", 10) == b"0123456789"


def test_an_append_of_ones_own_is_not_passed_by(store: LocalDirectory) -> None:
    class Counted(LocalWritableFile):
        written = 0

        def append(self, data: bytes) -> None:
            self.written += len(data)
            super().append(data)

    fd = os.open("x", os.O_WRONLY | os.O_CREAT | os.O_APPEND, dir_fd=store.descriptor)
    with Counted(fd, "x") as file:
        assert file.raw_write(b"abc") == 3
        assert file.written == 3
    assert store.read_file("x", 10) == b"abc"


def test_a_partial_write_reports_its_length(store: LocalDirectory) -> None:
    script = """if True:
        import errno, resource, sys
        from lsmkv.env.local import LocalEnv
        resource.setrlimit(resource.RLIMIT_FSIZE, (60, 60))
        with LocalEnv().open_directory(sys.argv[1]) as store, store.create("x") as file:
            try:
                file.append(b"a" * 100)
            except OSError as error:
                assert error.errno == errno.EFBIG, error
                assert error.filename == store.path + "/x", error.filename
                assert file.size() == 60
                file.truncate(10)
                file.append(b"b")
                sys.exit(0)
            sys.exit("the write did not fail")
    """
    python(script, store.path)
    assert store.read_file("x", 100) == b"a" * 10 + b"b"


def test_a_failed_sync_is_final(store: LocalDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "gone")

    with store.create("x") as file:
        with monkeypatch.context() as patch:
            patch.setattr(local_file, "SYNC_CONTENT", fail)
            with pytest.raises(OSError, match=r"gone: .*store/x"):
                file.sync()
        with pytest.raises(OSError, match="earlier sync") as caught:
            file.sync()
        assert caught.value.errno == errno.EIO


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="a system without posix_fadvise")
def test_a_sync_is_begun_once_for_each_byte(
    store: LocalDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges: list[tuple[int, int]] = []

    def advise(fd: int, start: int, size: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_DONTNEED
        ranges.append((start, size))
        if len(ranges) == 2:
            raise OSError(errno.EIO, "gone")

    monkeypatch.setattr(os, "posix_fadvise", advise)
    with store.create("x") as file:
        file.append(b"0123456789")
        file.begin_sync()
        file.append(b"abc")
        file.begin_sync()  # fails, and leaves it to the next one
        file.append(b"de")
        file.begin_sync()
        file.begin_sync()  # of nothing
        assert ranges == [(0, 10), (10, 3), (10, 5)]
        file.truncate(12)
        file.append(b"fg")
        file.begin_sync()
        assert ranges[3:] == [(12, 2)]
        monkeypatch.delattr(os, "posix_fadvise")
        file.append(b"h")
        file.begin_sync()
        file.sync()
    assert store.read_file("x", 100) == b"0123456789abfgh"


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="a system without posix_fadvise")
def test_no_writeback_begins_for_files_that_are_synced_often(
    store: LocalDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux would drop from memory what it has written, just before it is read for a flush."""
    asked: list[tuple[int, ...]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda *arguments: asked.append(arguments))
    with store.create("x") as file:
        file.append(b"0123456789")
        file.sync()
        file.append(b"abc")
        file.begin_sync()
    assert asked == []


def test_errors_of_reading_name_the_file(
    store: LocalDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: int) -> bytes:
        raise OSError(errno.EIO, "bad sector")

    store.create("x").close()
    with store.open("x") as reader:
        monkeypatch.setattr(os, "pread", fail)
        with pytest.raises(OSError, match=r"bad sector: .*store/x"):
            reader.read(0, 0)


class FakeFcntl:
    """macOS' ``fcntl``, as far as syncing goes; its answer is an error number."""

    def __init__(self, answer: int) -> None:
        self.answer = answer
        self.synced: list[int] = []

    def fcntl(self, fd: int, call: int) -> None:
        assert call == 51
        if self.answer:
            raise OSError(self.answer, os.strerror(self.answer))
        self.synced.append(fd)


@pytest.mark.parametrize("what", ["file", "directory"])
@pytest.mark.parametrize(
    ("answer", "plain_syncs"),
    [(0, 0), (errno.ENOTSUP, 1), (errno.EINVAL, 1), (errno.ENOTTY, 1), (errno.EIO, None)],
)
def test_on_macos_the_drives_cache_is_flushed(
    store: LocalDirectory,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    answer: int,
    plain_syncs: int | None,
) -> None:
    """By F_FULLFSYNC; by fsync where the file system has none."""
    plain: list[int] = []
    macos = FakeFcntl(answer)
    with store.create("file") as file:
        monkeypatch.setattr(local_file, "_FULL_SYNC", 51)
        monkeypatch.setattr(local_file, "fcntl", macos)
        monkeypatch.setattr(local_file, "SYNC_CONTENT", plain.append)
        monkeypatch.setattr(os, "fsync", plain.append)
        synced = file if what == "file" else store
        if plain_syncs is None:
            with pytest.raises(OSError, match=re.escape(synced.path)) as caught:
                synced.sync()
            assert caught.value.errno == answer
        else:
            synced.sync()
    assert len(plain) == (plain_syncs or 0)
    assert len(macos.synced) == (1 if answer == 0 else 0)
