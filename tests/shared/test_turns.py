"""Turns of ``run`` and ``update`` among the processes that share a store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gates import PATIENCE
from member_wire import greeted
from others import Other, new
from threads import background_of
from waiting import wait_until

from lsmkv import ConflictError, SharedDB, Transaction, aio
from lsmkv.engine.db.handles.transaction_turns import FREE_ATTEMPTS, Turns
from lsmkv.shared.frames import FAILED, HEADER, NUMBERS, TURN, frame
from lsmkv.shared.system.shared_page import TURNS
from lsmkv.shared.turns import MemberPlace, _bits_of, _group_of

Start = Callable[..., Other]

LOSING = f"""
import time
calls = 0
def losing(old):
    "Conflicts until it has a turn, and lasts until it may end."
    global calls
    calls += 1
    if calls <= {FREE_ATTEMPTS}:
        db.put(KEY, b"%d" % calls)
    else:
        db.put(b"held", b"1")
        while not db.get(b"end"):
            time.sleep(0.001)
    return b"done"
def losing_run(transaction):
    transaction.put(KEY, losing(transaction.get(KEY)))
"""


def queue(db: SharedDB) -> Any:
    """The queue of the owner, this process."""
    part: Any = db._part
    return part.listener.turns.queue


def word(db: SharedDB) -> int:
    """The word of the page, without the bit that says that there is a queue."""
    part: Any = db._part
    page = part.publishing.page if db.role == "owner" else part.page
    found: int = page.words[TURNS]
    assert found >> 63 == 1
    return found & ((1 << 63) - 1)


def without_time_limit(db: SharedDB) -> None:
    """A machine that is busy elsewhere must not end a turn."""
    queue(db).longest = PATIENCE


@contextmanager
def turn_held(
    db: SharedDB, one: Other, key: bytes = b"k", run: bool = False, conflicts: int = 0
) -> Iterator[None]:
    """Another process has a turn, and conflicts so often in it."""
    one(LOSING.replace("KEY", repr(key)))
    one.ask("db.run(losing_run)" if run else f"db.update({key!r}, losing)")
    wait_until(lambda: db.get(b"held") is not None)
    yield
    db.put(b"end", b"1")
    assert one.answer() == (None if run else b"done")
    assert one("calls") == FREE_ATTEMPTS + conflicts + 1


def more(old: bytes | None) -> bytes:
    return b"%d" % (int(old or 0) + 1)


_COUNTING = """
import time
worst = 0
def count(times, seconds):
    global worst
    for _ in range(times):
        calls = 0
        def body(transaction):
            nonlocal calls
            calls += 1
            for key in (b"one", b"two"):
                transaction.put(key, b"%d" % (int(transaction.get(key, b"0")) + 1))
            time.sleep(seconds)
        db.run(body)
        worst = max(worst, calls)
def count_long():
    count(20, 0.01)
    db.put(b"end", b"1")
    return worst
def count_short():
    times = 0
    while not db.get(b"end"):
        count(1, 0)
        times += 1
    return times, worst
