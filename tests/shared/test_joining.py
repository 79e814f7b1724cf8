"""Who owns a shared store: kills, closes, and processes that take over."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from others import Other, new
from processes import IS_DARWIN, python, start

import lsmkv
import lsmkv.aio
from lsmkv.engine.env.local import LocalDirectory, LocalEnv
from lsmkv.engine.env.lock import OFD_SETLK, LocalFileLock, pack_flock
from lsmkv.shared.system.local import LocalPlace, place_of
from lsmkv.shared.system.shared_file import VERSIONS_OF_EPOCH, SharedFile
from lsmkv.shared.system.shared_page import fcntl

Start = Callable[..., Other]


def test_a_member_takes_the_place_of_a_killed_owner(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path) as db:
        assert db.role == "member"
        owner("db.put(b'a', b'1')")
        iterator = db.iterator()
        owner.kill()
        assert db.get(b"a") == b"1"
        db.put(b"b", b"2")
        assert db.role == "owner"
        assert dict(db) == {b"a": b"1", b"b": b"2"}
        assert list(iterator) == [(b"a", b"1")]


def test_an_owner_that_closes_hands_over(path: Path, other: Start) -> None:
    owner, second = other(create_if_missing=True), other()
    with new(path) as db:
        owner("db.close()")
        second("db.put(b'k', b'v')")
        assert second("db.role") == "owner"
        assert db.get(b"k") == b"v"
        assert db.owner == second.pid
        assert owner("db.get(b'k')").startswith("ClosedError")


def test_a_read_sees_what_the_next_owner_has_written(path: Path, other: Start) -> None:
    first, second = other(create_if_missing=True), other()
    with new(path) as db:
        assert db.get(b"k") is None
        first.kill()
        second("db.put(b'k', b'new')")
        assert db.get(b"k") == b"new"
        second("db.put(b'k', b'newer')")
        assert db.get(b"k") == b"newer"


def test_a_newcomer_that_owns_is_noticed_too(path: Path, other: Start) -> None:
    """It finds the page of the last owner through the members that have it."""
    first = other(create_if_missing=True)
    with new(path, may_own=False) as db:
        assert db.get(b"k") is None
        first.kill()
        other()("db.put(b'k', b'new')")
        assert db.get(b"k") == b"new"


def test_a_transaction_does_not_outlive_its_owner(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path) as db:
        transaction = db.transaction()
        transaction.put(b"k", b"v")
        owner.kill()
        with pytest.raises(lsmkv.ConflictError, match="the owner of the store has gone"):
            transaction.commit()
        db.run(lambda again: again.put(b"k", b"v"))
        assert db.get(b"k") == b"v"


def test_one_that_may_not_own_waits_for_an_owner(path: Path, other: Start) -> None:
    first = other(create_if_missing=True)
    member = other(may_own=False)
    first.kill()
    member.ask("db.put(b'k', b'v')")
    time.sleep(0.1)
    with new(path) as db:
        assert member.answer() is None
        assert db.get(b"k") == b"v"
        assert db.role == "owner"


def test_a_stopped_owner_is_waited_for(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path, patience=0.2) as db:
        owner("db.put(b'k', b'v')")
        owner.stop()
        assert db.get(b"k") == b"v"
        with pytest.raises(lsmkv.IOError, match="does not answer") as error:
            db.put(b"k", b"w")
        assert error.value.errno == errno.ETIMEDOUT
        owner.go_on()
        db.put(b"k", b"x")
        assert owner("db.get(b'k')") == b"x"


def test_a_starting_owner_is_waited_for(path: Path) -> None:
    """It has the lock, and has said that it shares; it answers when it has recovered the store."""
    new(path).close()
    with LocalEnv().open_directory(str(path)) as directory:
        assert isinstance(directory, LocalDirectory)
        lock = directory.lock("LOCK")
        file = place_of(directory).shared_file("SHARED", True)
        file.begin_epoch()
        threading.Timer(1.3, lock.close).start()
        started = time.monotonic()
        with new(path) as db:
            assert time.monotonic() - started > 1.2
            assert db.role == "owner"
        file.close()


def test_a_holder_of_the_lock_that_is_not_known_yet_is_waited_for(path: Path, other: Start) -> None:
    """It has just got the lock, after a time without any owner, and has not written who it is."""
    first = other(create_if_missing=True)
    with new(path, may_own=False) as db, (path / "LOCK").open("r+b") as file:
        first.kill()
        done: list[bool] = []
        waiting = threading.Thread(target=lambda: done.append(db.put(b"k", b"v") is None))
        waiting.start()
        time.sleep(1.3)
        file.truncate(0)
        fcntl.fcntl(file, OFD_SETLK, pack_flock(fcntl.F_WRLCK, 1))
        time.sleep(0.2)
        fcntl.fcntl(file, OFD_SETLK, pack_flock(fcntl.F_UNLCK))
        second = other()
        waiting.join()
        assert done == [True]
        assert second("db.get(b'k')") == b"v"


def test_a_member_waits_for_a_holder_that_will_share(path: Path, other: Start) -> None:
    """Only a process that shares the store can have taken it, however long it says nothing."""
    first = other(create_if_missing=True)
    with new(path, may_own=False) as db, LocalEnv().open_directory(str(path)) as directory:
        first.kill()
        lock = place_of(directory).lock_as_owner("LOCK")
        done: list[bool] = []
        waiting = threading.Thread(target=lambda: done.append(db.put(b"k", b"v") is None))
        waiting.start()
        time.sleep(1.5)
        lock.close()
        second = other()
        waiting.join()
        assert done == [True]
        assert second("db.get(b'k')") == b"v"


_INTRUDER = """if True:
    import fcntl, sys
    print("begun", flush=True)
    while True:
        with open(sys.argv[1], "r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
        print("open", flush=True)
        break
"""
"""Opens a store as LevelDB does, as soon as it can."""


def _opens(path: Path) -> bool:
    """Whether LevelDB can open the store now."""
    code = _INTRUDER.replace("continue", "break")
    return python(code, str(path / "LOCK")).stdout.endswith("open\n")


def test_leveldb_is_refused_between_two_owners(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path) as db:
        owner("db.put(b'k', b'v')")
        assert db.get(b"k") == b"v"
        owner.kill()
        assert not _opens(path)
        for timeout in (0.0, 0.1):
            with pytest.raises(lsmkv.LockedError, match="shared by other processes") as error:
                lsmkv.DB(path, lock_timeout=timeout)
            assert error.value.shared
        with pytest.raises(lsmkv.LockedError):
            lsmkv.destroy_db(path)
        child = os.fork()
        if child == 0:  # has no part of the lock, and lives on
            time.sleep(600)
            os._exit(0)
        try:
            db.put(b"k", b"w")
            assert db.role == "owner"
            assert not _opens(path)
            db.close()
            assert _opens(path)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@pytest.mark.long
@pytest.mark.parametrize("owner", [None, "process"])
def test_nobody_gets_in_between_while_owners_are_killed(
    path: Path, other: Start, owner: str | None
) -> None:
    members = [other(owner=owner, create_if_missing=True) for _ in range(3)]
    intruder = start(_INTRUDER, str(path / "LOCK"))
    assert intruder.stdout is not None
    assert intruder.stdout.readline() == b"begun\n"
    with intruder, new(path, owner=owner, may_own=False) as db:
        try:
            for turn in range(40):
                if owner is None:
                    gone = next(one for one in members if one.pid == db.owner)
                    gone.kill()
                    members.remove(gone)
                else:
                    os.kill(db.owner, signal.SIGKILL)
                for number, one in enumerate(members):
                    one(f"db.put(b'{turn} {number}', b'v')")
                    assert db.get(b"%d %d" % (turn, number)) == b"v"
                    assert {each(f"db.get(b'{turn} {number}')") for each in members} == {b"v"}
                if owner is None:
                    members.append(other())
            assert len(list(db)) == 40 * len(members) - (0 if owner else 40)
            assert select.select([intruder.stdout], [], [], 0)[0] == [], "it was let in"
            for one in members:
                one.kill()
            if owner is not None:
                os.kill(db.owner, signal.SIGKILL)
            assert select.select([intruder.stdout], [], [], 1)[0] == [], "a member is there"
            db.close()
            assert intruder.stdout.readline() == b"open\n"
        finally:
            intruder.kill()


@pytest.mark.skipif(lsmkv.COMPILED, reason="a compiled module keeps its constants")
def test_an_owner_of_a_release_that_locks_the_whole_file(
    path: Path, other: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lock(place: LocalPlace, name: str) -> LocalFileLock:
        return place._directory.lock(name)

    monkeypatch.setattr(LocalPlace, "lock_as_owner", lock)
    monkeypatch.setattr("lsmkv.shared.listener.REVISION", 1)
    with new(path) as db:
        member = other()
        assert member.opened == "open"
        member("db.put(b'k', b'v')")
        assert (member("db.role"), db.get(b"k")) == ("member", b"v")
    monkeypatch.undo()
    member("db.put(b'k', b'w')")
    assert member("db.role") == "owner"
    with new(path) as db:
        assert db.get(b"k") == b"w"
        member.kill()
        assert not _opens(path)


def test_who_has_a_store_that_it_does_not_share(path: Path) -> None:
    with lsmkv.DB(path, create_if_missing=True), pytest.raises(lsmkv.LockedError) as error:
        new(path)
    assert error.value.pid == os.getpid()


@pytest.mark.skipif(IS_DARWIN, reason="its name leads to the page")
def test_an_owner_that_cannot_reach_the_last_page_waits_for_its_readers(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member that leases a version of the last epoch, and of which nothing is noted."""
    new(path).close()
    with LocalEnv().open_directory(str(path)) as directory:
        assert isinstance(directory, LocalDirectory)
        file = place_of(directory).shared_file("SHARED", True)
        head = file.begin_epoch()
        file.announce(head, 0)
        file.lease(head.epoch * VERSIONS_OF_EPOCH)
        with pytest.raises(lsmkv.LockedError, match="in another pid namespace"):
            new(path, lock_timeout=0.1)
        threading.Timer(0.5, file.close).start()
        started = time.monotonic()
        with new(path) as db:
            assert time.monotonic() - started > 0.4
            assert db.role == "owner"


def test_an_opening_that_fails_leaves_nothing_behind(path: Path) -> None:
    with new(path) as db:
        db.put(b"k", b"v")
    (path / "CURRENT").write_bytes(b"damage")
    for _ in range(2):
        with pytest.raises(lsmkv.CorruptionError):
            new(path)


@pytest.mark.skipif(lsmkv.COMPILED, reason="a compiled module keeps its constants")
def test_nobody_owns_and_this_process_may_not(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new(path).close()
    monkeypatch.setattr("lsmkv.shared.joining._START", 0.2)
    with pytest.raises(lsmkv.LockedError, match="no process owns the shared store"):
        new(path, may_own=False)


def _open_for_asyncio(path: Path, **options: Any) -> None:
    async def main() -> None:
        async with lsmkv.aio.SharedDB(path, **options):
            pass

    asyncio.run(main())


@pytest.mark.parametrize(
    "opening",
    [lsmkv.SharedDB, partial(lsmkv.open, flag="c", shared=True), _open_for_asyncio],
    ids=["SharedDB", "open", "aio"],
)
def test_lock_timeout_ends_an_opening_whatever_it_waits_for(
    path: Path, other: Start, opening: Callable[..., object]
) -> None:
    owner = other(create_if_missing=True)
    owner.stop()
    later = threading.Timer(30.0, owner.go_on)  # by which an opening without a limit succeeds
    later.start()
    expected = f"process {owner.pid}, the owner of {path}, does not answer"
    expected += "" if IS_DARWIN else ": it is stopped"
    with pytest.raises(lsmkv.IOError, match=expected) as error:
        opening(path, lock_timeout=0.3, patience=None)
    assert error.value.errno == errno.ETIMEDOUT
    later.cancel()
    owner.go_on()
    with new(path, lock_timeout=30.0) as db:
        assert db.role == "member"


def test_lock_timeout_ends_the_wait_for_an_owner_that_does_not_open_the_store(path: Path) -> None:
    new(path).close()
    with LocalEnv().open_directory(str(path)) as directory, directory.lock("LOCK") as lock:
        assert isinstance(directory, LocalDirectory)
        file = place_of(directory).shared_file("SHARED", True)
        file.begin_epoch()
        later = threading.Timer(15.0, lock.close)  # then it finds that no process owns the store
        later.start()
        owns = f"process {os.getpid()}, which owns the shared store, has not answered"
        with pytest.raises(lsmkv.LockedError, match=owns) as error:
            new(path, may_own=False, lock_timeout=0.2)
        later.cancel()
        assert error.value.pid == os.getpid()
        file.close()
    owners: list[lsmkv.SharedDB] = []
    later = threading.Timer(15.0, lambda: owners.append(new(path)))  # which it would join
    later.start()
    with pytest.raises(lsmkv.LockedError, match="no process owns the shared store"):
        new(path, may_own=False, lock_timeout=0.2)
    later.cancel()


@pytest.mark.skipif(IS_DARWIN, reason="its name leads to the page")
@pytest.mark.parametrize("owner", [None, "process"])
def test_lock_timeout_ends_the_wait_for_readers_of_the_last_epoch(
    path: Path, owner: Literal["process"] | None
) -> None:
    new(path).close()
    with LocalEnv().open_directory(str(path)) as directory:
        assert isinstance(directory, LocalDirectory)
        file = place_of(directory).shared_file("SHARED", True)
        head = file.begin_epoch()
        file.announce(head, 0)
        file.lease(head.epoch * VERSIONS_OF_EPOCH)
        later = threading.Timer(25.0, file.close)  # by which an opening without a limit succeeds
        later.start()
        with pytest.raises((lsmkv.LockedError, TimeoutError)):
            new(path, owner=owner, lock_timeout=0.5)
        later.cancel()
        file.close()


def test_a_process_that_may_only_read_waits_if_another_is_about_to_own_the_store(
    path: Path, other: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, second = other(create_if_missing=True), other()
    owner.kill()
    looked = threading.Event()
    real = SharedFile.is_leased_at_all

    def look(file: SharedFile) -> bool:
        looked.set()
        return real(file)

    monkeypatch.setattr(SharedFile, "is_leased_at_all", look)
    monkeypatch.setattr(LocalPlace, "is_writable", lambda place: False)
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(lsmkv.SharedDB, path)
        assert looked.wait(60)
        second("db.put(b'new', b'1')")
        with opening.result() as db:
            assert (db.role, db.get(b"new")) == ("member", b"1")


@pytest.mark.parametrize("is_known", [True, False])
def test_closing_ends_a_wait_for_the_next_owner(path: Path, other: Start, is_known: bool) -> None:
    owner = other(create_if_missing=True)
    db = new(path, may_own=False)
    owner.kill()
    if not is_known:
        (path / "SHARED").unlink()
    closing = threading.Timer(0.2, db.close)
    closing.start()
    with pytest.raises((lsmkv.ClosedError, lsmkv.OutcomeUnknownError)):
        db.put(b"k", b"v")
    closing.join()
    assert db.closed
