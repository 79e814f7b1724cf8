"""A shared store at its limits: connections, descriptors, and processes that stand still."""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from member_wire import connected, greeted, hello, received, write
from others import Other, new
from processes import IS_DARWIN, python

import lsmkv
from lsmkv import OutcomeUnknownError, SharedDB
from lsmkv.shared.connection import Connection
from lsmkv.shared.frames import DONE, FAILED
from lsmkv.shared.joining import Member

Start = Callable[..., Other]

_LIMIT = 256
_LOW = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({_LIMIT}, {_LIMIT}))"


def refusal(connection: socket.socket) -> dict[str, object]:
    """Why the owner has ended a connection."""
    kind, _, content = received(connection)
    assert kind == FAILED
    found: dict[str, object] = json.loads(content)
    return found


def only_connection(db: SharedDB) -> Connection:
    """That of a member's calls, which it has made one after the other."""
    assert isinstance(db._part, Member)
    (found,) = db._part.joined._idle
    return found


# Connections


_MANY = """
import json, resource, socket, sys, time
sys.path.insert(0, sys.argv[2])
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
if most < 8192:
    sys.exit("too few descriptors")
resource.setrlimit(resource.RLIMIT_NOFILE, (8192, most))
import lsmkv
from member_wire import connected, greeted, received, write
from lsmkv.shared.system.shared_page import SLOTS
from lsmkv.shared.frames import DONE, FAILED

SharedDB = lsmkv.SharedDB
with SharedDB(sys.argv[1], create_if_missing=True) as db, SharedDB(sys.argv[1]) as early:
    members = [greeted(db) for _ in range(1000)]
    for at, member in enumerate(members):
        member.sendall(write(at, b"%04d" % at, sync=at % 100 == 0))
    for at, member in enumerate(members):
        assert received(member)[:2] == (DONE, at)
    assert len(list(db)) == 1000 == len(list(early))
    early.put(b"early", b"1")
    taken = len(members) + 2  # the member has one for its calls, and one that stays
    members += [greeted(db) for _ in range(SLOTS - taken)]
    for _ in range(3):
        with connected(db) as late:
            assert received(late)[0] == FAILED
            assert late.recv(1) == b""
    told = set()
    for _ in range(20):
        began = time.monotonic()
        try:
            lsmkv.SharedDB(sys.argv[1]).close()
        except lsmkv.Error as error:
            told.add(str(error))
        assert time.monotonic() - began < 5
    early.put(b"early", b"2")
    assert db.get(b"early") == b"2"
    members.pop().close()
    members.pop().close()
    while True:
        try:
            with SharedDB(sys.argv[1]) as late:
                late.put(b"late", b"1")
            break
        except lsmkv.Error:  # the owner has not noticed yet
            pass
    assert db.get(b"late") == b"1"
    for member in members:
        member.close()
    print(json.dumps(sorted(told)))
"""


def test_a_thousand_connections_and_the_most(path: Path) -> None:
    """The next one is refused with a reason, at once, and the others go on."""
    helpers = str(Path(__file__).parents[1] / "helpers")
    child = python(_MANY, str(path), helpers, check=False)
    if "too few descriptors" in child.stderr:
        pytest.skip("this process may have too few descriptors")
    told = json.loads(child.stdout)
    assert told == ["the owner has 2,048 connections already"]


def joined_when_possible(path: Path) -> SharedDB:
    """A member; the owner may not have noticed yet that others have gone."""
    until = time.monotonic() + 20
    while True:
        try:
            return SharedDB(path, may_own=False)
        except lsmkv.IOError:
            assert time.monotonic() < until
            time.sleep(0.01)


def refused_for_descriptors(path: Path, members: list[SharedDB]) -> bool:
    """Whether another member was refused for want of them; else it is added."""
    try:
        members.append(SharedDB(path, may_own=False, patience=20.0))
        members[-1].put(b"%d" % len(members), b"v")
    except lsmkv.IOError as error:
        return error.errno == errno.EMFILE and "no free descriptors" in str(error)
    return False


def test_an_owner_keeps_descriptors_for_its_files(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True, write_buffer_size=65536)
    owner(_LOW)
    with ExitStack() as stack:
        members: list[SharedDB] = []
        while not refused_for_descriptors(path, members):
            assert len(members) < _LIMIT
        for member in members:
            stack.enter_context(member)
        assert 90 < len(members) < _LIMIT // 2
        for n in range(3):
            for member in members[:-1]:
                member.put(b"%d" % n, bytes(1000))
            assert owner("db.flush()") is None
        assert owner("db.compact_range()") is None
        assert members[0].get(b"2") == bytes(1000)
        for member in members[-10:]:
            member.close()
        with joined_when_possible(path) as late:
            late.put(b"late", b"1")


