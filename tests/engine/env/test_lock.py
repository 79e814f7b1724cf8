"""lsmkv.engine.env.lock: one owner of a store, whether that is lsmkv or LevelDB, in any process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import python, start

from lsmkv.engine.env import lock as lock_module
from lsmkv.engine.env.local import LocalDirectory, LocalEnv
from lsmkv.engine.env.lock import HAS_OFD_LOCKS, take_lock
from lsmkv.errors import LockedError

needs_ofd = pytest.mark.skipif(not HAS_OFD_LOCKS, reason="no OFD locks here")


@pytest.fixture
def store(tmp_path: Path) -> LocalDirectory:
    return LocalEnv().open_directory(str(tmp_path / "store"), create=True)


HOLDER = """if True:
    import os, sys
    from lsmkv.engine.env.local import LocalEnv
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


@pytest.mark.parametrize("ours", KINDS)
@pytest.mark.parametrize("theirs", KINDS)
def test_the_holder_is_named_without_taking_the_lock(
    store: LocalDirectory, theirs: str, ours: str
) -> None:
    env = LocalEnv(ofd_locks=ours == "ofd")
    with env.open_directory(store.path) as directory:
        assert directory.lock_holder("LOCK") is None
        assert not directory.exists("LOCK")
        with start(HOLDER, store.path, theirs) as holder:
            assert holder.stdout is not None
            pid = int(holder.stdout.readline())
            assert [directory.lock_holder("LOCK") for _ in range(2)] == [pid, pid]
            with pytest.raises(LockedError):
                directory.lock("LOCK")
            holder.kill()
        assert directory.lock_holder("LOCK") is None  # though it names a process
        assert directory.size("LOCK") > 0
        with directory.lock("LOCK"):
            assert directory.lock_holder("LOCK") == os.getpid()
            done = python(ASKS, store.path, ours)
            assert done.stdout == f"{os.getpid()}\n"
        assert directory.lock_holder("LOCK") is None


ASKS = """if True:
    import sys
    from lsmkv.engine.env.local import LocalEnv
    store = LocalEnv(ofd_locks=sys.argv[2] == "ofd").open_directory(sys.argv[1])
    print(store.lock_holder("LOCK"))
"""


def test_a_holder_that_wrote_no_pid_is_unknown(store: LocalDirectory) -> None:
    with store.lock("LOCK"):
        Path(store.path, "LOCK").write_bytes(b"nonsense")
        assert python(ASKS, store.path, "ofd").stdout == "0\n"


@needs_ofd
def test_only_the_pid_of_a_living_owner_is_reported(store: LocalDirectory) -> None:
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
    from lsmkv.engine.env.local import LocalEnv
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
        monkeypatch.setattr(lock_module, "pause", pauses.append)
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

        monkeypatch.setattr(lock_module, "pause", pause)
        monkeypatch.setattr(lock_module, "_PATIENCE", 1000)
        store.lock("LOCK").close()


def take_lock_on(fd: int) -> None:
    import fcntl

    fcntl.fcntl(fd, lock_module.OFD_SETLK, lock_module.pack_flock(fcntl.F_WRLCK))


