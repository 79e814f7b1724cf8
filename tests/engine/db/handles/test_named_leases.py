"""Named leases in one process: order, limits, holders, and a queue under random operations."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable

import pytest
from threads import background_of, run_threads
from waiting import wait_until

import lsmkv
from lsmkv.engine.db.handles import named_leases
from lsmkv.engine.db.handles.named_leases import (
    NEVER,
    Claim,
    NamedLease,
    NamedLeases,
    Wait,
    Waiter,
    Wish,
    thread_caller,
)
from lsmkv.engine.leased_name import LeasedName


def woken(wish: Wish) -> None:
    """Nobody waits in these tests."""


def wish(
    name: bytes = b"n", permits: int = 1, limit: float | None = None, until: float = NEVER
) -> Wish:
    return Wish(name, permits, limit, until, woken)


class Clock:
    """The time of the queue."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    if lsmkv.COMPILED:
        pytest.skip("compiled code has its own clock")
    monkeypatch.setattr(named_leases, "time", made)
    return made


# The queue


def test_a_name_goes_to_who_has_waited_longest() -> None:
    queue = NamedLeases()
    wishes = [wish() for _ in range(4)]
    for one in wishes:
        queue.ask(one)
    assert [one.permit for one in wishes] == [0, -1, -1, -1]
    assert queue.end(wishes[2]) is False  # it has waited long enough
    assert queue.end(wishes[0]) is True
    assert [one.permit for one in wishes] == [0, 0, -1, -1]
    queue.end(wishes[1])
    assert wishes[3].permit == 0
    queue.check()
    queue.end(wishes[3])
    assert queue.end(wishes[3]) is False
    assert not queue._names


def test_names_are_independent() -> None:
    queue = NamedLeases()
    one, other = wish(b"a"), wish(b"b")
    queue.ask(one)
    queue.ask(other)
    assert (one.permit, other.permit) == (0, 0)


def test_permits_are_numbered() -> None:
    queue = NamedLeases()
    wishes = [wish(permits=3) for _ in range(5)]
    for one in wishes:
        queue.ask(one)
    assert [one.permit for one in wishes] == [0, 1, 2, -1, -1]
    queue.end(wishes[1])
    assert wishes[3].permit == 1
    queue.check()


def test_a_limit_passes(clock: Clock) -> None:
    queue = NamedLeases()
    first, second, third = wish(limit=5.0), wish(limit=2.0), wish()
    for one in (first, second, third):
        queue.ask(one)
    assert queue.advance() == clock.now + 5
    clock.now += 4.9
    queue.advance()
    assert second.permit == -1
    clock.now += 0.1
    assert queue.advance() == clock.now + 2
    assert (first.over, second.permit) == (True, 0)
    assert queue.end(first) is False
    assert second.permit == 0, "the end of a lease that is over is not that of the next one"
    clock.now += 2
    queue.advance()
    assert third.permit == 0
    queue.check()


def test_patience_passes(clock: Clock) -> None:
    queue = NamedLeases()
    holder, hasty, patient = wish(), wish(until=clock.now + 1), wish()
    for one in (holder, hasty, patient):
        queue.ask(one)
    assert queue.advance() == clock.now + 1
    clock.now += 1
    assert queue.advance() == NEVER
    assert hasty.over
    queue.end(holder)
    assert (hasty.permit, patient.permit) == (-1, 0)


def test_no_patience_at_all_gets_what_is_free(clock: Clock) -> None:
    queue = NamedLeases()
    first, second = wish(until=clock.now), wish(until=clock.now)
    queue.ask(first)
    queue.ask(second)
    assert (first.permit, second.permit, second.over) == (0, -1, True)


def test_inherited_leases_are_waited_for(clock: Clock) -> None:
    held = {(b"n", 0), (b"n", 1)}
    looks = 0

    def inherited(name: bytes, permit: int) -> bool:
        nonlocal looks
        looks += 1
        return (name, permit) in held

    queue = NamedLeases(inherited)
    single, counted, other = wish(), wish(b"n", 3), wish(b"free")
    queue.ask(single)
    queue.ask(other)
    queue.ask(counted)
    assert (single.permit, other.permit, counted.permit) == (-1, 0, -1)
    assert len(queue._events) == 1, "however many ask"
    looks = 0
    for _ in range(10):
        clock.now = queue.advance()
    assert looks <= 12
    held.discard((b"n", 0))
    clock.now = queue.advance()
    queue.advance()
    assert (single.permit, counted.permit) == (0, 2)
    queue.check()