"""


@pytest.mark.parametrize("long_at_owner", [False, True])
def test_a_long_transaction_gets_through(path: Path, other: Start, long_at_owner: bool) -> None:
    """Two processes make short ones on the same keys all the time."""
    owner = other(create_if_missing=True)
    members = [other(), other()]
    owner("db._part.listener.turns.queue.longest = 60.0")
    for one in (owner, *members):
        one(_COUNTING)
        one("db._turns.longest = 60.0")
    long = owner if long_at_owner else members[0]
    short = [one for one in (owner, *members) if one is not long]
    for one in short:
        one.ask("count_short()")
    long.ask("count_long()")
    most = len([owner, *members]) + FREE_ATTEMPTS
    assert long.answer() <= most
    times = 20
    for one in short:
        done, worst = one.answer()
        assert worst <= most
        times += done
    assert owner("db.get(b'one') == db.get(b'two')")
    assert int(owner("db.get(b'one')")) == times


@pytest.mark.parametrize(
    ("run", "wanted", "waits"),
    [
        (False, b"k", True),
        (False, b"other", False),
        (False, None, True),
        (True, b"other", True),
        (True, None, True),
    ],
)
@pytest.mark.parametrize("at_owner", [False, True])
def test_a_turn_excludes_calls_of_other_processes(
    path: Path, other: Start, at_owner: bool, run: bool, wanted: bytes | None, waits: bool
) -> None:
    assert _group_of(b"other") != _group_of(b"k")
    with new(path) as db, SharedDB(path) as member:
        without_time_limit(db)
        called = threading.Event()

        def function(old: object) -> bytes:
            called.set()
            return b"1"

        def call() -> None:
            handle = db if at_owner else member
            if wanted is None:
                handle.run(function)
            else:
                handle.update(wanted, function)

        assert word(member) == 0
        with turn_held(db, other(), run=run):
            assert word(member) == _bits_of(None if run else b"k")
            thread, errors = background_of(call)
            if waits:
                wait_until(lambda: len(queue(db)._queue) == 2)
                member.put(b"plain", b"1")  # takes no turn
                db.put(b"plain", b"2")
                assert not called.is_set()
            else:
                assert called.wait(PATIENCE)
        thread.join()
        assert called.is_set()
        assert errors == []
        wait_until(lambda: word(member) == 0)


def test_a_turn_ends_with_its_process(path: Path, other: Start) -> None:
    with new(path) as db, SharedDB(path) as member:
        without_time_limit(db)
        one = other()
        with pytest.raises(BrokenPipeError), turn_held(db, one):  # noqa: PT012
            thread, errors = background_of(lambda: member.update(b"k", lambda old: b"next"))
            wait_until(lambda: len(queue(db)._queue) == 2)
            one.kill()
            thread.join()
            assert errors == []
            raise BrokenPipeError
        assert db.get(b"k") == b"next"
        assert word(db) == 0


@pytest.mark.parametrize("at_owner", [False, True])
def test_a_turn_of_a_stopped_process_ends(path: Path, other: Start, at_owner: bool) -> None:
    with new(path) as db, SharedDB(path) as member:
        queue(db).longest = 0.2
        one = other()
        with turn_held(db, one, conflicts=1):
            one.stop()
            handle = db if at_owner else member
            assert handle.update(b"k", lambda old: b"next") == b"next"
            one.go_on()
        assert db.get(b"k") == b"done", "it came after them"


def test_a_process_that_waits_and_dies_leaves_the_queue(path: Path, other: Start) -> None:
    with new(path) as db:
        without_time_limit(db)
        waiting = other()
        with turn_held(db, other()):
            waiting.ask("db.update(b'k', lambda old: b'1')")
            wait_until(lambda: len(queue(db)._queue) == 2)
            waiting.kill()
            wait_until(lambda: len(queue(db)._queue) == 1)
        assert db.get(b"k") == b"done"


def test_the_queue_begins_again_with_the_next_owner(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    owner("db._part.listener.turns.queue.longest = 60.0")
    with SharedDB(path) as member, SharedDB(path) as another:
        one = other(may_own=False)
        one(LOSING.replace("KEY", repr(b"k")))
        one.ask("db.update(b'k', losing)")
        wait_until(lambda: member.get(b"held") is not None)
        called = threading.Event()

        def function(old: object) -> bytes:
            called.set()
            return b"next"

        thread, errors = background_of(lambda: another.update(b"k", function))
        wait_until(lambda: len(another._part.joined._used) > 0)  # type: ignore[union-attr]
        assert not called.is_set()
        owner.kill()
        thread.join()
        assert errors == []
        assert another.get(b"k") == b"next"
        member.put(b"end", b"1")
        assert one.answer() == b"done"
        assert one("calls") == FREE_ATTEMPTS + 2, "its owner has gone in the middle of a call"
        wait_until(lambda: word(member) == word(another) == 0)  # a TURN_OVER is not answered


@pytest.mark.parametrize("at_owner", [False, True])
def test_a_nested_call_of_another_handle_does_not_wait_for_its_own_turn(
    path: Path, at_owner: bool
) -> None:
    with new(path) as db, SharedDB(path) as member:
        without_time_limit(db)
        outer, inner = (db, member) if at_owner else (member, db)
        calls = 0

        def function(old: bytes | None) -> bytes | None:
            nonlocal calls
            calls += 1
            if calls <= FREE_ATTEMPTS:
                db.put(b"k", b"%d" % calls)
                return b""
            assert word(member) == _bits_of(b"k")
            inner.run(lambda transaction: transaction.put(b"n", b"1"))
            return inner.update(b"nested", more)

        assert outer.update(b"k", function) == b"1"
        assert calls == FREE_ATTEMPTS + 1
        assert dict(db) == {b"k": b"1", b"n": b"1", b"nested": b"1"}


def test_an_owner_of_an_older_release_has_no_queue(path: Path, other: Start) -> None:
    with new(path) as db, SharedDB(path) as member:
        words = db._part.publishing.page.words  # type: ignore[union-attr]
        words[TURNS] = 0  # as it leaves it
        calls = 0

        def function(old: bytes | None) -> bytes:
            nonlocal calls
            calls += 1
            if calls <= FREE_ATTEMPTS + 2:
                db.put(b"k", b"%d" % calls)
            return more(old)

        assert member.update(b"k", function) == b"8"
        assert words[TURNS] == 0
        assert member._part.turns.place(b"k") is None  # type: ignore[union-attr]


def test_a_reader_takes_no_turn(path: Path, other: Start) -> None:
    with new(path) as db:
        without_time_limit(db)
        reader = other()
        reader("db._part.turns._may_write = False; db._part.may_write = False")
        with turn_held(db, other(), run=True):
            assert reader("db.run(lambda transaction: transaction.get(b'held'))") == b"1"


def test_a_call_that_waits_ends_with_its_store(path: Path, other: Start) -> None:
    with new(path) as db:
        without_time_limit(db)
        waiting = other()
        with turn_held(db, other()):
            waiting("import threading")
            waiting("db2 = SharedDB(db.path)")
            waiting("ended = []")
            waiting(
                "def wait():\n"
                "    try:\n"
                "        db2.update(b'k', lambda old: b'1')\n"
                "    except lsmkv.ClosedError:\n"
                "        ended.append(True)\n"
                "thread = threading.Thread(target=wait)\n"
                "thread.start()\n"
            )
            wait_until(lambda: len(queue(db)._queue) == 2)
            assert waiting("(db2.close(), thread.join(), ended)")[2] == [True]
            wait_until(lambda: len(queue(db)._queue) == 1)


def test_an_interrupted_wait_leaves_the_queue(path: Path, other: Start) -> None:
    with new(path) as db:
        without_time_limit(db)
        waiting = other()
        with turn_held(db, other()):
            waiting("import _thread")
            waiting.ask("db.update(b'k', lambda old: b'1')")
            wait_until(lambda: len(queue(db)._queue) == 2)
            waiting.process.send_signal(2)
            assert waiting.answer().startswith("KeyboardInterrupt")
            wait_until(lambda: len(queue(db)._queue) == 1)
            assert waiting("len(db._part.joined._used)") == 0


def test_a_turn_is_renewed_for_who_came_too_late(path: Path) -> None:
    """One that asks again after its turn has come and ended has another one."""
    with new(path) as db, SharedDB(path) as member:
        queue(db).longest = 0.05
        part: Any = member._part
        place = MemberPlace(part.joined, b"k")
        assert place.wait(1.0)
        wait_until(lambda: not place.holds())
        wait_until(lambda: queue(db).is_free(None))
        assert place.wait(1.0)
        assert len(queue(db)._queue) == 1
        place.end()
        place.end()
        wait_until(lambda: word(db) == 0)


def test_tasks_respect_turns_of_other_processes(path: Path, other: Start) -> None:
    async def main() -> None:
        async with aio.SharedDB(str(path)) as db:
            waiting = asyncio.create_task(db.update(b"k", lambda old: b"task"))
            cancelled = asyncio.create_task(db.update(b"k", lambda old: b"never"))
            while len(queue(owner)._queue) < 2:
                await asyncio.sleep(0.001)
            assert not waiting.done()
            assert await db.update(b"other", more) == b"1"
            cancelled.cancel()
            owner.put(b"end", b"1")
            assert await waiting == b"task"
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert isinstance(db._turns, Turns)

    with new(path) as owner:
        without_time_limit(owner)
        with turn_held(owner, other()):
            asyncio.run(main())
        assert owner.get(b"k") == b"task"
        wait_until(lambda: word(owner) == 0)


@pytest.mark.parametrize("content", [NUMBERS.pack(64, 0), b"", bytes(17)])
def test_a_malformed_turn_ends_the_connection(path: Path, content: bytes) -> None:
    with new(path) as db, greeted(db) as socket:
        socket.sendall(frame(TURN, 9, content))
        answer = socket.recv(65536)
        assert HEADER.unpack_from(answer)[1] == FAILED
        assert socket.recv(1) == b""
        assert db.update(b"k", more) == b"1"


def test_conflicts_without_end_are_raised(path: Path) -> None:
    with new(path) as db, SharedDB(path) as member:

        def foolish(transaction: Transaction) -> None:
            transaction.get(b"k")
            db.put(b"k", b"v")
            transaction.put(b"k", b"w")

        with pytest.raises(ConflictError):
            member.run(foolish)
        wait_until(lambda: word(db) == 0)
