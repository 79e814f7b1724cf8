"""Processes that may read the directory of a shared store, but not write to it."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from others import new
from processes import start

import lsmkv

NOBODY = 65534
BECOME = f"""
import os
if os.geteuid() == 0:  # which may write everywhere; what is needed has been imported
    os.setgid({NOBODY})
    os.setuid({NOBODY})
"""
OWN = f"""
import sys, lsmkv, lsmkv.shared, lsmkv.engine.stats, lsmkv.shared.owner_process
{BECOME}
with lsmkv.SharedDB(sys.argv[1], create_if_missing=True) as db:
    for n in range(100):
        db.put(b"%03d" % n, b"v")
    print("open", flush=True)
    for line in sys.stdin:
        exec(line)
        print("done", flush=True)
"""
READ = f"""
import sys, lsmkv, lsmkv.shared, lsmkv.engine.stats, lsmkv.shared.owner_process
{BECOME}
try:
    db = lsmkv.SharedDB(sys.argv[1])
except lsmkv.PermissionDeniedError as error:
    print(error, flush=True)
    sys.exit()
def tried(call):
    try:
        return repr(call())
    except Exception as error:
        return f"{{type(error).__name__}} {{isinstance(error, PermissionError)}}"
calls = (
    lambda: db.put(b"k", b"v"), lambda: db.delete(b"k", sync=True), lambda: db.flush(),
    lambda: db.sync(), lambda: db.compact_range(), lambda: db.checkpoint("copy"),
    lambda: db.update(b"k", lambda old: b"v"),
)
print(db.role, len(list(db)), db.get(b"042"), flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Where nobody can go, too."""
    directory = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
    yield directory
    for path in (directory / "store", directory):
        if path.exists():
            path.chmod(0o755)
    shutil.rmtree(directory)


class Talking:
    """A process that answers each line with one."""

    def __init__(self, script: str, path: Path) -> None:
        self.process = start(script, str(path))
        self.begun = self.answer()

    def __call__(self, line: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().rstrip("\n")


def test_it_reads_as_a_member_and_writes_nothing(place: Path) -> None:
    path = place / "store"
    owner = Talking(OWN, path)
    path.chmod(0o555)
    for file in path.iterdir():
        file.chmod(0o444)
    reader = Talking(READ, path)
    try:
        assert (owner.begun, reader.begun) == ("open", "member 100 b'v'")
        assert owner("db.put(b'new', b'1')") == "done"
        assert reader("db.get(b'new')") == "b'1'"
        assert reader("[tried(call) for call in calls]") == str(["PermissionDeniedError True"] * 7)
        assert reader("tried(lambda: db.run(lambda one: one.get(b'new')))") == "b'1'"
        assert reader("len(db.leases().leases)") == "1"
        assert reader("[one.sequence for one in db.batches(100)]") == "[101]"
        path.chmod(0o755)
        for file in path.iterdir():
            file.chmod(0o644)
        owner("db.flush(); db.put(b'more', b'2')")
        assert reader("db.get(b'more')") == "b'2'"
    finally:
        owner.end()
        reader.end()


def test_it_never_owns(place: Path) -> None:
    path = place / "store"
    owner, second = Talking(OWN, path), Talking(OWN, path)
    path.chmod(0o555)
    reader = Talking(READ, path)
    path.chmod(0o755)
    try:
        owner.end()
        second("db.put(b'new', b'1')")
        assert reader("db.role, db.get(b'new'), db.owner") == str(
            ("member", b"1", second.process.pid)
        )
    finally:
        second.end()
        reader.end()


def test_its_opening_is_refused_at_once_if_nobody_shares_the_store(place: Path) -> None:
    path = place / "store"
    owner = Talking(OWN, path)
    owner.end()
    path.chmod(0o555)
    owners: list[Talking] = []

    def own() -> None:
        path.chmod(0o755)
        owners.append(Talking(OWN, path))

    later = threading.Timer(15.0, own)  # which it would join
    later.start()
    reader = Talking(READ, path)
    later.cancel()
    for one in (reader, *owners):
        one.end()
    assert reader.begun.startswith("[Errno 13] no process owns the shared store, and this one may")
    assert reader.begun.endswith(repr(str(path)))


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="only root starts another user's process",
)
def test_an_owner_of_another_user_is_named(place: Path) -> None:
    path = place / "store"
    owner = Talking(OWN, path)
    expected = f"process {owner.process.pid} of user {NOBODY} answers for this store"
    with pytest.raises(lsmkv.IOError, match=expected) as error:
        lsmkv.SharedDB(path)
    owner.end()
    assert isinstance(error.value, PermissionError)
    assert error.value.filename == str(path)


# Another user, who may read the directory

STRANGER = """
import fcntl, os, socket, sys
from lsmkv.engine.env.lock import OFD_SETLK, pack_flock
os.setgid(65533)
os.setuid(65533)
held = []
def tried(call):
    try:
        call()
        return "done"
    except Exception as error:
        return type(error).__name__
def opened(name):
    held.append(os.open(f"{sys.argv[1]}/{name}", os.O_RDONLY))
    return held[-1]
def lock(name, start):
    fcntl.fcntl(opened(name), OFD_SETLK, pack_flock(fcntl.F_RDLCK, start, 1))
print("here", flush=True)
for line in sys.stdin:
    print(tried(lambda: eval(line)), flush=True)
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that all may enter: another run of pytest closes those above ``tmp_path``."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def stranger(public: Path) -> Iterator[Talking]:
    """A process of another user, who may read that directory."""
    if os.geteuid():
        pytest.skip("only root can be another user")
    talking = Talking(STRANGER, public / "store")
    yield talking
    talking.end()


def test_another_user_who_reads_can_lock_nothing(public: Path, stranger: Talking) -> None:
    path = public / "store"
    with new(path) as db:
        db.put(b"k", b"v")
        path.chmod(0o755)
        (path / "CURRENT").chmod(0o644)
        assert stranger("opened('CURRENT')") == "done"
        for name in ("LOCK", "SHARED"):
            assert stranger(f"lock({name!r}, 1 << 62)") == "PermissionError"
            assert path.joinpath(name).stat().st_mode & 0o777 == 0o600
    assert stranger("lock('LOCK', 0)") == "PermissionError"
    with lsmkv.DB(path) as plain:
        assert plain.get(b"k") == b"v"


def test_files_of_an_older_release_are_taken_from_others(public: Path, stranger: Talking) -> None:
    path = public / "store"
    with new(path):
        for name in ("LOCK", "SHARED"):
            path.joinpath(name).chmod(0o644)
        shutil.copy(path / "SHARED", public)
    shutil.copy(public / "SHARED", path)
    path.chmod(0o755)
    assert stranger("opened('SHARED')") == "done"
    with new(path):
        for name in ("LOCK", "SHARED"):
            assert stranger(f"opened({name!r})") == "PermissionError"


def test_another_user_who_locks_the_directory_stops_no_start(
    public: Path, stranger: Talking
) -> None:
    path = public / "store"
    new(path).close()
    path.chmod(0o755)
    assert stranger("fcntl.flock(opened('.'), fcntl.LOCK_EX | fcntl.LOCK_NB)") == "done"
    with new(path, owner="process") as db:
        db.put(b"k", b"v")
        assert db.role == "member"