def test_events_that_nobody_needs_are_dropped() -> None:
    queue = NamedLeases()
    for _ in range(1000):
        one = wish(limit=1000.0)
        queue.ask(one)
        queue.end(one)
        queue.advance()
    assert len(queue._events) < 100


def test_who_asks_is_told_when_something_comes_earlier() -> None:
    rung: list[int] = []
    queue = NamedLeases(None, lambda: rung.append(1))
    queue.ask(wish(b"a", limit=100.0))
    queue.ask(wish(b"b", limit=200.0))
    assert len(rung) == 1
    queue.ask(wish(b"c", limit=50.0))
    assert len(rung) == 2


def test_the_queue_under_random_operations(clock: Clock) -> None:
    """Nobody holds what another holds, and who has waited longest is first."""
    random_numbers = random.Random(7)
    queue = NamedLeases()
    wishes: list[Wish] = []
    for _ in range(3000):
        clock.now += random_numbers.choice([0, 0, 0.5])
        queue.advance()
        kind = random_numbers.random()
        if kind < 0.5 or not wishes:
            name = random_numbers.choice([b"a", b"b"])
            limit = random_numbers.choice([None, 1.0, 3.0])
            until = random_numbers.choice([NEVER, clock.now, clock.now + 1])
            made = wish(name, 1 if name == b"a" else 3, limit, until)
            queue.ask(made)
            wishes.append(made)
        else:
            queue.end(wishes.pop(random_numbers.randrange(len(wishes))))
        queue.check()
        wishes = [one for one in wishes if not one.over]
        for name, permits in ((b"a", 1), (b"b", 3)):
            mine = [one for one in wishes if one.name == name]
            granted = [one for one in mine if one.permit >= 0]
            assert len({one.permit for one in granted}) == len(granted)
            assert len(granted) == min(permits, len(mine))
            places = [one.permit < 0 for one in mine]
            assert places == sorted(places), "an earlier one waits"


# A store's handle


def test_one_thread_at_a_time_in_the_order_of_arrival() -> None:
    with lsmkv.DB(":memory:") as db:
        order: list[int] = []
        lease = db._hold(b"name")
        assert lease is not None

        def work(number: int) -> None:
            mine = db._hold(b"name")
            assert mine is not None
            order.append(number)
            mine.release()

        threads = []
        for number in range(5):
            threads.append(background_of(lambda number=number: work(number)))
            wait_until(lambda number=number: db._leases.waiting(b"name") == number + 1)
        assert order == []
        assert lease.held
        assert lease.release() is True
        for thread, errors in threads:
            thread.join()
            assert errors == []
        assert order == [0, 1, 2, 3, 4]
        assert lease.release() is False
        assert not lease.held


def test_a_counter_under_a_lease_loses_nothing() -> None:
    with lsmkv.DB(":memory:") as db:
        count = [0]

        def work() -> None:
            for _ in range(200):
                lease = db._hold(b"n", limit=100)
                assert lease is not None
                before = count[0]
                if before % 16 == 0:
                    time.sleep(0)
                count[0] = before + 1
                lease.release()

        assert run_threads(*[work] * 4) == []
        assert count[0] == 800
        db._leases.check()
        assert db._leases._wishes == 0


def test_a_holder_gets_its_lease_once_more() -> None:
    with lsmkv.DB(":memory:") as db:
        first = db._hold(b"n", holder=b"me")
        again = db._hold(b"n", holder=b"me")
        assert first is not None
        assert again is first
        assert db._hold(b"n", holder=b"another", timeout=0) is None
        assert db._hold(b"n", timeout=0) is None
        assert again.release() is True
        assert db._hold(b"n", timeout=0) is None
        assert first.release() is True
        assert not db._holders._leases
        free = db._hold(b"n", timeout=0)
        assert free is not None
        assert free.held


def test_a_holder_whose_limit_has_passed_queues_up_again() -> None:
    with lsmkv.DB(":memory:") as db:
        first = db._hold(b"n", holder=b"me", limit=0.001)
        assert first is not None
        wait_until(lambda: not first.held)
        other = db._hold(b"n", holder=b"another", timeout=60)
        assert other is not None
        assert db._hold(b"n", holder=b"me", timeout=0) is None
        assert first.release() is False
        assert other.held
        other.release()


