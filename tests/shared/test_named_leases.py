"""Named leases of several processes: order, deaths, limits, and owners that come and go."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from member_wire import greeted
from others import Other, new
from threads import background_of
from waiting import wait_until

import lsmkv
from lsmkv import IOError, SharedDB
from lsmkv.engine.db.handles.named_leases import NamedLease
from lsmkv.shared.frames import FAILED, HEADER, HOLD, json_frame
from lsmkv.shared.named_leases import _moment_after, _number_of

Start = Callable[..., Other]
TAKE = "(lease := db._hold(b'n')) is not None and lease.held"


def held(db: SharedDB, name: bytes = b"n", **arguments: Any) -> NamedLease:
    """A lease, which this process gets."""
    lease = db._hold(name, **arguments)
    assert lease is not None
    return lease


def waiting(db: SharedDB, name: bytes = b"n") -> int:
    """How many wait for a name at the owner, this process."""
    return db._part.listener.leases.queue.waiting(name)  # type: ignore[union-attr]


def test_processes_get_a_name_in_the_order_of_arrival(path: Path, other: Start) -> None:
    with new(path) as db:
        lease = held(db)
        others = [other() for _ in range(3)]
        for number, one in enumerate(others):
            one.ask("lease = db._hold(b'n')")
            wait_until(lambda number=number: waiting(db) == number + 1)
        thread, errors = background_of(lambda: _take_and_release(db))
        wait_until(lambda: waiting(db) == 4)
        assert lease.release() is True
        for one in others:
            assert one.answer() is None
            assert one("lease.held, lease.release(), lease.held") == (True, True, False)
        thread.join()
        assert errors == []
        held(db, timeout=0).release()


def test_a_wait_ends_if_the_owner_is_stopped_meanwhile(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    owner("lease = db._hold(b'n')")
    with new(path, patience=0.3, may_own=False) as db:
        threading.Timer(0.2, owner.stop).start()
        with pytest.raises(IOError, match="does not answer"):
            db._hold(b"n")
        owner.go_on()


def _take_and_release(db: SharedDB) -> None:
    held(db).release()


def test_a_lease_ends_with_its_process(path: Path, other: Start) -> None:
    with new(path) as db:
        holder, waiter = other(), other()
        assert holder(TAKE) is True
        assert db._hold(b"n", timeout=0) is None
        assert waiter("db._hold(b'n', timeout=0.01) is None") is True
        waiter.ask(TAKE)
        wait_until(lambda: waiting(db) == 1)
        holder.kill()
        assert waiter.answer() is True
        waiter("db.close()")
        assert waiter("lease.held, lease.release()") == (False, False)
        assert held(db, timeout=60).release()


def test_a_waiting_process_that_dies_leaves_the_queue(path: Path, other: Start) -> None:
    with new(path) as db:
        lease = held(db)
        first, second = other(), other()
        first.ask(TAKE)
        wait_until(lambda: waiting(db) == 1)
        second.ask(TAKE)
        wait_until(lambda: waiting(db) == 2)
        first.kill()
        wait_until(lambda: waiting(db) == 1)
        lease.release()
        assert second.answer() is True


def test_a_limit_ends_a_lease_of_a_stopped_process(path: Path, other: Start) -> None:
    with new(path) as db:
        holder = other()
        holder("lease = db._hold(b'n', limit=0.2)")
        holder.stop()
        lease = held(db, timeout=60)
        holder.go_on()
        assert holder("lease.held, lease.release()") == (False, False)
        assert lease.held, "the end of a lease that is over is not that of the next one"
        assert db._hold(b"n", timeout=0) is None


def test_permits_are_counted_over_processes(path: Path, other: Start) -> None:
    with new(path) as db:
        one, another = other(), other()
        assert one("lease = db._hold(b'n', permits=2)") is None
        mine = held(db, permits=2)
        assert another("db._hold(b'n', permits=2, timeout=0) is None") is True
        assert {mine.permit, one("lease.permit")} == {0, 1}
        mine.release()
        assert another("db._hold(b'n', permits=2, timeout=0).held") is True


def test_a_holder_of_one_process_is_not_that_of_another(path: Path, other: Start) -> None:
    with new(path) as db:
        one = other()
        hold = "db._hold(b'n', holder=b'me', timeout=0)"
        assert one(f"lease = {hold}; again = {hold}") is None
        assert one("again is lease") is True
        assert db._hold(b"n", holder=b"me", timeout=0) is None
        assert one("lease.release()") is True
        assert db._hold(b"n", holder=b"me", timeout=0) is None
        assert one("lease.release()") is True
        assert held(db, holder=b"me", timeout=0)


def test_a_waiting_member_costs_no_processor_time(path: Path, other: Start) -> None:
    with new(path) as db:
        assert held(db)
        one = other()
        one("import time; before = time.process_time()")
        assert one("db._hold(b'n', timeout=1.0) is None") is True
        assert one("time.process_time() - before") < 0.3


# Owners that go


@pytest.mark.parametrize("cleanly", [False, True])
def test_a_lease_outlives_its_owner(path: Path, other: Start, cleanly: bool) -> None:
    owner, holder = other(create_if_missing=True), other()
    assert owner("db.role") == "owner"
    assert holder(TAKE) is True
    end(owner, cleanly)
    with new(path, may_own=True) as db:  # which is nobody's member before
        wait_until(lambda: db.role == "owner")
        assert db._hold(b"n", timeout=0) is None
        assert db._hold(b"n", timeout=0.1) is None
        assert held(db, b"another", timeout=0)
        assert holder("lease.held") is True  # it has not even noticed
        assert holder("db.put(b'k', b'v'); db.role") is None
        assert db._hold(b"n", timeout=0) is None
        thread, errors = background_of(lambda: _take_and_release(db))
        wait_until(lambda: waiting(db) == 1)
        assert holder("lease.release()") is True
        thread.join()
        assert errors == []


def end(one: Other, cleanly: bool) -> None:
    if cleanly:
        one("db.close()")
    else:
        one.kill()


def test_a_lease_of_a_member_that_becomes_the_owner(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with SharedDB(path) as db:
        lease = held(db, holder=b"me")
        waiter = other(may_own=False)
        waiter.ask(TAKE)
        owner.kill()
        db.put(b"k", b"v")
        assert db.role == "owner"
        wait_until(lambda: waiting(db) == 1)
        assert lease.held
        assert db._hold(b"n", holder=b"me") is lease
        assert lease.release()
        assert lease.release()
        assert waiter.answer() is True


def test_a_holder_that_dies_after_its_owner(path: Path, other: Start) -> None:
    owner, holder = other(create_if_missing=True), other()
    holder(TAKE)
    owner.kill()
    with SharedDB(path) as db:
        assert db.role == "owner"
        assert db._hold(b"n", timeout=0) is None
        holder.kill()
        assert held(db, timeout=60)


def test_the_limit_of_a_lease_from_before_passes(path: Path, other: Start) -> None:
    owner, holder = other(create_if_missing=True), other()
    holder("lease = db._hold(b'n', limit=1.0)")
    holder.stop()
    owner.kill()
    with SharedDB(path) as db:
        before = time.monotonic()
        lease = held(db, timeout=60)
        assert time.monotonic() >= before
        holder.go_on()
        assert holder("lease.held, lease.release()") == (False, False)
        assert lease.held


def test_what_the_owner_held_ends_with_it(path: Path, other: Start) -> None:
    owner, waiter = other(create_if_missing=True), other()
    owner(TAKE)
    waiter.ask(TAKE)
    owner.kill()
    assert waiter.answer() is True
    assert waiter("lease.held, db.role") == (True, "owner")


def test_counted_leases_outlive_their_owner(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    holders = [other(may_own=False) for _ in range(2)]
    for one in holders:
        one("lease = db._hold(b'n', permits=3)")
    owner.kill()
    with SharedDB(path) as db:
        third = held(db, permits=3, timeout=0)
        assert third.permit == 2
        assert db._hold(b"n", permits=3, timeout=0) is None
        holders[0]("lease.release()")
        fourth = held(db, permits=3, timeout=60)
        assert fourth.permit in (0, 1)


COUNT = """
for _ in range({times}):
    lease = db._hold(b'n')
    value = int(db.get(b'count', b'0'))
    db.put(b'count', b'%d' % (value + 1))
    done = lease.release()
