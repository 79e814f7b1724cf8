"""``owner="process"``: a process that owns the store, and does nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from others import Other
from owner_processes import ended, ends, new
from processes import ENVIRON
from waiting import wait_until

import lsmkv
from lsmkv import SharedDB

Start = Callable[..., Other]


@pytest.fixture(autouse=True)
def no_process_is_left(path: Path) -> Iterator[None]:
    with ended(path):
        yield


def test_everybody_is_a_member_of_a_process_that_ends_with_the_last(
    path: Path, other: Start
) -> None:
    with new(path) as db:
        first = other(owner="process")
        assert (db.role, first("db.role")) == ("member", "member")
        owner = db.owner
        assert owner not in (os.getpid(), first.pid)
        assert first("db.owner") == owner
        db.put(b"k", b"v")
        assert first("db.get(b'k')") == b"v"
    time.sleep(3)
    assert first("db.owner, db.get(b'k')") == (owner, b"v")
    first("db.close()")
    assert ends(owner)
    assert "SHARED" not in os.listdir(path)
    with lsmkv.DB(path) as plain:
        assert plain.get(b"k") == b"v"


def test_it_stays_when_its_starter_is_killed(path: Path, other: Start) -> None:
    first = other(owner="process", create_if_missing=True)
    owner = first("db.owner")
    with new(path) as db:
        first.kill()
        db.put(b"k", b"v")
        assert db.owner == owner


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_member_starts_another(path: Path, other: Start, number: int) -> None:
    with new(path) as db:
        first = other(owner="process")
        for turn in range(3):
            owner = db.owner
            db.put(b"%d" % turn, b"v")
            os.kill(owner, number)
            assert ends(owner)
            db.put(b"more", b"%d" % turn)
            assert first("db.get(b'more')") == b"%d" % turn
            assert db.owner == first("db.owner") != owner
        assert len(list(db)) == 4


def test_many_that_come_at_once_have_one_owner(path: Path, other: Start) -> None:
    start = (
        "import sys, lsmkv\n"
        "db = lsmkv.SharedDB(sys.argv[1], owner='process', create_if_missing=True)\n"
        "db.update(b'n', lambda old: b'%d' % (int(old or 0) + 1))\n"
        "print(db.owner, flush=True)\n"
        "sys.stdin.read()\n"
    )
    several = [
        subprocess.Popen(
            [sys.executable, "-c", start, str(path)],
            env=ENVIRON,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(6)
    ]
    owners = set()
    for one in several:
        assert one.stdout is not None
        owners.add(int(one.stdout.readline()))
    for one in several:
        one.communicate()
    assert len(owners) == 1
    with new(path) as db:
        assert db.get(b"n") == b"6"


def test_threads_that_find_their_owner_dead(path: Path) -> None:
    with new(path) as db:
        os.kill(db.owner, signal.SIGKILL)
        threads = [threading.Thread(target=db.put, args=(b"%d" % n, b"v")) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(list(db)) == 8


def test_it_has_the_options_of_the_one_that_started_it(path: Path) -> None:
    order = lsmkv.ReverseBytewiseComparator()
    with new(path, comparator=order, write_buffer_size=1 << 16, compression=None) as db:
        for n in range(100):
            db.put(b"%03d" % n, bytes(2000))
        assert next(iter(db))[0] == b"099"
        assert len(db.tables()) > 1  # of a small write buffer
        db.flush()
        assert sum(table.size for table in db.tables()) > 200_000


def test_its_errors_are_raised_where_it_was_started(path: Path) -> None:
    with pytest.raises(lsmkv.NotFoundError):
        SharedDB(path, owner="process")
    with lsmkv.DB(path, create_if_missing=True) as plain:
        plain.put(b"k", b"v")
        with pytest.raises(lsmkv.LockedError, match="in use"):
            SharedDB(path, owner="process")
    with pytest.raises(lsmkv.ComparatorMismatchError) as error:
        SharedDB(path, owner="process", comparator=lsmkv.ReverseBytewiseComparator())
    assert error.value.given == "leveldb.ReverseBytewiseComparator"
    with pytest.raises(lsmkv.Error, match="error_if_exists"):
        SharedDB(path, owner="process", error_if_exists=True)
    (path / "CURRENT").write_bytes(b"damage")
    with pytest.raises(lsmkv.CorruptionError, match="CURRENT does not name a MANIFEST"):
        SharedDB(path, owner="process")


def test_a_store_that_must_be_new(path: Path, other: Start) -> None:
    with new(path, error_if_exists=True) as db:
        db.put(b"k", b"v")
        os.kill(db.owner, signal.SIGKILL)
        db.put(b"l", b"w")
        assert "error_if_exists is true" in other(error_if_exists=True, owner="process").opened
        assert "error_if_exists is true" in other(error_if_exists=True).opened


def test_what_it_leaves_out_of_a_damaged_log_is_a_warning_here(path: Path) -> None:
    with lsmkv.DB(path, create_if_missing=True, mapped_log=False) as db:
        for n in range(10):
            db.put(b"%d" % n, b"v")
    (log,) = path.glob("*.log")
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    with pytest.warns(lsmkv.RecoveryWarning) as caught, SharedDB(path, owner="process") as shared:
        assert len(list(shared)) == 4
    assert [one.filename for one in caught] == [__file__]


def opened_by(process: int) -> list[str]:
    """What the descriptors of a process lead to; it may close some meanwhile."""
    found = []
    for fd in os.listdir(f"/proc/{process}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{process}/fd/{fd}"))
    return found


def test_it_inherits_nothing_and_has_a_session_of_its_own(path: Path) -> None:
    with socket.socket() as listening, open(path.parent / "other", "wb") as file:
        os.set_inheritable(listening.fileno(), True)
        os.set_inheritable(file.fileno(), True)
        with new(path) as db:
            owner = db.owner
            assert os.getsid(owner) == os.getpgid(owner) != os.getsid(0)
            assert os.readlink(f"/proc/{owner}/cwd") == "/"
            # It has answered through a pipe, and closes that afterwards.
            wait_until(lambda: not any(there.startswith("pipe:") for there in opened_by(owner)))
            for there in opened_by(owner):
                assert str(path) in there or there.startswith(
                    ("/dev/null", "anon_inode:", "/memfd:lsmkv", "/dev/shm/lsmkv-", "socket:")
                )
            sockets = set(opened_by(owner))
            assert f"socket:[{os.fstat(listening.fileno()).st_ino}]" not in sockets
            status = Path(f"/proc/{owner}/status").read_text()
            assert f"PPid:\t{os.getpid()}\n" not in status
            assert b"lsmkv-owner" in Path(f"/proc/{owner}/cmdline").read_bytes()


def test_an_interrupt_of_the_terminal_does_not_reach_it(path: Path) -> None:
    """It goes to the group of the starter."""
    script = (
        "import sys, time, lsmkv\n"
        "db = lsmkv.SharedDB(sys.argv[1], owner='process', create_if_missing=True)\n"
        "print(db.owner, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        env=ENVIRON,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as starter:
        assert starter.stdout is not None
        owner = int(starter.stdout.readline())
        with new(path) as db:
            os.killpg(starter.pid, signal.SIGINT)
            starter.wait()
            db.put(b"k", b"v")
            assert db.owner == owner


def test_a_fork_joins_the_same_process(path: Path) -> None:
    with new(path) as db:
        owner = db.owner
        child = os.fork()
        if child == 0:
            db.put(b"child", b"1")
            os._exit(0 if db.owner == owner else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert db.get(b"child") == b"1"


def test_a_store_that_another_process_owns_for_itself(path: Path, other: Start) -> None:
    """It works, with a warning; and when that owner goes, a process is started."""
    first = other(create_if_missing=True)
    with pytest.raises(RuntimeWarning):  # as the tests have it
        new(path)
    with pytest.warns(RuntimeWarning, match=f"process {first.pid} owns the store"):
        db = new(path)
    assert (db.role, db.owner) == ("member", first.pid)
    db.put(b"k", b"v")
    assert first("db.get(b'k')") == b"v"
    with db:
        first.kill()
        db.put(b"l", b"w")
        assert db.role == "member"
        assert db.owner not in (os.getpid(), first.pid)
        assert dict(db) == {b"k": b"v", b"l": b"w"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_joins_without_it(path: Path, other: Start, number: int) -> None:
    """It may be the next owner, and the others join it."""
    with new(path) as db:
        first = other()
        assert first("db.role, db.owner") == ("member", db.owner)
        first("db.put(b'k', b'v')")
        assert db.get(b"k") == b"v"
        owner = db.owner
        os.kill(owner, number)
        assert ends(owner)
        first("db.put(b'k', b'w')")
        assert first("db.role") == "owner"
        assert db.get(b"k") == b"w"
        db.put(b"l", b"w")
        assert db.owner == first.pid
        first("db.close()")
        db.put(b"m", b"w")
        assert (db.role, db.owner in (os.getpid(), first.pid, owner)) == ("member", False)


def test_its_names_are_those_of_its_members(path: Path, other: Start) -> None:
    with new(path, bloom_filter_bits=0):
        assert "shared with the filter policy 'none'" in other(owner="process").opened


def test_a_close_while_no_process_owns_it(path: Path) -> None:
    with new(path) as db:
        os.kill(db.owner, signal.SIGKILL)
        assert ends(db.owner)
    with pytest.raises(lsmkv.ClosedError):
        db.get(b"k")