@needs_ofd
def test_reading_the_lock_file_does_not_drop_an_ofd_lock(store: LocalDirectory) -> None:
    with store.lock("LOCK"):
        store.read_file("LOCK", 20)
        Path(store.path, "LOCK").read_bytes()
        script = """if True:
            import sys
            from lsmkv.engine.env.local import LocalEnv
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
    from lsmkv.engine.env.local import LocalEnv
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("step", ["taken", "released"])
def test_a_fork_waits_for_a_thread_at_the_lock(
    store: LocalDirectory, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child with its descriptor would keep the lock of a parent that is killed."""
    at_work, asked = threading.Event(), threading.Event()
    real = lock_module._set_lock
    kinds: list[int] = []

    def change_slowly(fd: int, ofd: bool, kind: int) -> None:
        real(fd, ofd, kind)
        kinds.append(kind)
        if len(kinds) == (1 if step == "taken" else 2):
            at_work.set()
            asked.wait()

    monkeypatch.setattr(lock_module, "_set_lock", change_slowly)

    def work() -> None:
        store.lock("LOCK").close()

    thread = threading.Thread(target=work)
    thread.start()
    at_work.wait()
    number = os.stat(f"{store.path}/LOCK").st_ino
    threading.Timer(0.05, asked.set).start()  # most often once the fork is waiting
    pid = os.fork()
    if pid == 0:
        os._exit(0 if number not in inodes() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    thread.join()
    store.lock("LOCK").close()


def inodes() -> set[int]:
    """The numbers of the files that this process has open."""
    found = set()
    for fd in range(256):
        try:
            found.add(os.fstat(fd).st_ino)
        except OSError:
            pass
    return found


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


def test_a_name_that_is_never_the_same_file_is_given_up(
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


def test_foreign_data_is_not_overwritten_with_a_pid(tmp_path: Path, store: LocalDirectory) -> None:
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


def test_the_structure_that_macos_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """``struct flock`` of the BSDs: start, length, pid, type, whence; 24 bytes."""
    monkeypatch.setattr(lock_module, "_LINUX", False)
    packed = lock_module.pack_flock(3)
    assert packed == bytes(20) + (3).to_bytes(2, sys.byteorder) + bytes(2)
    answer = bytes(16) + (77).to_bytes(4, sys.byteorder) + (1).to_bytes(2, sys.byteorder) + bytes(2)
    assert lock_module.unpack_flock(answer) == (1, 77, 0, 0)
    part = lock_module.pack_flock(3, 7, 9)
    assert lock_module.unpack_flock(part) == (3, 0, 7, 9)


def test_without_ofd_locks_one_process_has_one_owner(tmp_path: Path) -> None:
    """As on macOS, where a second POSIX lock in one process would be granted: the table refuses it,
    and a refused opening does not drop the lock, which another process still meets."""
    env = LocalEnv(ofd_locks=False)
    store = env.open_directory(str(tmp_path))
    other = env.open_directory(str(tmp_path))
    lock = store.lock("LOCK")
    for _ in range(2):
        with pytest.raises(LockedError) as caught:
            other.lock("LOCK")
        assert caught.value.pid == os.getpid()
        assert other.lock_holder("LOCK") == os.getpid()
    script = """
import sys
from lsmkv.engine.env.local import LocalEnv
print(LocalEnv(ofd_locks=False).open_directory(sys.argv[1]).lock_holder("LOCK"))
"""
    assert python(script, str(tmp_path)).stdout == f"{os.getpid()}\n"
    lock.close()
    other.lock("LOCK").close()
    assert python(script, str(tmp_path)).stdout == "None\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, 0o600), (0o644, 0o600), (0o640, 0o600), (0o664, 0o660), (0o666, 0o666), (0o400, 0o400)],
)
def test_who_may_open_the_file(
    tmp_path: Path, store: LocalDirectory, before: int | None, after: int
) -> None:
    """A process that may open it can lock it: its user's, or one that could write to it before."""
    path = tmp_path / "store" / "LOCK"
    if before is not None:
        path.touch()
        path.chmod(before)
    if before == 0o400 and os.geteuid():
        pytest.skip("its user may not write to it")
    before_it = os.umask(0)
    try:
        store.lock("LOCK").close()
    finally:
        os.umask(before_it)
    assert path.stat().st_mode & 0o777 == after


def test_a_file_with_two_names_keeps_its_mode(tmp_path: Path, store: LocalDirectory) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"data")
    victim.chmod(0o644)
    os.link(victim, tmp_path / "store" / "LOCK")
    store.lock("LOCK").close()
    assert victim.stat().st_mode & 0o777 == 0o644
