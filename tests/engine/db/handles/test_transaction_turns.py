"""lsmkv.engine.db.handles.transaction_turns: ``update`` and ``run`` succeed in the end."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from threads import background_of, run_threads

import lsmkv
from lsmkv import DB, ConflictError, MemoryEnv, Transaction
from lsmkv.engine.db.handles import transaction_turns as turns_module
from lsmkv.engine.db.handles.transaction_turns import (
    FREE_ATTEMPTS,
    MOST_ATTEMPTS,
    Attempts,
    Turn,
    Turns,
)

THREADS = 16
TIMES = 200


def more(old: bytes | None) -> bytes:
    return b"%d" % (int(old or 0) + 1)


def count_up(transaction: Transaction) -> int:
    count = int(transaction.get(b"n", b"0")) + 1
    transaction.put(b"n", b"%d" % count)
    return count


def without_time_limit(db: DB) -> None:
    """A machine that is busy elsewhere must not end a turn: the bound is for turns that do not."""
    turns: Any = db._turns
    turns.longest = 60.0


@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize("kind", ["update", "run"])
def test_no_caller_is_called_more_often_than_there_are_threads(kind: str) -> None:
    """But for the attempts before its turn: the increments that got lost are done again."""
    most: list[int] = []
    with DB(":memory:") as db:
        without_time_limit(db)

        def increment() -> None:
            worst = 0
            for _ in range(TIMES):
                calls = 0

                def counted(old: bytes | None) -> bytes:
                    nonlocal calls
                    calls += 1
                    return more(old)

                def counted_run(transaction: Transaction) -> int:
                    nonlocal calls
                    calls += 1
                    return count_up(transaction)

                if kind == "update":
                    db.update(b"n", counted)
                else:
                    db.run(counted_run)
                worst = max(worst, calls)
            most.append(worst)

        assert run_threads(*[increment] * THREADS) == []
        assert db.get(b"n") == b"%d" % (THREADS * TIMES)
    assert len(most) == THREADS
    assert max(most) <= FREE_ATTEMPTS + THREADS


def test_update_returns_what_is_there_then() -> None:
    with DB(":memory:") as db:
        seen: list[bytes | None] = []

        def change(to: Any) -> Callable[[bytes | None], Any]:
            def function(old: bytes | None) -> Any:
                seen.append(old)
                return to

            return function

        assert db.update(b"k", change(None)) is None
        assert db.stats().writes == 0, "there was nothing to delete"
        assert db.update(b"k", change(bytearray(b"1"))) == b"1"
        assert db.update(memoryview(b"k"), change(b""), sync=True) == b""
        assert db.stats().log_syncs == 1
        assert db.update(b"k", change(None)) is None
        assert b"k" not in db
        assert seen == [None, None, b"1", b""]
        for wrong in ("text", 1):
            with pytest.raises(TypeError, match="value"):
                db.update(b"k", change(wrong))
        assert b"k" not in db


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_function_that_raises_writes_nothing_and_gives_up_its_turn(error: Any) -> None:
    with DB(":memory:") as db:

        def run(transaction: Transaction) -> None:
            transaction.put(b"k", b"1")
            raise error

        def update(old: bytes | None) -> bytes:
            raise error

        for _ in range(2):
            with pytest.raises(error):
                db.run(run)
            with pytest.raises(error):
                db.update(b"k", update)
        assert dict(db) == {}
        assert db.update(b"k", more) == b"1"


def test_a_function_is_called_again_after_a_conflict() -> None:
    with DB(":memory:") as db:
        calls = 0

        def disturbed(old: bytes | None) -> bytes:
            nonlocal calls
            calls += 1
            if calls < 4:
                db.put(b"k", b"%d" % (calls * 10))
            return more(old)

        assert db.update(b"k", disturbed) == b"31"
        assert calls == 4

        def early(transaction: Transaction) -> str:
            transaction.put(b"k", b"early")
            transaction.commit()
            return "once"

        assert db.run(early) == "once"
        assert db.get(b"k") == b"early"


def test_conflicts_without_end_are_raised() -> None:
    """A function that writes by another call what its transaction reads."""
    with DB(":memory:") as db:
        calls = 0

        def foolish(old: bytes | None) -> bytes:
            nonlocal calls
            calls += 1
            db.put(b"k", b"%d" % calls)
            return b"mine"

        with pytest.raises(lsmkv.ConflictError, match="'k'"):
            db.update(b"k", foolish)
        assert calls == MOST_ATTEMPTS
        assert db.update(b"k", lambda old: b"fine") == b"fine"


def hold_turn(db: DB, key: bytes | None) -> tuple[threading.Event, threading.Thread]:
    """A thread that has a turn, with a function that ends when the event is set."""
    inside, finish = threading.Event(), threading.Event()
    calls = 0

    def function(old: object) -> bytes:
        nonlocal calls
        calls += 1
        if calls <= FREE_ATTEMPTS:
            db.put(key or b"any", b"%d" % calls)
        else:
            inside.set()
            finish.wait()
        return b"held"

    def run(transaction: Transaction) -> None:
        transaction.put(b"any", function(transaction.get(b"any")))

    def body() -> None:
        if key is None:
            db.run(run)
        else:
            db.update(key, function)

    thread, _ = background_of(body)
    assert inside.wait(60)
    return finish, thread


@pytest.mark.parametrize(
    ("held", "wanted", "waits"),
    [
        (b"k", b"k", True),
        (b"k", b"other", False),
        (b"k", None, True),
        (None, b"other", True),
        (None, None, True),
    ],
)
def test_a_turn_excludes_calls_of_the_same_key(
    held: bytes | None, wanted: bytes | None, waits: bool
) -> None:
    with DB(":memory:") as db:
        without_time_limit(db)
        finish, holder = hold_turn(db, held)
        called = threading.Event()

        def function(old: object) -> bytes:
            called.set()
            return b"1"

        def call() -> None:
            if wanted is None:
                db.run(function)
            else:
                db.update(wanted, function)

        thread, errors = background_of(call)
        if waits:
            assert not called.wait(0.3)
            db.put(b"plain", b"1")  # takes no turn
        else:
            assert called.wait(60)
        finish.set()
        thread.join(60)
        holder.join(60)
        assert called.is_set()
        assert errors == []


def test_a_function_that_hangs_does_not_stop_the_others() -> None:
    with DB(":memory:") as db:
        turns: Any = db._turns
        turns.longest = 0.2
        finish, holder = hold_turn(db, b"k")
        assert run_threads(*[lambda: db.update(b"k", more)] * 4) == []
        assert holder.is_alive()
        finish.set()
        holder.join(60)
        assert not holder.is_alive()
        assert db.get(b"k") == b"held", "it came after them"


def test_a_call_inside_a_call_waits_for_no_turn() -> None:
    with DB(":memory:") as db:
        without_time_limit(db)

        def outer(old: bytes | None) -> bytes:
            inner = db.update(b"inner", more)
            db.run(lambda transaction: transaction.put(b"within", b"1"))
            assert inner is not None
            return inner

        finish, holder = hold_turn(db, b"inner")  # its turn is not waited for, either
        assert db.update(b"k", outer) == b"6"
        finish.set()
        holder.join(60)
        assert {b"k": b"6", b"within": b"1"}.items() <= dict(db).items()


@pytest.mark.parametrize("entry", ["a signal handler", "a finalizer", "the function"])
def test_code_that_enters_in_the_middle_of_a_turn_does_not_wait_for_it(entry: str) -> None:
    with DB(":memory:") as db:
        without_time_limit(db)
        entered: list[bytes | None] = []

        def enter(*_: object) -> None:
            entered.append(db.update(b"other", more))
            db.run(count_up)

        class Finalized:
            def __del__(self) -> None:
                enter()

        calls = 0

        def function(old: bytes | None) -> bytes:
            nonlocal calls
            calls += 1
            if calls <= FREE_ATTEMPTS:
                db.put(b"k", b"%d" % calls)  # so that the next call is in a turn
            elif entry == "a signal handler":
                signal.raise_signal(signal.SIGINT)
            elif entry == "a finalizer":
                Finalized()
            else:
                enter()
            return more(old)

        before = signal.signal(signal.SIGINT, enter)
        try:
            assert db.update(b"k", function) == b"6"
        finally:
            signal.signal(signal.SIGINT, before)
        assert entered == [b"1"]
        assert db.get(b"n") == b"1"


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals to threads")
def test_a_signal_handler_enters_while_its_thread_waits_for_a_turn() -> None:
    with DB(":memory:") as db:
        without_time_limit(db)
        finish, holder = hold_turn(db, b"k")

        def handle(number: int, frame: object) -> None:
            db.update(b"k", lambda old: b"handled")
            finish.set()

        before = signal.signal(signal.SIGUSR1, handle)
        main = threading.get_ident()

        def send() -> None:
            turns: Any = db._turns
            while len(turns._queue) < 2:
                pass
            signal.pthread_kill(main, signal.SIGUSR1)

        sending, errors = background_of(send)
        try:
            assert db.update(b"k", lambda old: b"last") == b"last"
        finally:
            signal.signal(signal.SIGUSR1, before)
        sending.join(60)
        holder.join(60)
        assert errors == []
        assert db.get(b"k") == b"last"


@pytest.mark.skipif(lsmkv.COMPILED, reason="compiled code is not interrupted between two steps")
def test_code_that_enters_at_any_line_of_the_queue_does_not_hang() -> None:
    with DB(":memory:") as db:
        without_time_limit(db)
        calls = entered = 0

        def function(old: bytes | None) -> bytes:
            nonlocal calls
            calls += 1
            if calls <= FREE_ATTEMPTS:
                db.put(b"k", b"%d" % calls)
            return more(old)

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal entered
            if frame.f_code.co_filename != turns_module.__file__:
                return None
            if event == "line":
                entered += 1
                db.update(b"n", more)
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            assert db.update(b"k", function) == b"6"
        finally:
            sys.settrace(before)
        assert calls == FREE_ATTEMPTS + 1
        assert entered > 100
        assert db.get(b"n") == b"%d" % entered


def test_callers_that_wait_when_the_store_closes_are_released() -> None:
    db = DB(":memory:")
    without_time_limit(db)
    finish, holder = hold_turn(db, b"k")
    waiting = [background_of(lambda: db.update(b"k", more)) for _ in range(3)]
    turns: Any = db._turns
    while len(turns._queue) < 4:
        pass
    db.close()
    finish.set()
    for thread, errors in waiting:
        thread.join(60)
        assert [type(error) for error in errors] == [lsmkv.ClosedError]
    holder.join(60)
    with pytest.raises(lsmkv.ClosedError):
        db.run(count_up)


def test_a_read_only_store_refuses_writes() -> None:
    env = MemoryEnv()
    DB("/db", create_if_missing=True, env=env).close()
    with DB("/db", env=env, read_only=True) as db:
        with pytest.raises(lsmkv.ReadOnlyError):
            db.update(b"n", more)
        with pytest.raises(lsmkv.ReadOnlyError):
            db.run(count_up)
        assert db.run(lambda transaction: transaction.get(b"n")) is None


def test_a_transaction_of_a_part_adds_the_prefix() -> None:
    with DB(":memory:") as db:
        part = db.prefixed_db(b"a:").prefixed_db(b"b:")

        def change(transaction: Transaction) -> bytes | None:
            with transaction:
                assert "PrefixedTransaction b'a:b:'" in repr(transaction)
                transaction.put(b"k", b"1")
                transaction.put(b"gone", b"1")
                transaction.delete(b"gone")
                return transaction.get(b"k")

        assert part.run(change) == b"1"
        assert dict(db) == {b"a:b:k": b"1"}
        assert part.run(lambda transaction: transaction.rollback()) is None
        assert part.update(b"k", lambda old: None) is None
        assert dict(db) == {}


def test_turns_come_in_order_and_end() -> None:
    turns = Turns()
    came: list[str] = []

    def joined(name: str, key: bytes | None) -> Turn:
        turn = Turn(key, lambda: came.append(name))
        turns.join(turn)
        return turn

    assert turns.is_free(None)
    first, second, other = joined("a1", b"a"), joined("a2", b"a"), joined("b", b"b")
    every = joined("all", None)
    late = joined("b2", b"b")
    assert came == ["a1", "b"]
    assert turns.holds(first)
    assert not turns.holds(second)
    assert turns.is_free(b"c") is False, "one waits that may be about any key"
    turns.leave(other)
    turns.leave(other)
    turns.leave(first)
    assert came == ["a1", "b", "a2"]
    turns.leave(second)
    assert came == ["a1", "b", "a2", "all"]
    turns.leave(every)
    assert came == ["a1", "b", "a2", "all", "b2"]
    assert turns.is_free(b"c")
    assert not turns.is_free(b"b")
    turns.longest = 0.0
    turns.advance()
    assert not turns.holds(late), "it has lasted too long"
    assert turns.is_free(None)


def test_a_call_that_has_not_lost_only_waits_for_those_before_it() -> None:
    """So a queue that has formed under load empties again."""
    turns = Turns()
    first = Turn(None, lambda: None)
    turns.join(first)
    attempts = Attempts(turns, None, nested=False)
    assert attempts.need_turn()
    came: list[bool] = []
    attempts.queue_up(lambda: came.append(True))
    turns.leave(first)
    assert came == [True]
    assert attempts.begin_turn(0.0)
    assert turns.is_free(None), "it has given its turn up, and makes its attempt"
    for _ in range(FREE_ATTEMPTS):
        assert not attempts.need_turn()
        attempts.pause_after(ConflictError("a conflict"))
    assert attempts.need_turn()
    attempts.queue_up(lambda: None)
    assert attempts.begin_turn(0.0)
    assert not attempts.need_turn(), "it has a turn"
    assert not turns.is_free(None)
    attempts.end()
    assert turns.is_free(None)