def test_closing_the_store_ends_leases_and_waits() -> None:
    db = lsmkv.DB(":memory:")
    lease = db._hold(b"n")
    assert lease is not None
    thread, errors = background_of(lambda: db._hold(b"n"))
    wait_until(lambda: db._leases.waiting(b"n") == 1)
    db.close()
    thread.join()
    assert [type(error) for error in errors] == [lsmkv.ClosedError]
    assert not lease.held
    assert lease.release() is False
    with pytest.raises(lsmkv.ClosedError):
        db._hold(b"n")


def test_an_interrupted_wait_leaves_the_queue() -> None:
    with lsmkv.DB(":memory:") as db:
        lease = db._hold(b"n")
        assert lease is not None
        thread, errors = background_of(lambda: _interrupted(db))
        wait_until(lambda: db._leases.waiting(b"n") == 1)
        thread.join()
        assert [type(error) for error in errors] == [KeyboardInterrupt]
        assert db._leases.waiting(b"n") == 0
        db._leases.check()


def _interrupted(db: lsmkv.DB) -> None:
    ident = threading.get_ident()

    def interrupt() -> None:
        import ctypes

        wait_until(lambda: db._leases.waiting(b"n") == 1)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(ident), ctypes.py_object(KeyboardInterrupt)
        )

    threading.Thread(target=interrupt).start()
    db._hold(b"n")


def test_a_waiting_thread_costs_no_processor_time() -> None:
    with lsmkv.DB(":memory:") as db:
        lease = db._hold(b"n")
        assert lease is not None
        spent: list[float] = []

        def wait() -> None:
            before = time.thread_time()
            assert db._hold(b"n", timeout=1.0) is None
            spent.append(time.thread_time() - before)

        assert run_threads(wait) == []
        assert spent[0] < 0.2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_child_releases_nothing() -> None:
    with lsmkv.DB(":memory:") as db:
        lease = db._hold(b"n", holder=b"me")
        assert lease is not None
        child = os.fork()
        if child == 0:
            os._exit(0 if not lease.held and lease.release() is False else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert lease.held
        assert lease.release() is True


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"name": b""}, "1 to 1,024 bytes"),
        ({"name": bytes(1025)}, "1 to 1,024 bytes"),
        ({"permits": 0}, "permits, not 0"),
        ({"limit": 0}, "limit"),
        ({"limit": float("nan")}, "limit"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": NEVER}, "timeout"),
    ],
)
def test_arguments(arguments: dict[str, object], reason: str) -> None:
    with lsmkv.DB(":memory:") as db:
        hold: Callable[..., object] = db._hold
        with pytest.raises(ValueError, match=reason):
            hold(**{"name": b"n"} | arguments)


# Deadlocks


def claimant(
    caller: str, name: bytes, holds: tuple[tuple[bytes, int], ...] = (), permits: int = 1
) -> Wish:
    claims = tuple(Claim(held, permit, caller) for held, permit in holds)
    waiter = Waiter(7, caller, name.decode().upper(), claims)
    return Wish(name, permits, None, NEVER, woken, waiter)


def test_the_wish_that_closes_a_circle_is_refused() -> None:
    queue = NamedLeases()
    held = [claimant("1", b"a"), claimant("2", b"b"), claimant("3", b"c")]
    first, second = claimant("1", b"b", ((b"a", 0),)), claimant("2", b"c", ((b"b", 0),))
    last = claimant("3", b"a", ((b"c", 0),))
    for one in (*held, first, second, last):
        queue.ask(one)
    assert last.over
    assert last.deadlock is not None
    assert last.deadlock.waits == ((7, "A"), (7, "B"), (7, "C"))
    assert str(last.deadlock).startswith("deadlock: process 7 waits for A, which process 7 holds;")
    assert not first.over
    assert not second.over
    queue.check()
    queue.end(held[2])  # as the refused caller goes back
    assert second.permit == 0


def test_a_wish_for_what_its_own_caller_holds_is_refused() -> None:
    queue = NamedLeases()
    again = claimant("1", b"a", ((b"a", 0),))
    for one in (claimant("1", b"a"), again):
        queue.ask(one)
    assert again.deadlock is not None
    assert again.deadlock.waits == ((7, "A"),)


