"""Processes of other namespaces, as containers have them: joined, or refused with the reason."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from others import Other, new

import lsmkv
from lsmkv.engine.env import mounts
from lsmkv.engine.env.local import LocalEnv

Start = Callable[..., Other]

NETWORK = ("-n",)
PROCESSES = ("-p", "-f", "-m", "--kill-child", "--mount-proc")
USERS = ("-U",)
ROOT = ("-U", "-r")
_SOON = 15.0
"""Seconds, of a busy machine; without a reason a process waits for 30."""


def unshare(*options: str) -> tuple[str, ...]:
    """The command that starts another one in new namespaces."""
    for more in ((), ("-r",)):
        command = ("unshare", *more, *options)
        if (
            shutil.which("unshare")
            and not subprocess.run([*command, "true"], check=False, capture_output=True).returncode
        ):
            return command
    pytest.skip(f"no process may have new namespaces here: unshare {' '.join(options)}")


def test_another_network_is_refused_and_may_own_later(path: Path, other: Start) -> None:
    before = unshare(*NETWORK)
    with new(path) as db:
        began = time.monotonic()
        refused = other(before=before)
        assert "another network namespace" in refused.opened
        assert refused.opened.startswith("LockedError: [Errno 11] process ")
        assert time.monotonic() - began < _SOON
        db.put(b"k", b"v")
        assert db.role == "owner"
    owner = other(before=before)
    assert owner("db.role, db.get(b'k')") == ("owner", b"v")
    with pytest.raises(lsmkv.LockedError, match="another network namespace") as error:
        new(path)
    assert error.value.pid == owner.pid


def test_a_member_whose_next_owner_is_elsewhere(path: Path, other: Start) -> None:
    first = other(create_if_missing=True)
    with new(path, may_own=False) as db:
        first("db.put(b'k', b'v')")
        assert db.get(b"k") == b"v"
        first.kill()
        second = other(before=unshare(*NETWORK))
        assert second("db.role, db.get(b'k')") == ("owner", b"v")
        for call in (lambda: db.get(b"k"), lambda: db.put(b"k", b"w")):
            with pytest.raises(lsmkv.LockedError, match="another network namespace"):
                call()
        second("db.put(b'k', b'new'); db.close()")
        third = other()
        third("db.put(b'l', b'w')")
        assert third("db.role") == "owner"
        assert db.get(b"k") == b"new"
        db.put(b"m", b"x")
        assert third("db.get(b'm')") == b"x"


def test_other_process_ids_join(path: Path, other: Start) -> None:
    before = unshare(*PROCESSES)
    with new(path) as db:
        inside = other(before=before)
        assert inside("db.role, os.getpid() if (os := __import__('os')) else 0") == ("member", 1)
        inside("db.put(b'k', b'v')")
        assert db.get(b"k") == b"v"
        db.put(b"k", b"w")
        assert inside("db.get(b'k')") == b"w"
    inside("db.put(b'k', b'x')")
    assert inside("db.role") == "owner"
    with new(path) as db:  # which that owner cannot see
        assert db.role == "member"
        assert db.get(b"k") == b"x"
        db.put(b"k", b"y")
        assert inside("db.get(b'k')") == b"y"
        inside.kill()
        db.put(b"k", b"z")
        assert (db.role, db.get(b"k")) == ("owner", b"z")


def test_a_newcomer_that_cannot_reach_the_page_holds_no_lock(path: Path, other: Start) -> None:
    before = unshare(*PROCESSES)
    owner = other(create_if_missing=True)
    with new(path) as db, LocalEnv().open_directory(str(path)) as directory:
        owner("db.put(b'k', b'v')")
        assert db.get(b"k") == b"v"
        owner.kill()
        newcomers: list[Other] = []
        waiting = threading.Thread(target=lambda: newcomers.append(other(before=before)))
        waiting.start()
        while directory.lock_holder("LOCK") is None:
            time.sleep(0.0001)  # until it has tried for the first time
        looks = [directory.lock_holder("LOCK") for _ in range(10000)]
        assert looks.count(None) > 5000, "it holds the lock while it waits"
        db.put(b"k", b"w")
        assert db.role == "owner"
        waiting.join()
        assert newcomers[0]("db.role, db.get(b'k')") == ("member", b"w")


@pytest.mark.parametrize("options", [USERS, ROOT], ids=["unmapped", "root"])
def test_the_same_user_under_another_number_joins(
    path: Path, other: Start, options: tuple[str, ...]
) -> None:
    before = unshare(*options)
    with new(path) as db:
        inside = other(before=before)
        assert inside("db.role") == "member"
        inside("db.put(b'k', b'v')")
        assert db.get(b"k") == b"v"
    inside("db.put(b'k', b'w')")
    assert inside("db.role") == "owner"
    with new(path) as db:
        assert db.get(b"k") == b"w"
        inside.kill()
        db.put(b"k", b"x")
        assert db.role == "owner"


def test_namespaces_of_a_container(path: Path, other: Start) -> None:
    """All of them: what shares the volume alone is refused, and does no harm."""
    before = unshare("-i", "-u", *NETWORK, *PROCESSES)
    with new(path) as db:
        db.put(b"k", b"v")
        refused = other(before=before)
        assert "another network namespace" in refused.opened
        assert (db.role, db.get(b"k")) == ("owner", b"v")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs", "ext4", "fuse.mine"])
def test_network_file_systems_are_refused(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    device = os.stat(tmp_path).st_dev
    table = tmp_path / "mountinfo"
    number = f"{os.major(device)}:{os.minor(device)}"
    table.write_text(f"36 35 {number} / / rw,noatime shared:1 - {kind} server:/share rw\n")
    monkeypatch.setattr(mounts, "MOUNTS", str(table))
    if kind in ("ext4", "fuse.mine"):
        new(path).close()
        return
    with pytest.raises(lsmkv.IOError, match=f"a store on {kind} cannot be shared") as error:
        new(path)
    assert error.value.errno == errno.EOPNOTSUPP
    assert not path.exists()
    lsmkv.DB(path, create_if_missing=True).close()
    with pytest.raises(lsmkv.IOError, match="cannot be shared"):
        new(path)


def test_the_reasons_can_be_pickled() -> None:
    for error in (
        lsmkv.LockedError("store", 7),
        lsmkv.LockedError("store", None, False, "a reason"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