def test_an_owner_without_a_descriptor_says_so(path: Path, other: Start) -> None:
    """All that are left were taken by the program."""
    owner = other(create_if_missing=True)
    owner(_LOW)
    with SharedDB(path, may_own=False) as early:
        early.put(b"k", b"1")
        owner(
            "import os\nheld = []\n"
            "try:\n    while True: held.append(os.dup(0))\n"
            "except OSError: pass"
        )
        for _ in range(3):
            with pytest.raises(lsmkv.IOError, match="no free descriptors"):
                SharedDB(path, may_own=False, patience=10.0)
        early.put(b"k", b"2")
        owner("[os.close(fd) for fd in held]")
        with SharedDB(path, may_own=False) as late:
            assert late.get(b"k") == b"2"


def test_a_member_without_a_descriptor_fails_in_that_call_alone(path: Path, other: Start) -> None:
    """A second call needs a connection of its own: the first one goes on."""
    wait = (
        "import os, threading\n"
        "found = []\n"
        "thread = threading.Thread(target=lambda: found.append(db.wait_for_change(0)))\n"
        "thread.start()\n"
    )
    exhaust = "held = []\ntry:\n    while True: held.append(os.dup(0))\nexcept OSError: pass\n"
    with new(path) as db:
        member = other(may_own=False)
        member(_LOW)
        member(wait)
        while not db._part.listener._waiting:  # type: ignore[union-attr]
            time.sleep(0.001)
        member(exhaust)
        refused = member("db.put(b'k', b'v')")
        assert refused.startswith("IOError: [Errno 24]")
        assert db.get(b"k") is None
        member("[os.close(fd) for fd in held]")
        db.put(b"k", b"w")
        member("thread.join()")
        assert member("found") == [1]
        assert member("db.put(b'k', b'v')") is None
        assert db.get(b"k") == b"v"


# Members that stand still


def test_a_member_that_asks_and_never_reads_is_dropped(path: Path) -> None:
    """Once there is no room for its answers; until then each of its requests is carried out."""
    with new(path) as db, greeted(db) as silent, greeted(db) as good:
        asked = 0
        try:
            while asked < 20_000:
                silent.sendall(write(asked))
                asked += 1
                while db.sequence < asked:
                    time.sleep(0)
                    if len(db._part.listener._members) < 2:  # type: ignore[union-attr]
                        raise ConnectionResetError
        except ConnectionError:
            pass
        assert 10 < asked < 20_000
        good.sendall(write(1, b"good"))
        assert received(good)[0] == DONE
        assert db.get(b"good") == b"v"


def test_a_member_that_stops_in_the_middle_of_a_request(path: Path) -> None:
    with new(path) as db, greeted(db) as slow, greeted(db) as good:
        message = write(1, b"slow", bytes(100_000))
        slow.sendall(message[:70_000])
        for n in range(100):
            good.sendall(write(n, b"good", b"%d" % n))
            assert received(good)[0] == DONE
        assert db.get(b"slow") is None
        slow.sendall(message[70_000:])
        assert received(slow)[0] == DONE
        assert db.get(b"slow") == bytes(100_000)


def test_a_member_that_is_stopped_while_it_sends(path: Path, other: Start) -> None:
    """It holds up nobody, neither while it is stopped nor when its owner goes meanwhile."""
    with new(path) as db:
        member = other(may_own=False)
        member.ask("db.put(b'large', bytes(40_000_000))")
        time.sleep(0.02)
        member.stop()
        for n in range(50):
            db.put(b"k", b"%d" % n)
        db.flush()
        db.compact_range()
    with new(path) as db:
        assert db.get(b"k") == b"49"
        member.go_on()
        assert member.answer() is None
        assert len(db.get(b"large", b"")) == 40_000_000
        assert member("db.get(b'k')") == b"49"


def test_many_half_requests_are_not_kept_after_their_connection(path: Path) -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    with new(path) as db:
        half = write(1, b"k", bytes(8_000_000))[:-1]
        before = resident()
        for _ in range(20):
            with greeted(db) as one:
                one.sendall(half)
        while db.members:
            time.sleep(0.001)
        assert resident() - before < 100_000_000
        assert db.get(b"k") is None


# An owner that stands still


def test_every_call_that_needs_a_stopped_owner_has_patience(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path, patience=0.3, may_own=False) as db:
        db.put(b"k", b"v")
        transaction = db.transaction()
        transaction.put(b"t", b"1")
        owner.stop()
        calls: list[Callable[[], object]] = [
            lambda: db.put(b"k", b"w"),
            lambda: db.put(b"k", b"w", sync=True),
            db.transaction,
            transaction.commit,
            lambda: db.update(b"n", lambda old: b"1"),
            lambda: new(path, patience=0.3),
            lambda: db.wait_for_change(10),
        ]
        for call in calls:
            began = time.monotonic()
            with pytest.raises(lsmkv.IOError, match="does not answer") as error:
                call()
            assert error.value.errno == errno.ETIMEDOUT
            assert time.monotonic() - began < 20
        assert db.get(b"k") == b"v"
        assert dict(db.iterator()) == {b"k": b"v"}
        owner.go_on()
        db.put(b"k", b"x")
        assert owner("db.get(b'k')") == b"x"
        assert owner("db.members") == [os.getpid()]