"""


def test_owners_are_killed_while_processes_count(path: Path, other: Start) -> None:
    """A Get and a put under the lease lose nothing, whichever process owns the store."""
    owner = other(create_if_missing=True, owner="process")
    counters = [owner, *(other(owner="process") for _ in range(2))]
    for one in counters:
        one.ask(COUNT.format(times=60))
    with SharedDB(path, owner="process") as db:
        for kill in range(3):
            wait_until(lambda kill=kill: int(db.get(b"count", b"0")) >= 20 * (kill + 1))
            kill_owner(db)
        for one in counters:
            assert one.answer() is None
        assert db.get(b"count") == b"180"


def kill_owner(db: SharedDB) -> None:
    try:
        os.kill(db.owner, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it is dead, and this process has not noticed yet


# What no member sends


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"name": "zz", "permits": 1},
        {"name": "", "permits": 1},
        {"name": 7, "permits": 1},
        {"name": "00", "permits": 0},
        {"name": "00", "permits": 1.5},
        {"name": "00", "permits": 1, "limit": -1.0},
        {"name": "00", "permits": 1, "limit": "x"},
        {"name": "00", "permits": 1, "timeout": float("inf")},
        {"name": "00", "permits": 1, "caller": 7},
        {"name": "00", "permits": 1, "label": ["x"]},
        {"name": "00", "permits": 1, "claims": {}},
        {"name": "00", "permits": 1, "claims": [["zz", 0, "1"]]},
        {"name": "00", "permits": 1, "claims": [["00", 0]]},
        {"name": "00", "permits": 1, "claims": [["00", "0", "1"]]},
    ],
)
def test_a_malformed_hold_ends_the_connection(path: Path, asked: dict[str, object]) -> None:
    with new(path) as db, greeted(db) as socket:
        socket.sendall(json_frame(HOLD, 9, asked))
        answer = socket.recv(65536)
        assert HEADER.unpack_from(answer)[1] == FAILED
        assert socket.recv(1) == b""
        db.put(b"k", b"v")


def test_two_processes_that_want_what_the_other_holds(path: Path, other: Start) -> None:
    with new(path) as db:
        one, another = other(), other()
        one("first = db._hold(b'a', owned=True, label='a')")
        another("first = db._hold(b'b', owned=True, label='b')")
        one.ask("second = db._hold(b'b', label='b')")
        wait_until(lambda: waiting(db, b"b") == 1)
        text = another("db._hold(b'a', label='a')")
        assert text == (
            f"DeadlockError: deadlock: process {another.pid} waits for a, which process {one.pid}"
            f" holds; process {one.pid} waits for b, which process {another.pid} holds"
        )
        another("first.release()")
        assert one.answer() is None


def test_an_owner_that_does_not_know_the_waits(path: Path, other: Start) -> None:
    """A member tells an owner of revision 1 nothing of them, and waits as before."""
    with new(path) as db:
        one = other()
        one("db._part.joined.revision = 1")
        one("first = db._hold(b'a', owned=True, label='a')")
        assert db.leases().names == (lsmkv.LeasedName("b'a'", (one.pid,), ()),)
        assert one("db._hold(b'a', timeout=0.01) is None") is True
        one("first.release()")
        assert held(db, b"a", timeout=0).release()


def test_a_withdrawn_wait_of_a_member_leaves_the_queue(path: Path, other: Start) -> None:
    with new(path) as db:
        lease = held(db)
        one = other()
        one(
            "import threading; from lsmkv.engine.db.handles.named_leases import Wait, thread_caller"
        )
        one("wait = Wait(thread_caller()); results = []")
        one("waiting = threading.Thread(target=lambda: results.append(db._hold(b'n', wait=wait)))")
        one("waiting.start()")
        wait_until(lambda: waiting(db) == 1)
        one("wait.withdraw(); waiting.join()")
        assert one("results, db.get(b'k')") == ([None], None)
        wait_until(lambda: waiting(db) == 0)
        lease.release()


def test_a_reader_gets_no_lease(path: Path, other: Start) -> None:
    with new(path) as db:
        one = other()
        assert one("db._part.may_write") is True
        one("db._part.may_write = False")
        assert one("db._hold(b'n')").startswith("PermissionDeniedError")
        assert held(db, timeout=0)


def test_numbers_of_names_and_moments() -> None:
    assert _number_of(b"n", 0) != _number_of(b"n", 1)
    assert 0 <= _number_of(b"x" * 1024, 1 << 19) < 1 << 29
    assert _moment_after(float("inf")) == (1 << 31) - 1
    assert _moment_after(12.34) >= 124
    assert _moment_after(1e12) == (1 << 31) - 1
