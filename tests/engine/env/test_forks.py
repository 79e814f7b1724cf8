"""What a forked child does not keep of its parent."""

from __future__ import annotations

import os
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv.engine.env import forks
from lsmkv.engine.env.local import LocalEnv
from lsmkv.shared.system.local import SHARES, place_of
from lsmkv.shared.system.shared_file import SharedFile, open_shared

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def has(fd: int) -> bool:
    """Whether a child that is forked now has a descriptor."""
    pid = os.fork()
    if pid == 0:
        try:
            os.fstat(fd)
        except OSError:
            os._exit(0)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


def test_a_child_closes_what_is_noted(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "file", os.O_CREAT)
    assert has(fd)
    file = SharedFile(fd, "file")
    assert not has(fd)
    assert os.fstat(fd)  # here it is open
    file.close()


def test_a_fork_waits_for_a_thread_that_is_opening(tmp_path: Path) -> None:
    opened = threading.Event()
    asked = threading.Event()
    files: list[SharedFile] = []

    def open_slowly() -> int:
        fd = os.open(tmp_path / "file", os.O_CREAT)
        opened.set()
        asked.wait()
        return fd

    thread = threading.Thread(target=lambda: files.append(open_shared(open_slowly, "file")))
    thread.start()
    opened.wait()
    threading.Timer(0.05, asked.set).start()  # most often once the fork is waiting
    pid = os.fork()
    if pid == 0:
        os._exit(0 if asked.is_set() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    thread.join()
    files[0].close()


@pytest.mark.skipif(not SHARES, reason="this system shares no store")
def test_a_child_has_no_claim_of_its_parent(tmp_path: Path) -> None:
    """It would keep that of a parent which is killed."""
    one, other = (place_of(LocalEnv().open_directory(str(tmp_path))) for _ in range(2))
    assert one.claim_start()
    ready, go = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go[1])
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    claim: Any = one
    claim._claim.close()  # as a kill does it, without ending the claim first
    assert other.claim_start()
    os.write(go[1], b"x")
    os.waitpid(pid, 0)
    other.end_start()


def test_a_fork_by_the_holder_itself_waits_for_nothing() -> None:
    with forks.changing:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def uwsgi(
    monkeypatch: pytest.MonkeyPatch, worker: int, master: int, count: int, **opt: bool
) -> None:
    """What a process of uWSGI has as the module ``uwsgi``."""
    numbers = {"worker_id": worker, "mule_id": 0, "masterpid": master}
    module = types.SimpleNamespace(numproc=count, opt=opt)
    for name, number in numbers.items():
        setattr(module, name, lambda number=number: number)
    monkeypatch.setitem(sys.modules, "uwsgi", module)  # type: ignore[misc]


def test_the_master_of_uwsgi_opens_no_store_for_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``tests/deploys`` starts the real one."""
    path = tmp_path / "store"
    lsmkv.DB(path, create_if_missing=True).close()
    for master, count in ((os.getpid(), 1), (os.getpid(), 3), (0, 3)):
        uwsgi(monkeypatch, 0, master, count)
        for call in (lsmkv.DB, lsmkv.SharedDB):
            with pytest.raises(lsmkv.Error, match="start uwsgi with --lazy-apps"):
                call(path)
    lsmkv.DB(path, read_only=True).close()
    uwsgi(monkeypatch, 0, os.getpid(), 3, **{"py-call-osafterfork": True})
    lsmkv.DB(path).close()
    for worker, master, count in ((0, 0, 1), (1, os.getpid() + 1, 3), (2, 0, 2)):
        uwsgi(monkeypatch, worker, master, count)
        lsmkv.DB(path).close()
