"""Files of the local file system: whole reads and writes, errors with names, and syncs."""

from __future__ import annotations

import errno
import mmap
import os
import re
import sys

import pytest
from processes import python

import lsmkv
from lsmkv.engine.env import local_file
from lsmkv.engine.env.local import LocalDirectory, LocalRandomAccessFile, LocalWritableFile


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


def test_a_mapped_file_is_read_by_slices(store: LocalDirectory) -> None:
    with store.create("x") as file:
        file.append(b"0123456789")
    reader = store.open_mapped("x")
    mapping = reader.mapping
    assert (mapping[2:5], reader.read(2, 3), reader.raw_read(5, 8)) == (b"234", b"234", b"89")
    reader.close()
    reader.close()
    assert (reader.mapping, mapping[:3]) == (None, b"012")  # who reads it may go on
    with pytest.raises(OSError, match="store/x") as caught:
        reader.read(0, 1)
    assert caught.value.errno == errno.EBADF


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
def test_a_mapped_file_takes_one_descriptor(store: LocalDirectory) -> None:
    with store.create("x") as file:
        file.append(b"0123456789")
    before = len(os.listdir("/proc/self/fd"))
    mapped = store.open_mapped("x")
    assert len(os.listdir("/proc/self/fd")) == before + 1
    mapped.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("why", ["empty", "no room", "network"])
def test_what_cannot_be_mapped_is_read(
    store: LocalDirectory, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    with store.create("x") as file:
        file.append(b"" if why == "empty" else b"0123")
    if why == "no room":
        monkeypatch.setattr(mmap, "mmap", lambda *_, **__: raise_out_of_memory())
    elif why == "network":
        monkeypatch.setattr(store, "_maps_tables", False)
    with store.open_mapped("x") as reader:
        assert reader.mapping is None
        assert reader.read(0, 4) == (b"" if why == "empty" else b"0123")


def raise_out_of_memory() -> None:
    raise OSError(errno.ENOMEM, "Cannot allocate memory")


def test_files_of_a_file_system_of_several_machines_are_read(
    store: LocalDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lsmkv.COMPILED:
        pytest.skip("replaces a function")
    monkeypatch.setattr("lsmkv.engine.env.local.shared_file_system_of", lambda path: "nfs4")
    with store.create("x") as file:
        file.append(b"0123")
    assert store.open_mapped("x").mapping is None


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
        from lsmkv.engine.env.local import LocalEnv
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