_SLOW = """
import time
def slow(*arguments, progress=None, **more):
    tell = progress or arguments[-1]
    tell(1, 2)
    time.sleep(1)  # it is stopped in here
db.compact_range = db._ingest = slow
"""


def test_a_call_that_takes_long_ends_if_its_owner_is_stopped_meanwhile(
    path: Path, other: Start
) -> None:
    owner = other(create_if_missing=True)
    owner(_SLOW)
    with new(path, patience=0.3, may_own=False) as db:
        db.put(b"k", b"v")
        with pytest.raises(lsmkv.IOError, match="does not answer"):
            db.compact_range(progress=lambda *_: owner.stop())
        owner.go_on()
        with lsmkv.TableWriter(path.parent / "more") as table:
            table.add(b"l", b"w")
        with pytest.raises(OutcomeUnknownError, match="does not answer"):
            db.ingest([path.parent / "more"], progress=lambda *_: owner.stop())
        owner.go_on()
        db.compact_range()


_NOT_WRITTEN = (
    OutcomeUnknownError if IS_DARWIN else lsmkv.IOError
)  # macOS does not say what was read


@pytest.mark.parametrize("size", [1, 3_000_000], ids=["whole", "half sent"])
def test_a_write_that_a_stopped_owner_has_not_read_never_happens(
    path: Path, other: Start, size: int
) -> None:
    owner = other(create_if_missing=True)
    with new(path, patience=0.2, may_own=False) as db:
        db.put(b"k", b"v")
        transaction = db.transaction()
        transaction.put(b"t", bytes(size))
        owner.stop()
        with pytest.raises(lsmkv.IOError if size > 1 else _NOT_WRITTEN):
            db.put(b"k", bytes(size))
        with pytest.raises(lsmkv.IOError, match="does not answer"):
            transaction.commit()
        owner.go_on()
        while owner("len(db._part.listener._members)") > 1:
            time.sleep(0.001)
        if not IS_DARWIN:
            assert dict(db) == {b"k": b"v"}
        db.put(b"k", b"w")
        assert owner("db.get(b'k')") == b"w"


@pytest.mark.parametrize("patience", [0.05, 0.3])
def test_a_write_that_the_owner_has_read_may_happen(
    path: Path, other: Start, patience: float
) -> None:
    owner = other(create_if_missing=True)
    with new(path, patience=30.0, may_own=False) as db:
        db.put(b"k", b"v")
        connection = only_connection(db)
        connection.set_patience(patience)
        owner("guard = db._opened.store.lock.writers.guard; guard.acquire()")
        with pytest.raises(OutcomeUnknownError, match=f"process {owner.pid}, .* does not answer"):
            db.put(b"k", b"w")
        owner("guard.release()")
        while db.get(b"k") != b"w":
            time.sleep(0.001)


def test_with_too_little_patience_no_outcome_is_certain(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path, patience=30.0, may_own=False) as db:
        db.put(b"k", b"v")
        connection = only_connection(db)
        connection.set_patience(0.01)
        owner.stop()
        with pytest.raises(OutcomeUnknownError):
            db.put(b"k", b"w")
        owner.go_on()


def test_closing_ends_a_wait_for_a_stopped_owner(path: Path, other: Start) -> None:
    """A call without a time limit ends, and so does one that joins it."""
    first, second = other(create_if_missing=True), other()
    db = new(path, may_own=False)
    first("db.close()")
    second("db.put(b'k', b'v')")
    assert second("db.role") == "owner"
    second.stop()
    failed: list[BaseException] = []

    def put() -> None:
        try:
            db.put(b"k", b"w")  # has to join the second one first
        except lsmkv.Error as error:
            failed.append(error)

    thread = threading.Thread(target=put)
    thread.start()
    time.sleep(0.2)
    db.close()
    thread.join()
    assert len(failed) == 1
    assert isinstance(failed[0], lsmkv.ClosedError | lsmkv.OutcomeUnknownError)
    second.go_on()


def test_unheard_newcomers_of_a_stopped_owner_are_forgotten(path: Path, other: Start) -> None:
    """Their connections are there when it goes on, and lead nowhere."""
    owner = other(create_if_missing=True)
    with new(path, may_own=False) as db:
        owner.stop()
        for _ in range(20):
            with pytest.raises(lsmkv.IOError, match="does not answer"):
                new(path, patience=0.01)
        owner.go_on()
        db.put(b"k", b"v")
        assert owner("db.members") == [os.getpid()]
        assert owner("len(db._part.listener._members)") == 2


def test_bytes_before_a_hello_are_refused(path: Path) -> None:
    with new(path) as db, connected(db) as bad:
        bad.sendall(b"\0" + hello(db))
        assert "message of kind" in str(refusal(bad)["text"])