def test_no_circle_while_one_of_the_holders_goes_on() -> None:
    queue = NamedLeases()
    for one in (claimant("1", b"n", permits=2), claimant("2", b"n", permits=2)):
        queue.ask(one)
    queue.ask(claimant("3", b"a"))
    waiting = claimant("1", b"a", ((b"n", 0),))
    patient = claimant("3", b"n", ((b"a", 0),), permits=2)
    for one in (waiting, patient):
        queue.ask(one)
    assert not patient.over, "the second permit may be released"
    last = claimant("2", b"a", ((b"n", 1),))
    queue.ask(last)
    assert last.deadlock is not None
    queue.check()


def test_claims_that_are_out_of_date_close_no_circle() -> None:
    """The lease was released meanwhile, and another caller has it."""
    queue = NamedLeases()
    lost, other = claimant("1", b"a"), claimant("2", b"b")
    queue.ask(lost)
    queue.ask(other)
    queue.ask(claimant("1", b"b", ((b"a", 0),)))
    queue.end(lost)
    queue.ask(claimant("3", b"a"))
    wish = claimant("2", b"a", ((b"b", 0),))
    queue.ask(wish)
    assert not wish.over


def test_claims_of_inherited_leases_close_a_circle() -> None:
    queue = NamedLeases(lambda name, permit: True)
    first, last = claimant("1", b"b", ((b"a", 0),)), claimant("2", b"a", ((b"b", 0),))
    queue.ask(first)
    queue.ask(last)
    assert not first.over
    assert last.deadlock is not None
    assert queue.names() == [LeasedName("B", (None,), (7,))]


def test_names_that_are_waited_for_come_first() -> None:
    queue = NamedLeases()
    for one in (claimant("1", b"a"), claimant("2", b"b"), claimant("3", b"b"), wish(b"c")):
        queue.ask(one)
    pid = os.getpid()
    assert queue.names() == [
        LeasedName("B", (7,), (7,)),
        LeasedName("A", (7,), ()),
        LeasedName("b'c'", (pid,), ()),
    ]


def test_two_threads_that_want_what_the_other_holds() -> None:
    with lsmkv.DB(":memory:") as db:
        mine = db._hold(b"a", owned=True, label="A")
        assert mine is not None
        held = threading.Event()

        def other() -> None:
            lease = db._hold(b"b", owned=True)
            assert lease is not None
            held.set()
            last = db._hold(b"a")
            assert last is not None
            last.release()
            lease.release()

        thread, errors = background_of(other)
        held.wait()
        wait_until(lambda: db._leases.waiting(b"a") == 1)
        with pytest.raises(lsmkv.DeadlockError, match="waits for B, which process") as error:
            db._hold(b"b", label="B", timeout=60)
        assert [pid for pid, _ in error.value.waits] == [os.getpid()] * 2
        mine.release()
        thread.join()
        assert errors == []
        db._leases.check()


def test_what_another_thread_may_release_closes_no_circle() -> None:
    with lsmkv.DB(":memory:") as db:
        lease = db._hold(b"n")
        assert lease is not None
        thread, errors = background_of(lambda: _release_once_waited_for(db, lease))
        again = db._hold(b"n")
        thread.join()
        assert errors == []
        assert again is not None
        assert again.held


def _release_once_waited_for(db: lsmkv.DB, lease: NamedLease) -> None:
    wait_until(lambda: db._leases.waiting(b"n") == 1)
    lease.release()


def test_a_released_lease_is_claimed_no_more() -> None:
    with lsmkv.DB(":memory:") as db:
        lease = db._hold(b"n", holder=b"me", owned=True)
        again = db._hold(b"n", holder=b"me", owned=True)
        assert lease is again is not None
        assert [one.name for one in thread_caller().claims(db._leases)] == [b"n"]
        with lsmkv.DB(":memory:") as other:
            assert thread_caller().claims(other._leases) == ()
        lease.release()
        assert len(thread_caller().claims(db._leases)) == 1
        lease.release()
        assert thread_caller().claims(db._leases) == ()


def test_a_withdrawn_wait_leaves_the_queue() -> None:
    with lsmkv.DB(":memory:") as db:
        lease = db._hold(b"n")
        assert lease is not None
        wait = Wait(thread_caller())
        results: list[object] = []
        thread, errors = background_of(lambda: results.append(db._hold(b"n", wait=wait)))
        wait_until(lambda: db._leases.waiting(b"n") == 1)
        wait.withdraw()
        assert db._leases.waiting(b"n") == 0
        thread.join()
        assert (results, errors) == ([None], [])
        assert db._hold(b"n", wait=wait) is None, "it is withdrawn before it begins"
