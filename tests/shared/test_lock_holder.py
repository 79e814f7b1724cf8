"""Who holds ``LOCK`` of a shared store, in each state that it may be in."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from others import Other, new

from lsmkv.engine.env.local import LocalDirectory, LocalEnv
from lsmkv.engine.env.lock import OFD_SETLK, pack_flock
from lsmkv.shared.lock_holder import LockState, Look, Wait, look_at_lock
from lsmkv.shared.system.local import place_of
from lsmkv.shared.system.shared_page import fcntl

ME = os.getpid()


def test_nobody_holds_it(path: Path) -> None:
    nobody = Look(LockState.NOBODY, 0)
    assert look_at_lock(LocalEnv(), str(path)) == nobody  # there is no directory
    path.mkdir()
    assert look_at_lock(LocalEnv(), str(path)) == nobody
    new(path).close()
    assert look_at_lock(LocalEnv(), str(path)) == nobody


def test_a_holder_that_has_not_written_its_process_id(path: Path) -> None:
    new(path).close()
    with (path / "LOCK").open("r+b") as file:
        file.truncate(0)
        fcntl.fcntl(file, OFD_SETLK, pack_flock(fcntl.F_WRLCK))
        assert look_at_lock(LocalEnv(), str(path)) == Look(LockState.UNKNOWN, 0)
        fcntl.fcntl(file, OFD_SETLK, pack_flock(fcntl.F_UNLCK, 0, 1))
        assert look_at_lock(LocalEnv(), str(path)) == Look(LockState.SHARING, 0)


def test_a_holder_of_this_number_in_another_pid_namespace(path: Path) -> None:
    new(path).close()
    with LocalEnv().open_directory(str(path)) as directory, (path / "LOCK").open("r+b") as lock:
        file = place_of(directory).shared_file("SHARED", True)
        head = file.begin_epoch()  # by this process's number
        fcntl.fcntl(lock, OFD_SETLK, pack_flock(fcntl.F_WRLCK))
        assert look_at_lock(LocalEnv(), str(path)) == Look(LockState.SHARING, 0)
        file.announce(head, 0)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("lsmkv.shared.system.shared_file.network_namespace", lambda: 1)
            assert look_at_lock(LocalEnv(), str(path)) == Look(LockState.ELSEWHERE, 0)
        file.close()


def test_members_alone_own_nothing(path: Path) -> None:
    new(path).close()
    with LocalEnv().open_directory(str(path)) as directory:
        lock = place_of(directory).lock_as_member("LOCK")
        assert lock is not None
        assert look_at_lock(LocalEnv(), str(path)) == Look(LockState.NOBODY, 0)
        lock.close()


def test_a_holder_from_its_lock_to_its_answer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new(path).close()
    with LocalEnv().open_directory(str(path)) as directory:
        assert isinstance(directory, LocalDirectory)

        def seen() -> Look:
            return look_at_lock(LocalEnv(), str(path))

        lock = directory.lock("LOCK")
        assert seen() == Look(LockState.UNKNOWN, ME)
        file = place_of(directory).shared_file("SHARED", True)
        head = file.begin_epoch()
        assert seen() == Look(LockState.SHARING, ME)
        # In another network namespace, it says nothing before it answers.
        monkeypatch.setattr("lsmkv.shared.system.shared_file.network_namespace", lambda: 1)
        assert seen() == Look(LockState.SHARING, ME)
        file.announce(head, 0)
        assert seen() == Look(LockState.ELSEWHERE, ME)
        monkeypatch.undo()
        assert seen() == Look(LockState.SHARING, ME)
        lock.close()
        file.close()


def test_a_holder_is_not_the_last_owner(path: Path, other: Callable[..., Other]) -> None:
    """A killed owner has said that it shares; who has the lock now has not."""
    owner = other(create_if_missing=True)
    owner.kill()
    with LocalEnv().open_directory(str(path)) as directory, directory.lock("LOCK"):
        assert look_at_lock(LocalEnv(), str(path)) == Look(LockState.UNKNOWN, ME)


@pytest.mark.parametrize("state", LockState)
def test_only_a_holder_that_may_not_share_is_waited_for_briefly(state: LockState) -> None:
    assert Wait(60.0, -1.0).is_over(Look(state, 1)) == (state is LockState.UNKNOWN)
    assert Wait(-1.0, 60.0).is_over(Look(state, 1)) == (state is not LockState.UNKNOWN)


def test_a_limit_for_everything_ends_any_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    wait, endless = Wait(60.0, 60.0, 2.0), Wait(60.0, 60.0)
    assert (wait.left, endless.left) == (2.0, math.inf)
    assert not wait.is_over(Look(LockState.SHARING, 1))
    monkeypatch.setattr(time, "monotonic", lambda: 7.5)
    assert wait.left == 0.0
    assert wait.is_over(Look(LockState.SHARING, 2))
    assert not endless.is_over(Look(LockState.SHARING, 2))


@pytest.mark.parametrize("now", [Look(LockState.SHARING, 1), Look(LockState.UNKNOWN, 2)])
def test_another_state_or_holder_is_waited_for_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch, now: Look
) -> None:
    wait = Wait(10.0, 10.0)

    def is_over(seconds: float, look: Look) -> bool:
        monkeypatch.setattr(time, "monotonic", lambda: seconds)
        return wait.is_over(look)

    before = Look(LockState.UNKNOWN, 1)
    assert [is_over(5, before), is_over(15, before), is_over(15.5, before)] == [False, False, True]
    assert [is_over(16, now), is_over(26, now), is_over(27, now)] == [False, False, True]
