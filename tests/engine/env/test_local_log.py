"""A log that is reserved ahead and mapped: what is on the disk, and when."""

from __future__ import annotations

import contextlib
import errno
import gc
import mmap
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from processes import python

from lsmkv import DB
from lsmkv.engine.db.write.wal import WriteAheadLog
from lsmkv.engine.env import local_log
from lsmkv.engine.env.base import NO_LIMIT
from lsmkv.engine.env.local import LocalDirectory, LocalEnv, LocalWritableFile
from lsmkv.engine.env.local_log import LocalLogFile
from lsmkv.engine.format.log import LogReader

KIB = 1024
UNIT = 32 * KIB


@pytest.fixture
def store(tmp_path: Path) -> LocalDirectory:
    directory = LocalEnv().open_directory(str(tmp_path / "store"), create=True)
    if not directory.maps_logs:
        pytest.skip("this file system does not keep reservations")
    return directory


def length(store: LocalDirectory, name: str = "1.log") -> int:
    return os.stat(os.path.join(store.path, name)).st_size


def content(store: LocalDirectory, name: str = "1.log") -> bytes:
    return Path(store.path, name).read_bytes()


def test_small_at_first_then_doubled(store: LocalDirectory) -> None:
    sizes = []
    with store.create_log("1.log") as log:
        assert isinstance(log, LocalLogFile)
        for _ in range(1200):
            log.append(b"x" * 10 * KIB)
            if not sizes or sizes[-1] != length(store):
                sizes.append(length(store))
    assert [size // KIB for size in sizes] == [64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288]
    assert content(store) == b"x" * 1200 * 10 * KIB


def test_zeros_follow_until_it_is_closed(store: LocalDirectory) -> None:
    log = store.create_log("1.log")
    log.append(b"abc")
    assert content(store) == b"abc" + bytes(64 * KIB - 3)
    assert log.size() == 3
    log.close()
    log.close()
    assert content(store) == b"abc"
    for use in (log.size, log.sync, lambda: log.append(b"d"), lambda: log.truncate(0)):
        with pytest.raises(OSError, match=r"1\.log") as caught:
            use()
        assert caught.value.errno == errno.EBADF


def test_raw_write_takes_what_is_reserved(store: LocalDirectory) -> None:
    with store.create_log("1.log") as log:
        assert log.reserve(0) == 0
        assert length(store) == 0  # nothing is reserved before something is appended
        limit = log.reserve(1)
        assert limit >= 64 * KIB
        assert log.raw_write(b"x" * limit) == limit
        with pytest.raises(ValueError, match="range"):
            log.raw_write(b"y" * UNIT)
        assert log.size() == limit  # nothing was copied
        assert log.reserve(1) > limit
        assert log.raw_write(b"y") == 1
    assert content(store) == b"x" * limit + b"y"


def test_an_append_of_any_size(store: LocalDirectory) -> None:
    with store.create_log("1.log") as log:
        for size in (0, 1, 64 * KIB - 1, 64 * KIB, 9 * KIB * KIB, 3):
            log.append(b"%d" % (size % 10) * size)
        expected = b"1" + b"5" * (64 * KIB - 1) + b"6" * 64 * KIB + b"4" * 9 * KIB * KIB + b"333"
        assert log.size() == len(expected)
    assert content(store) == expected


def test_cutting_back_writes_zeros(store: LocalDirectory) -> None:
    with store.create_log("1.log") as log:
        log.append(b"abcdef")
        log.truncate(2)
        assert content(store)[:8] == b"ab" + bytes(6)
        log.append(b"gh")
        assert content(store)[:8] == b"abgh" + bytes(4)
        log.append(b"z" * 500 * KIB)  # which moves the window
        log.truncate(4)
        assert content(store)[4:].strip(b"\0") == b""
        for wrong in (-1, 5):
            with pytest.raises(ValueError, match="cannot truncate"):
                log.truncate(wrong)
        log.append(b"i")
    assert content(store) == b"abghi"


def test_a_log_is_continued_at_its_last_record(store: LocalDirectory) -> None:
    Path(store.path, "1.log").write_bytes(b"abc" + bytes(100))
    with store.continue_log("1.log", 3) as log:
        assert isinstance(log, LocalLogFile)
        log.append(b"de")
        log.sync()
    assert content(store) == b"abcde"


def test_a_log_that_is_not_to_be_mapped(store: LocalDirectory) -> None:
    with store.create_log("1.log", mapped=False) as log:
        assert type(log) is LocalWritableFile
        assert log.reserve(1) == NO_LIMIT
        log.append(b"abc")
        assert length(store) == 3
    with store.continue_log("1.log", 2, mapped=False) as log:
        assert type(log) is LocalWritableFile
        log.append(b"d")
        assert content(store) == b"abd"


@pytest.mark.parametrize("call", ["posix_fallocate", "preadv"])
def test_where_it_cannot_be_mapped_it_is_written(
    store: LocalDirectory, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, refuse)
    with store.create_log("1.log") as log:
        assert log.reserve(2) == NO_LIMIT
        assert log.raw_write(b"ab") == 2
        log.append(b"c")
        log.sync()
        assert (content(store), log.size()) == (b"abc", 3)
    with store.continue_log("1.log", 2) as log:
        log.append(b"def")
        log.truncate(3)
        assert content(store) == b"abd"


def test_files_of_a_derived_directory_are_its_own(tmp_path: Path) -> None:
    class Own(LocalDirectory):
        def create(self, name: str) -> LocalWritableFile:
            return super().create(name + ".own")

    fd = os.open(tmp_path, os.O_RDONLY)
    with Own(fd, str(tmp_path), LocalEnv()) as directory, directory.create_log("1.log"):
        assert not directory.maps_logs
        assert os.listdir(tmp_path) == ["1.log.own"]


def test_a_full_disk_changes_nothing(
    store: LocalDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows when room is reserved; if there is too little, less is reserved at first."""
    asked: list[tuple[int, int]] = []
    reserve = os.posix_fallocate
    room = 96 * KIB

    def limited(fd: int, offset: int, size: int) -> None:
        asked.append((offset, size))
        if offset + size > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        reserve(fd, offset, size)

    monkeypatch.setattr(os, "posix_fallocate", limited)
    with store.create_log("1.log") as log:
        log.append(b"x" * 64 * KIB)
        log.append(b"y" * 20 * KIB)
        assert asked == [(0, 64 * KIB), (64 * KIB, 64 * KIB), (64 * KIB, 32 * KIB)]
        with pytest.raises(OSError, match=r"1\.log") as caught:
            log.append(b"z" * 13 * KIB)
        assert caught.value.errno == errno.ENOSPC
        assert log.size() == 84 * KIB
        log.append(b"z" * 12 * KIB)
        room = KIB * KIB
        log.append(b"z")
    assert content(store) == b"x" * 64 * KIB + b"y" * 20 * KIB + b"z" * (12 * KIB + 1)


def test_a_store_on_a_full_disk(store: LocalDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that finds no room leaves no trace, and later ones succeed when there is some."""
    reserve = os.posix_fallocate
    full = False

    def limited(fd: int, offset: int, size: int) -> None:
        if full:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        reserve(fd, offset, size)

    monkeypatch.setattr(os, "posix_fallocate", limited)
    with DB(store.path, create_if_missing=True) as db:
        db.put(b"small", b"1")
        full = True
        for _ in range(2):
            with pytest.raises(OSError, match="quota") as caught:
                db.put(b"large", bytes(100 * KIB))
            assert caught.value.errno == errno.EDQUOT
            assert db.get(b"large") is None
        db.put(b"also small", b"2")
        full = False
        db.put(b"large", b"3" * 100 * KIB)
    with DB(store.path, paranoid_checks=True) as db:
        assert {key: len(value) for key, value in db} == {
            b"small": 1,
            b"also small": 1,
            b"large": 100 * KIB,
        }


def test_a_write_after_one_that_could_not_touch_its_pages(
    store: LocalDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window has moved by then, and a small record would fit into the old one."""
    read = os.preadv
    broken = False

    def failing(fd: int, buffers: list[memoryview], offset: int) -> int:
        if broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", failing)
    with DB(store.path, create_if_missing=True) as db:
        db.put(b"small", b"1")
        broken = True
        with pytest.raises(OSError, match=r"\.log") as caught:
            db.put(b"large", bytes(100 * KIB))
        assert caught.value.errno == errno.EIO
        broken = False
        db.put(b"also small", b"2")
        db.put(b"large", b"3" * 100 * KIB)
    with DB(store.path, paranoid_checks=True) as db:
        assert [len(value) for value in db.iterator(include_key=False)] == [1, 100 * KIB, 1]


def test_the_pages_ahead_are_touched(store: LocalDirectory) -> None:
    """An append meets no page that is not there: it would wait with the interpreter's lock held."""
    with store.create_log("1.log") as log:
        limit = log.reserve(1)
        for _ in range(50):
            before = _resident()
            log.raw_write(b"x" * (limit - log.size()))
            assert _resident() == before
            limit = log.reserve(1)


def _resident() -> int:
    """Bytes of the map of ``1.log`` that have a page."""
    inside = False
    with open("/proc/self/smaps") as lines:
        for line in lines:
            if "-" in line.split(" ", 1)[0]:
                inside = line.rstrip().endswith("/1.log")
            elif inside and line.startswith("Rss:"):
                return int(line.split()[1]) * KIB
    raise AssertionError("1.log is not mapped")


def test_a_window_moves_with_the_end(store: LocalDirectory) -> None:
    with store.create_log("1.log") as log:
        assert isinstance(log, LocalLogFile)
        for _ in range(100):
            log.append(b"x" * 100 * KIB)
            assert log._window is not None
            assert len(log._window.view) <= 4 * KIB * KIB + 100 * KIB + 2 * UNIT
            assert log._window.start % mmap.ALLOCATIONGRANULARITY == 0


WRITE_AND_DIE = """
import os, signal, sys
from lsmkv.engine.env.local import LocalEnv
log = LocalEnv().open_directory(sys.argv[1]).create_log("1.log")
for at in range(50_000):
    log.append(b"%05d" % at)
os.kill(os.getpid(), signal.SIGKILL)
"""

FORK = """
import os, sys
from lsmkv.engine.env.local import LocalEnv
log = LocalEnv().open_directory(sys.argv[1]).create_log("1.log")
log.append(b"parent")
child = os.fork()
if not child:
    try:
        log.append(b"child")
    except OSError as error:
        print(error.strerror, flush=True)
    with open("/proc/self/maps") as maps:
        print("1.log" in maps.read(), flush=True)
    log.close()
    sys.exit(0)
os.waitpid(child, 0)
log.append(b", still")
print(log.size(), os.stat(sys.argv[1] + "/1.log").st_size)
"""


def test_what_was_appended_outlives_a_killed_process(store: LocalDirectory) -> None:
    ended = python(WRITE_AND_DIE, store.path, check=False)
    assert ended.returncode == -signal.SIGKILL
    written = content(store)
    assert written.rstrip(b"\0") == b"".join(b"%05d" % at for at in range(50_000))
    assert len(written) % UNIT == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_forked_child_leaves_the_log_alone(store: LocalDirectory) -> None:
    output = python(FORK, store.path).stdout
    assert output.splitlines() == ["Bad file descriptor", "False", f"13 {64 * KIB}"]


class Interrupted(BaseException):
    pass


@contextlib.contextmanager
def interrupted_at(line: int) -> Iterator[list[int]]:
    """Raise before the so-many-th line that is run in ``local_log.py``; yields how many were."""
    lines = [0]

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != local_log.__file__:
            return None
        if event == "line":
            lines[0] += 1
            if lines[0] == line:
                raise Interrupted
        return trace

    before = sys.gettrace()
    gc.disable()  # or it would end logs of the tests before, and raise in their finalizers
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)
        gc.enable()


def log_some(store: LocalDirectory, line: int) -> tuple[list[bytes], list[bytes], int]:
    """Append records, interrupted at a line; those acknowledged, those in the file, and the lines
    that were run."""
    log = WriteAheadLog(store.create_log(f"{line}.log"), line)
    acknowledged: list[bytes] = []
    with interrupted_at(line) as lines:
        for at in range(8):
            record = b"%d" % at * (1000 * at * at + 100)
            for _ in range(2):
                try:
                    before = log.end
                    log.append(record)
                except Interrupted:
                    if log.end > before:  # it is there, as Commit finds then
                        break
                    continue
                break
            acknowledged.append(record)
    log.close()
    with store.open(f"{line}.log") as file:
        reader = LogReader(file, reserved=True)
        found = [record.payload for record in reader]
        assert reader.tail is None
        assert reader.end == file.size
    return acknowledged, found, lines[0]


@pytest.mark.untraced  # by a tracer of its own
@pytest.mark.parametrize("refused", [False, True])
def test_an_interrupt_at_any_line_loses_nothing(
    store: LocalDirectory, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """The next append takes back what the interrupted one has left."""
    if refused:

        def refuse(*arguments: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "posix_fallocate", refuse)
    _, _, lines = log_some(store, 0)
    assert lines > 50
    for line in range(1, lines + 1):
        acknowledged, found, _ = log_some(store, line)
        assert found == acknowledged, line


@pytest.mark.untraced  # by a tracer of its own
@pytest.mark.parametrize("line", range(1, 8))
def test_one_whose_making_is_interrupted_closes_its_descriptor(
    store: LocalDirectory, monkeypatch: pytest.MonkeyPatch, line: int
) -> None:
    """Its finalizer does, with what is there so far."""
    reported: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    fd = os.open(os.path.join(store.path, "1.log"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    with interrupted_at(line) as lines, contextlib.suppress(Interrupted):
        LocalLogFile(fd, "1.log").close()
    assert lines[0] >= line
    gc.collect()
    assert reported == []
    if line > 1:  # the descriptor was taken over
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
    else:
        os.close(fd)
