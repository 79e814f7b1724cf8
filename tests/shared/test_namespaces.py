"""Processes of other namespaces, as containers have them: joined, or refused with the reason."""

from __future__ import annotations

import ast
import errno
import json
import os
import pickle
import select
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from others import Other, new
from processes import IS_DARWIN, start
from waiting import wait_until

import lsmkv
from lsmkv.engine.env import mounts
from lsmkv.engine.env.local import LocalEnv
from lsmkv.shared.counting import Counting
from lsmkv.shared.frames import DONE, GREETING, HEADER, NUMBER, frame, json_frame
from lsmkv.shared.joined import Joined
from lsmkv.shared.joining import Owning
from lsmkv.shared.system.local import PAGES, SOCKETS, place_of
from lsmkv.shared.system.shared_file import Head
from lsmkv.shared.system.system import LOCAL

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


def test_the_next_owner_need_not_find_the_page_of_a_member_that_starts_it(
    path: Path, other: Start
) -> None:
    """The owner before was started in another pid namespace, and noted no process id of this one.

    So it is with the workers of a server that root starts, which change their user.
    """
    inside = other(before=unshare(*PROCESSES), owner="process", create_if_missing=True)
    with new(path, owner="process") as db:
        inside("db.put(b'k', b'v')")
        assert db.get(b"k") == b"v"
        inside.kill()  # and the owner with it
        with LocalEnv().open_directory(str(path)) as directory:
            wait_until(lambda: directory.lock_holder("LOCK") is None)
        db.put(b"k", b"w")
        assert db.role == "member"


@pytest.mark.parametrize("kind", [None, "process"])
def test_a_handover_beside_a_member_that_the_asker_cannot_see(
    path: Path, other: Start, kind: str | None
) -> None:
    before = unshare(*PROCESSES)
    owner = other(owner=kind, create_if_missing=True)
    idle = other(owner=kind)
    owner("db.put(b'k', b'v')")
    assert idle("db.get(b'k')") == b"v"
    newcomer = other(before=before, owner=kind, handover=True, write_buffer_size=1 << 17)
    assert newcomer.opened == "open"
    assert newcomer("db.options.write_buffer_size") == 1 << 17
    newcomer("db.put(b'k', b'w')")
    assert idle("db.get(b'k')") == b"w"


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


