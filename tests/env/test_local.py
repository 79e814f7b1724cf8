"""The local file system: what only real files, links, locks and processes can show."""

from __future__ import annotations

import errno
import gc
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

import lsmkv
from lsmkv.env import local
from lsmkv.env import lock as lock_module
from lsmkv.env.local import LocalDirectory, LocalEnv, LocalWritableFile
from lsmkv.env.lock import HAS_OFD_LOCKS, take_lock
from lsmkv.errors import LockedError

needs_ofd = pytest.mark.skipif(not HAS_OFD_LOCKS, reason="no OFD locks here")
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc here")


@pytest.fixture
def store(tmp_path: Path) -> LocalDirectory:
    return LocalEnv().open_directory(str(tmp_path / "store"), create=True)


def open_descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


# A child imports the package that is tested here, not one that lies in the working directory.
ENVIRON = {**os.environ, "PYTHONPATH": str(Path(lsmkv.__file__).parent.parent)}


def python(script: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, with nothing to read."""
    return subprocess.run(
        [sys.executable, "-P", "-c", script, *arguments],
        input="",
        capture_output=True,
        text=True,
        check=check,
        env=ENVIRON,
    )


def start(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a script that talks through its pipes."""
    command = [sys.executable, "-P", "-c", script, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRON)


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
def test_a_failed_sync_of_the_parent_raises(
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
def test_a_parent_that_cannot_be_synced_is_ignored(
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


def test_short_reads_are_completed(store: LocalDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_short_writes_are_completed(store: LocalDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with store.create("x") as file:
        monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
        file.append(b"0123456789")
        assert file.size() == 10
        monkeypatch.setattr(os, "write", lambda fd, data: 0)
        with pytest.raises(OSError, match="no more bytes"):
            file.append(b"0")
    assert store.read_file("x", 10) == b"0123456789"


def test_raw_write_calls_an_overridden_append(store: LocalDirectory) -> None:
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


def test_a_write_that_fails_half_way_says_how_far_it_came(store: LocalDirectory) -> None:
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
            patch.setattr(local, "_sync_content", fail)
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
def test_begin_sync_does_nothing_after_a_sync(
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


# The lock

HOLDER = """if True:
    import os, sys
    from lsmkv.env.local import LocalEnv
    store = LocalEnv(ofd_locks=sys.argv[2] == "ofd").open_directory(sys.argv[1])
    lock = store.lock("LOCK")
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""

KINDS = [pytest.param("ofd", marks=needs_ofd), "posix"]


@pytest.mark.parametrize("ours", KINDS)
@pytest.mark.parametrize("theirs", KINDS)
def test_another_process_holds_the_lock(store: LocalDirectory, theirs: str, ours: str) -> None:
    env = LocalEnv(ofd_locks=ours == "ofd")
    with env.open_directory(store.path) as directory, start(HOLDER, store.path, theirs) as holder:
        assert holder.stdout is not None
        pid = int(holder.stdout.readline())
        for _ in range(2):  # a refused attempt does not disturb the owner
            with pytest.raises(LockedError) as caught:
                directory.lock("LOCK")
            assert caught.value.pid == pid
        holder.kill()
        holder.wait()
        assert directory.read_file("LOCK", 20) == str(pid).encode()  # nobody took it out
        with directory.lock("LOCK"):
            assert directory.size("LOCK") == len(str(os.getpid()))


@needs_ofd
def test_a_locked_error_reports_only_a_living_owners_pid(store: LocalDirectory) -> None:
    dead = int(python("import os; print(os.getpid())").stdout)
    path = os.path.join(store.path, "LOCK")
    other = os.open(path, os.O_RDWR | os.O_CREAT)  # an OFD lock whose owner wrote no pid
    take_lock_on(other)
    contents = [b"", b"x", b"-1", b"0", b" 1", b"1\n", b"\xb2", b"9" * 21, b"9" * 20]
    for content in [*contents, str(dead).encode(), str(os.getpid()).encode()]:
        Path(path).write_bytes(content)
        with pytest.raises(LockedError) as caught:
            store.lock("LOCK")
        assert caught.value.pid is None, content
    Path(path).write_bytes(str(os.getppid()).encode())
    with pytest.raises(LockedError) as caught:
        store.lock("LOCK")
    assert caught.value.pid == os.getppid()
    os.close(other)


KILLED_WHILE_IT_STARTS_A_PROGRAM = """if True:
    import subprocess, sys, time
    from lsmkv.env.local import LocalEnv
    directory = LocalEnv().open_directory(sys.argv[1])
    lock = directory.lock("LOCK")
    # As any child between fork and exec: it has all descriptors.
    code = "import sys; print('there', flush=True); sys.stdin.read(1)"
    subprocess.Popen([sys.executable, "-c", code], pass_fds=[lock._fd])
    time.sleep(60)
"""


@needs_ofd
def test_the_lock_of_a_dead_owner_is_waited_for(
    store: LocalDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    patience = 3
    really_sleep = time.sleep
    owner = subprocess.Popen(
        [sys.executable, "-P", "-c", KILLED_WHILE_IT_STARTS_A_PROGRAM, store.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with owner, ExitStack() as at_the_end:
        at_the_end.callback(owner.kill)
        assert owner.stdin is not None
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"there\n"
        monkeypatch.setattr(lock_module.time, "sleep", pauses.append)
        with pytest.raises(LockedError) as caught:
            store.lock("LOCK")
        assert caught.value.pid == owner.pid
        assert pauses == []  # it lives: nobody waits
        owner.kill()
        owner.wait()
        monkeypatch.setattr(lock_module, "_PATIENCE", patience)
        with pytest.raises(LockedError) as caught:
            store.lock("LOCK")
        assert caught.value.pid is None
        assert type(caught.value) is LockedError
        assert len(pauses) == patience
        stdin, stdout = owner.stdin, owner.stdout

        def pause(seconds: float) -> None:
            if not stdin.closed:
                stdin.close()  # now the child ends
                assert stdout.read() == b""
            really_sleep(seconds)

        monkeypatch.setattr(lock_module.time, "sleep", pause)
        monkeypatch.setattr(lock_module, "_PATIENCE", 1000)
        store.lock("LOCK").close()


def take_lock_on(fd: int) -> None:
    import fcntl
    import struct

    fcntl.fcntl(fd, 37, struct.pack("@hhqqi0q", fcntl.F_WRLCK, 0, 0, 0, 0))


@needs_ofd
def test_reading_the_lock_file_does_not_drop_an_ofd_lock(store: LocalDirectory) -> None:
    with store.lock("LOCK"):
        store.read_file("LOCK", 20)
        Path(store.path, "LOCK").read_bytes()
        script = """if True:
            import sys
            from lsmkv.env.local import LocalEnv
            from lsmkv.errors import LockedError
            try:
                LocalEnv().open_directory(sys.argv[1]).lock("LOCK")
            except LockedError as error:
                print(error.pid)
        """
        assert int(python(script, store.path).stdout) == os.getpid()


@pytest.mark.parametrize("ofd", [True, False])
def test_a_refused_attempt_in_this_process_does_not_drop_the_lock(
    store: LocalDirectory, ofd: bool
) -> None:
    """POSIX locks go when any descriptor of the file is closed: none may be opened."""
    with LocalEnv(ofd_locks=ofd).open_directory(store.path) as ours, ours.lock("LOCK"):
        os.link(os.path.join(store.path, "LOCK"), os.path.join(store.path, "ALIAS"))
        for name in ("LOCK", "ALIAS"):
            with pytest.raises(LockedError):
                ours.lock(name)
        assert "LockedError" in python(HOLDER, store.path, "posix", check=False).stderr


@pytest.mark.parametrize("ofd", [True, False])
def test_plyvel_and_lsmkv_exclude_each_other(tmp_path: Path, ofd: bool) -> None:
    plyvel = pytest.importorskip("plyvel")
    path = str(tmp_path / "store")
    plyvel.DB(path, create_if_missing=True).close()
    theirs = """if True:
        import sys, plyvel
        try:
            plyvel.DB(sys.argv[1]).close()
        except plyvel.IOError as error:
            print("refused" if "lock" in str(error) else error)
        else:
            print("opened")
    """
    with LocalEnv(ofd_locks=ofd).open_directory(path) as store:
        with store.lock("LOCK"):
            assert python(theirs, path).stdout == "refused\n"
            if ofd and HAS_OFD_LOCKS:  # even inside one process, where POSIX locks see nothing
                with pytest.raises(plyvel.IOError, match="lock"):
                    plyvel.DB(path)
                assert python(theirs, path).stdout == "refused\n"
        assert python(theirs, path).stdout == "opened\n"
        if ofd and HAS_OFD_LOCKS:
            db = plyvel.DB(path)
            with pytest.raises(LockedError) as caught:
                store.lock("LOCK")
            assert caught.value.pid == os.getpid()
            db.close()
            store.lock("LOCK").close()


def test_plyvel_in_another_process_is_named(tmp_path: Path) -> None:
    pytest.importorskip("plyvel")
    script = """if True:
        import sys, os, plyvel
        db = plyvel.DB(sys.argv[1], create_if_missing=True)
        print(os.getpid(), flush=True)
        sys.stdin.read()
    """
    path = str(tmp_path / "store")
    with start(script, path) as holder:
        assert holder.stdout is not None
        pid = int(holder.stdout.readline())
        for ofd in (True, False):
            with LocalEnv(ofd_locks=ofd).open_directory(path) as store:
                with pytest.raises(LockedError, match=f"process {pid}") as caught:
                    store.lock("LOCK")
                assert caught.value.pid == pid
        holder.communicate(b"")


FORK = """if True:
    import os, sys
    from lsmkv.env.local import LocalEnv
    from lsmkv.errors import LockedError

    env = LocalEnv(ofd_locks=sys.argv[2] == "ofd")
    store = env.open_directory(sys.argv[1])

    def taken():
        try:
            env.open_directory(sys.argv[1]).lock("LOCK").close()
        except LockedError as error:
            return error.pid
        return "free"

    def in_child(work):
        child = os.fork()
        if child == 0:
            try:
                code = 0 if work() else 1
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                code = 2
            os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    lock = store.lock("LOCK")
    parent = os.getpid()
    # The child does not own it, and closing its handle takes nothing away from the parent.
    assert in_child(lambda: taken() == parent) == 0
    assert in_child(lambda: (lock.close(), taken() == parent)[1]) == 0
    assert in_child(lambda: taken() == parent) == 0
    # A child that is still there does not keep the parent's lock.
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go[1])
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    lock.close()
    assert in_child(lambda: taken() == "free") == 0
    assert taken() == "free"
    os.write(go[1], b"x")
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_forked_children_do_not_own_the_lock(store: LocalDirectory, kind: str) -> None:
    python(FORK, store.path, kind)


def test_a_lock_file_that_was_replaced_meanwhile_is_opened_again(
    tmp_path: Path, store: LocalDirectory
) -> None:
    path = tmp_path / "store" / "LOCK"
    directory = os.open(store.path, os.O_RDONLY)
    opened: list[int] = []

    def open_file() -> int:
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        opened.append(fd)
        if len(opened) < 3:  # somebody destroys the store between our open and our lock
            path.unlink()
        if len(opened) == 2:
            path.touch()
        return fd

    with take_lock(directory, "LOCK", str(path), open_file, HAS_OFD_LOCKS):
        assert len(opened) == 3
        assert path.read_bytes() == str(os.getpid()).encode()
        assert "LockedError" in python(HOLDER, store.path, "posix", check=False).stderr
    os.close(directory)


def test_a_lock_file_unlinked_at_every_attempt_is_an_error(
    tmp_path: Path, store: LocalDirectory
) -> None:
    def open_file() -> int:
        fd = os.open(tmp_path / "store" / "LOCK", os.O_RDWR | os.O_CREAT)
        (tmp_path / "store" / "LOCK").unlink()
        return fd

    directory = os.open(store.path, os.O_RDONLY)
    with pytest.raises(LockedError):
        take_lock(directory, "LOCK", "LOCK", open_file, HAS_OFD_LOCKS)
    os.close(directory)
    store.lock("LOCK").close()


def test_a_file_that_is_no_lock_file_is_not_overwritten_with_a_pid(
    tmp_path: Path, store: LocalDirectory
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"data")
    os.link(victim, tmp_path / "store" / "LOCK")
    with store.lock("LOCK"):
        assert victim.read_bytes() == b"data"
    assert victim.read_bytes() == b"data"
    victim.unlink()
    with store.append_to("LOCK") as file:
        file.append(b" that is longer than any pid")
    with store.lock("LOCK"):
        assert store.size("LOCK") > 20
    assert store.size("LOCK") > 20


def test_a_moved_directory_is_still_locked(tmp_path: Path, store: LocalDirectory) -> None:
    with store.lock("LOCK"):
        os.rename(store.path, tmp_path / "moved")
        with (
            LocalEnv().open_directory(str(tmp_path / "moved")) as moved,
            pytest.raises(LockedError),
        ):
            moved.lock("LOCK")
