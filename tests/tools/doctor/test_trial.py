"""What a directory can do: every trial is made, fails where its call fails, and leaves nothing."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lsmkv.engine.env import lock as lock_module
from lsmkv.tools.doctor.trial import (
    PREFIX,
    beside,
    free_bytes,
    open_file_limit,
    try_directory,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="calls of POSIX are made to fail")

REFUSED = os.strerror(errno.EPERM)


def refuse(*_: Any, **__: Any) -> Any:
    raise PermissionError(errno.EPERM, REFUSED)


def refused_for_directories(call: Callable[[int], None]) -> Callable[[int], None]:
    def sync(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            refuse()
        call(fd)

    return sync


def test_all_works_on_a_local_disk(tmp_path: Path) -> None:
    trials = try_directory(str(tmp_path))
    assert trials[:5] == ("", "", "", "", "")
    assert trials.is_ofd is (sys.platform == "linux")
    assert os.listdir(tmp_path) == []


def test_what_a_killed_trial_left_is_removed_after_an_hour(tmp_path: Path) -> None:
    for name in (f"{PREFIX}old", f"{PREFIX}young", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    for name in (f"{PREFIX}old", "other"):
        os.utime(tmp_path / name, (1, 1))
    try_directory(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == [f"{PREFIX}young", "other"]


@pytest.mark.parametrize(
    ("call", "failing"),
    [
        ("rename", {"renames"}),
        ("link", {"links"}),
        ("write", {"files", "renames", "links"}),
    ],
)
def test_a_call_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, failing: set[str]
) -> None:
    monkeypatch.setattr(os, call, refuse)
    trials = try_directory(str(tmp_path))
    for name in ("files", "renames", "directory_sync", "links", "lock"):
        assert getattr(trials, name) == (REFUSED if name in failing else ""), name
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []


def test_a_directory_that_cannot_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", refused_for_directories(os.fsync))
    trials = try_directory(str(tmp_path))
    assert trials.directory_sync == REFUSED
    assert (trials.files, trials.renames, trials.links, trials.lock) == ("", "", "", "")


def test_locks_that_the_system_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def no_locks(*_: Any) -> Any:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "fcntl", no_locks)
    monkeypatch.setattr(fcntl, "lockf", no_locks)
    trials = try_directory(str(tmp_path))
    assert trials.lock == os.strerror(errno.ENOLCK)
    assert not trials.is_ofd


@pytest.mark.skipif(sys.platform != "linux", reason="OFD locks are Linux's")
def test_a_kernel_without_ofd_locks_has_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = lock_module.fcntl.fcntl

    def old(fd: int, command: int, argument: Any = 0) -> Any:
        if command in (36, 37):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return own(fd, command, argument)

    monkeypatch.setattr(lock_module.fcntl, "fcntl", old)
    trials = try_directory(str(tmp_path))
    assert (trials.lock, trials.is_ofd) == ("", False)


def test_a_log_that_cannot_be_reserved_is_not_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not try_directory(str(tmp_path)).mapped_log:
        pytest.skip("logs are not mapped on this file system")
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    trials = try_directory(str(tmp_path))
    assert not trials.mapped_log
    assert trials[:5] == ("", "", "", "", "")


def test_what_is_read_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: own(fd, bytes(len(data))))
    assert "not what is read" in try_directory(str(tmp_path)).files


def test_a_directory_that_takes_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):
        try_directory(str(tmp_path / "missing"))
    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(PermissionError):
        try_directory(str(tmp_path))


def test_the_scratch_files_are_removed_after_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", interrupt)
    with pytest.raises(KeyboardInterrupt):
        try_directory(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_beside_is_the_directory_above_on_the_same_file_system(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store")
    assert beside(str(tmp_path / "store")) == str(tmp_path.resolve())
    assert beside(str(tmp_path / "link")) == str(tmp_path.resolve())
    assert beside("/") is None
    assert beside(str(tmp_path / "missing")) is None
    if os.path.ismount("/proc"):
        assert beside("/proc") is None


def test_free_bytes(tmp_path: Path) -> None:
    free = free_bytes(str(tmp_path))
    assert free is not None
    assert free > 0
    assert free_bytes(str(tmp_path / "missing")) is None


def test_the_open_file_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    assert open_file_limit() == 256
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert open_file_limit() is None