def hidden(path: Path) -> tuple[str, ...]:
    """The command that starts a process for which something else lies at a path."""
    hide = ("sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(path))
    return (*unshare("-m"), *hide)


STRANGER = """
import json, os, socket, struct, sys
HELLO, FRAME = 1, struct.Struct("<IBQ")
names = [line.split()[-1] for line in open("/proc/net/unix") if f"@lsmkv-{sys.argv[2]}-" in line]
def said(name, kind, content):
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(20)
    made.connect("\\0" + name[1:])
    made.sendall(FRAME.pack(len(content), kind, 1) + content)
    try:
        data, fds, _, _ = socket.recv_fds(made, 65536, 1)
    except ConnectionError:
        return "", []
    return data[FRAME.size:].decode(errors="replace"), fds
common = {
    "comparator": "leveldb.BytewiseComparator",
    "filter policy": "leveldb.BuiltinBloomFilter2",
    "prefix extractor": "none",
}
hello = {"protocol": 1, "revision": 2, "names": common}
print(os.listdir(sys.argv[1]), flush=True)
for name in names:
    for more in ({}, {"proof": None}, {"proof": ""}, {"proof": 32 * "0"}, {"proof": 7}):
        print(said(name, HELLO, json.dumps(hello | more).encode()), flush=True)
    print(said(name, HELLO, json.dumps(hello | {"proof": "\\ud800"}).encode()), flush=True)
    for kind in (4, 8, 3):
        print(said(name, kind, b"{}"), flush=True)
"""
"""Finds the socket by its name alone, without the directory of the store."""


def head_of(db: lsmkv.SharedDB) -> Head:
    assert isinstance(db._part, Owning)
    return db._part.publishing.head


@pytest.mark.skipif(IS_DARWIN, reason="of Linux: names without a file, and /proc")
def test_who_cannot_see_the_directory_does_not_join(path: Path) -> None:
    """A container with the network and the user of its host: it sees the socket's name."""
    with new(path) as db:
        db.put(b"k", b"v")
        token = f"{head_of(db).token:016x}"
        stranger = start(STRANGER, str(path), token, before=hidden(path))
        out, _ = stranger.communicate()
        assert stranger.returncode == 0
        lines = out.decode().splitlines()
        assert lines[0] == "[]"
        answers = [ast.literal_eval(line) for line in lines[1:]]
        refused = ["can read the store's directory" in text for text, _ in answers]
        assert refused == 5 * [True] + 4 * [False], answers
        assert not any(fds for _, fds in answers), "the page was handed over"
        assert (db.members, db.get(b"k")) == ([], b"v")


@pytest.mark.skipif(IS_DARWIN, reason="of Linux: names without a file, and /proc")
def test_a_process_that_takes_the_name_of_a_killed_owner_owns_nothing(
    path: Path, other: Start
) -> None:
    """It saw the name while the owner lived."""
    owner = other(create_if_missing=True)
    owner("db.put(b'k', b'v')")
    name = owner("db._entrance._system.sockets.address_of(db._part.publishing.head.token, 1)")
    with new(path) as member:
        assert (member.role, member.get(b"k")) == ("member", b"v")
        owner.kill()
        taken = SOCKETS.listen(name)
        member.put(b"k", b"w")
        assert member.role == "owner"
        taken.close()


def test_an_owner_shows_that_it_can_read_the_directory(path: Path) -> None:
    """Also where a process has the name of the last one, and ``LOCK`` has another."""
    new(path).close()
    with LocalEnv().open_directory(str(path)) as directory, directory.lock("LOCK"):
        file = place_of(directory).shared_file("SHARED", True)
        head = file.begin_epoch()
        file.announce(head, 1)
        page, reading = PAGES.make_page(head.epoch, head.token)
        taken = SOCKETS.listen(SOCKETS.address_of(head.token, head.epoch))
        asked: list[dict[str, object]] = []

        def answer(proof: str) -> None:
            select.select([taken], [], [])
            accepted = SOCKETS.accept(taken)
            accepted.setblocking(True)
            asked.append(json.loads(accepted.recv(65536)[HEADER.size :]))
            greeting = {"slot": 1, "pid": 1, "file": file.inode(), "proof": proof}
            SOCKETS.send_with(accepted, json_frame(GREETING, 0, greeting), reading)
            if accepted.recv(65536):
                accepted.send(frame(DONE, 1, NUMBER.pack(0)))
            accepted.close()

        def join(proof: str) -> Joined:
            joined = Joined(LOCAL, file, head, {}, 20.0, Counting(LOCAL))
            thread = threading.Thread(target=answer, args=(proof,))
            thread.start()
            try:
                joined.join(file)
            finally:
                thread.join()
            return joined

        proofs = file.proofs()
        assert proofs is not None
        with pytest.raises(ConnectionResetError, match="another process answers"):
            join(proofs.of_member)
        assert [one["proof"] for one in asked] == [proofs.of_member]
        joined = join(proofs.of_owner)
        joined.close()
        joined.page.close()
        for one in (taken, file, page):
            one.close()
        os.close(reading)


@pytest.mark.skipif(IS_DARWIN, reason="of Linux: names without a file, and /proc")
def test_a_member_of_a_release_without_proofs_joins(path: Path) -> None:
    """The system says that it has the file open; and so does one of an owner without them."""
    with new(path) as db:
        os.truncate(path / "SHARED", 17472)
        with new(path) as member:
            member.put(b"k", b"v")
            assert (member.role, db.get(b"k")) == ("member", b"v")


def test_a_member_names_no_path_that_it_cannot_reach(
    path: Path, other: Start, tmp_path: Path
) -> None:
    """In a container that shares the volume, but not the rest of the files."""
    outside = tmp_path / "outside"
    outside.mkdir()
    with lsmkv.TableWriter(outside / "secret.ldb") as table:
        table.add(b"secret", b"s")
    (outside / "text").write_bytes(b"text")
    with new(path) as db:
        inside = other(before=hidden(outside))
        assert inside("db.role") == "member"
        inside("db.put(b'k', b'v')")
        inside(f"db.checkpoint({str(outside / 'copy')!r})")
        assert sorted(os.listdir(outside)) == ["secret.ldb", "text"]
        assert inside(f"dict(lsmkv.DB({str(outside / 'copy')!r}))") == {b"k": b"v"}

        found = []
        for name in ("secret.ldb", "text", "none"):
            file = str(outside / name)
            assert inside(f"db.ingest([{file!r}])").startswith("IOError: [Errno 2]")
            for ends in (None, [], [b""], [b"text"], [bytes(512)]):
                call = f"db._call_owner('ingest', dict(files=[{file!r}]), None, {ends})"
                found.append(inside(call))
            call = f"db._call_owner('checkpoint', dict(path={str(outside / 'new')!r}))"
            found.append(inside(call))
        refused = ("another file or none", "cannot have files ingested", "member cannot call")
        expected = [1, 1, 0, 0, 0, 2] * 3
        expected[9] = -1  # it knows how that one ends, which is no table
        kinds = [
            next((at for at, text in enumerate(refused) if text in str(answer)), -1)
            for answer in found
        ]
        assert kinds == expected, found
        assert sorted(os.listdir(outside)) == ["secret.ldb", "text"]
        assert dict(db) == {b"k": b"v"}


def test_the_reasons_can_be_pickled() -> None:
    for error in (
        lsmkv.LockedError("store", 7),
        lsmkv.LockedError("store", None, False, "a reason"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
