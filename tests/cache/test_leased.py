"""Transactions of a cache, and results that one caller computes for all."""

from __future__ import annotations

import asyncio
import copy
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

import pytest
from cache_users import CacheUser
from interrupts import interrupted_at_each_step
from threads import background_of, run_threads
from waiting import wait_until

import lsmkv
from lsmkv.cache.cache import Cache
from lsmkv.cache.leased import Flights, _label, lease_name, lease_of_task
from lsmkv.cache.memoizing import MISSING

User = Callable[[], CacheUser]


def waiting(cache: Cache, name: bytes) -> int:
    """How many wait for a lease at the owner, this process."""
    return cache._db._part.listener.leases.queue.waiting(name)  # type: ignore[attr-defined, no-any-return]


TRANSACT = b"cache:transact:\x01"


def test_transactions_of_threads_and_processes_lose_nothing(
    shared_cache: Cache, user: User
) -> None:
    code = """
for _ in range(40):
    with cache.transact():
        cache["n"] = cache.get("n", 0) + 1
"""
    others = [user(), user()]
    for one in others:
        one.ask(code)

    def count() -> None:
        for _ in range(40):
            with shared_cache.transact():
                shared_cache["n"] = shared_cache.get("n", 0) + 1

    assert run_threads(count, count) == []
    assert [one.answer() for one in others] == [None, None]
    assert shared_cache["n"] == 160


def test_a_transaction_within_another_of_its_thread(shared_cache: Cache) -> None:
    with shared_cache.transact(), shared_cache.transact(retry=True):
        shared_cache["n"] = 1
    with shared_cache.transact():
        pass


def test_writes_of_a_block_that_raises_stay(shared_cache: Cache) -> None:
    with pytest.raises(KeyError), shared_cache.transact():
        _set_and_raise(shared_cache)
    assert shared_cache["n"] == 1
    with shared_cache.transact():
        pass


def _set_and_raise(cache: Cache) -> None:
    cache["n"] = 1
    raise KeyError("stop")


def test_a_process_that_dies_leaves_its_transaction(shared_cache: Cache, user: User) -> None:
    one = user()
    one.ask("with cache.transact(limit=None): cache['in'] = 1; time.sleep(600)")
    wait_until(lambda: "in" in shared_cache)
    thread, errors = background_of(lambda: _transact(shared_cache))
    wait_until(lambda: waiting(shared_cache, TRANSACT) == 1)
    one.kill()
    thread.join()
    assert errors == []


def _transact(cache: Cache) -> None:
    with cache.transact():
        pass


def test_a_transaction_that_passes_its_limit_says_so(shared_cache: Cache) -> None:
    with (
        pytest.raises(lsmkv.ConflictError, match=r"limit of 0\.001 seconds"),
        shared_cache.transact(limit=0.001),
    ):
        assert run_threads(lambda: _transact(shared_cache)) == []  # it gets in meanwhile


def test_a_transaction_of_a_cache_that_is_closed_in_it() -> None:
    with Cache(shared=False) as cache:
        with cache.transact():
            cache.close()
        with pytest.raises(lsmkv.ClosedError), cache.transact():
            pass


def test_long_keys_have_short_names() -> None:
    assert lease_name(b"kind", b"key") == b"cache:kind:key"
    assert len(lease_name(b"kind", bytes(1 << 20))) < 60
    assert lease_name(b"kind", bytes(1000)) != lease_name(b"kind", bytes(1001))


# memoize(lock=True)


def test_one_thread_computes_for_all() -> None:
    with Cache(shared=False) as cache:
        calls: list[int] = []
        go = threading.Event()

        @cache.memoize("slow", lock=True)
        def slow(number: int) -> int:
            calls.append(number)
            go.wait()
            return number + 1

        results: list[int] = []
        name = lease_name(b"memoize", cache_key(cache, slow.__cache_key__(1)))
        threads = [background_of(lambda: results.append(slow(1))) for _ in range(4)]
        wait_until(lambda: calls and cache._db._leases.waiting(name) == 3)
        go.set()
        for thread, errors in threads:
            thread.join()
            assert errors == []
        assert (results, calls) == ([2] * 4, [1])
        assert slow(2) == 3


def cache_key(cache: Cache, key: object) -> bytes:
    from lsmkv.cache.keys import encode_key

    return encode_key(key, cache.codec)


def test_after_a_failure_the_next_one_computes() -> None:
    with Cache(shared=False) as cache:
        outcomes = [ValueError("no"), None]

        @cache.memoize("flaky", lock=True)
        def flaky() -> str:
            outcome = outcomes.pop(0)
            if outcome is not None:
                raise outcome
            return "done"

        with pytest.raises(ValueError, match="no"):
            flaky()
        assert flaky() == flaky() == "done"
        assert outcomes == []


def test_a_recursive_function(shared_cache: Cache) -> None:
    @shared_cache.memoize("fibonacci", lock=True)
    def fibonacci(number: int) -> int:
        return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)

    assert fibonacci(20) == 6765


COMPUTES = """
calls = 0
@cache.memoize("slow", lock=True)
def slow():
    global calls
    calls += 1
    cache.incr("begun")
    while "go" not in cache: time.sleep(0.001)
    return "done"
"""


def test_one_process_computes_for_all(shared_cache: Cache, user: User) -> None:
    others = [user() for _ in range(3)]
    for one in others:
        one(COMPUTES)
        one.ask("result = slow(), calls")
    name = lease_name(b"memoize", cache_key(shared_cache, ("slow", (), ())))
    wait_until(lambda: waiting(shared_cache, name) == 2)
    shared_cache["go"] = True
    answers = sorted(one.answer() for one in others)
    assert answers == [("done", 0), ("done", 0), ("done", 1)]
    assert shared_cache["begun"] == 1


def test_another_process_computes_once_the_first_is_killed(shared_cache: Cache, user: User) -> None:
    first, second = user(), user()
    first(COMPUTES)
    second(COMPUTES)
    first.ask("result = slow()")
    wait_until(lambda: shared_cache.get("begun") == 1)
    second.ask("result = slow(), calls")
    name = lease_name(b"memoize", cache_key(shared_cache, ("slow", (), ())))
    wait_until(lambda: waiting(shared_cache, name) == 1)
    first.kill()
    wait_until(lambda: shared_cache.get("begun") == 2)
    shared_cache["go"] = True
    assert second.answer() == ("done", 1)


def test_one_task_computes_for_all(shared_cache: Cache, user: User) -> None:
    calls: list[int] = []

    async def main() -> list[str]:
        go = asyncio.Event()

        @shared_cache.memoize("work", lock=True)
        async def work() -> str:
            calls.append(1)
            await go.wait()
            return "done"

        tasks = [asyncio.create_task(work()) for _ in range(5)]
        while not calls:
            await asyncio.sleep(0)
        go.set()
        return [await task for task in tasks]

    assert asyncio.run(main()) == ["done"] * 5
    assert calls == [1]


def test_a_task_waits_for_another_process_and_can_be_cancelled(
    shared_cache: Cache, user: User
) -> None:
    one = user()
    one(COMPUTES)
    one.ask("result = slow()")
    wait_until(lambda: shared_cache.get("begun") == 1)
    name = lease_name(b"memoize", cache_key(shared_cache, ("slow", (), ())))

    async def main() -> str:
        @shared_cache.memoize("slow", lock=True)
        async def slow() -> str:
            return "computed here"

        task = asyncio.create_task(slow())
        cancelled = asyncio.create_task(slow())
        while waiting(shared_cache, name) == 0:
            await asyncio.sleep(0.001)
        cancelled.cancel()
        task.cancel()
        for each in (task, cancelled):
            with pytest.raises(asyncio.CancelledError):
                await each
        assert waiting(shared_cache, name) == 0, "who was cancelled waits no longer"
        last = asyncio.create_task(slow())
        while waiting(shared_cache, name) == 0:
            await asyncio.sleep(0.001)
        shared_cache["go"] = True
        return await last

    assert asyncio.run(main()) == "done"
    assert one.answer() == "done"
    with_lease = shared_cache._lease(b"memoize", ("slow", (), ()), timeout=60)
    assert with_lease is not None
    assert isinstance(Flights(lambda: shared_cache)._locks, dict)


def enter(cache: Cache) -> None:
    with cache.transact():
        pass


def compute(cache: Cache) -> None:
    Flights(lambda: cache).call("k", lambda: MISSING, lambda: None)


@pytest.mark.parametrize("member", [False, True])
@pytest.mark.parametrize("block", [enter, compute])
def test_an_interrupted_block_keeps_nobody_out(
    shared_cache: Cache, block: Callable[[Cache], None], member: bool
) -> None:
    interrupts = 0
    with copy.copy(shared_cache) if member else nullcontext(shared_cache) as cache:
        for _, interrupted in interrupted_at_each_step(lambda: cache, block):
            interrupts += interrupted
            thread, errors = background_of(lambda: block(cache))
            thread.join(10)
            assert not thread.is_alive(), f"kept out after an interrupt at step {interrupts}"
            assert errors == []
    assert interrupts > 20


# Deadlocks, and waits with an end

CIRCLE = """
@cache.memoize("{mine}", lock=True)
def mine():
    cache["{mine} begun"] = 1
    while "{other} begun" not in cache: time.sleep(0.001)
    return "{mine} of " + other()

@cache.memoize("{other}", lock=True)
def other():
    return "{other}"
"""


def outcomes_of_circle(answers: list[object]) -> None:
    """One call has raised, and the other has computed both results."""
    raised = [one for one in answers if str(one).startswith("DeadlockError")]
    assert len(raised) == 1
    assert "memoize ('p', (), ())" in str(raised[0])
    assert "memoize ('q', (), ())" in str(raised[0])
    assert [one for one in answers if one not in raised] in (["p of q"], ["q of p"])


def test_functions_of_two_processes_that_call_each_other(shared_cache: Cache, user: User) -> None:
    one, another = user(), user()
    one(CIRCLE.format(mine="p", other="q"))
    another(CIRCLE.format(mine="q", other="p"))
    one.ask("result = mine()")
    another.ask("result = mine()")
    answers = [one.answer(), another.answer()]
    outcomes_of_circle(answers)
    (text,) = (str(one) for one in answers if str(one).startswith("DeadlockError"))
    for each in (one, another):
        assert f"process {each.process.pid} waits for" in text
        assert f"which process {each.process.pid} holds" in text


def test_functions_of_two_threads_that_call_each_other() -> None:
    with Cache(shared=False) as cache:
        answers: list[object] = []

        def run(mine: str, other: str) -> None:
            names = {"cache": cache, "time": time}
            exec(CIRCLE.format(mine=mine, other=other), names)
            compute: Any = names["mine"]
            try:
                answers.append(compute())
            except lsmkv.DeadlockError as error:
                answers.append(f"DeadlockError: {error}")

        assert run_threads(lambda: run("p", "q"), lambda: run("q", "p")) == []
        outcomes_of_circle(answers)


def test_a_circle_closed_after_the_owner_has_died(shared_cache: Cache, user: User) -> None:
    """The next owner has granted neither lease."""
    directory = shared_cache.directory
    owner, one, another = user(), user(), user()
    shared_cache.close()
    while owner("result = cache._db.role") == "member":
        owner("cache['owner'] = 1")
    for each, name in ((one, "a"), (another, "b")):
        assert each("result = cache['owner']") == 1
        each(f"held = Lock(cache, {name!r}); held.__enter__()")
    owner.kill()
    one.ask("Lock(cache, 'b').__enter__()")
    with lsmkv.Cache(directory, eviction="none") as cache:
        wait_until(lambda: any(name.waiters for name in names_of(cache)))
        text = another("Lock(cache, 'a').__enter__()")
        assert text.startswith("DeadlockError: deadlock: process")
        another("held.release()")
        assert one.answer() is None


def names_of(cache: Cache) -> tuple[lsmkv.LeasedName, ...]:
    db = cache._db
    assert isinstance(db, lsmkv.SharedDB)
    return db.leases().names


def test_a_circle_of_a_transaction_and_a_function(shared_cache: Cache, user: User) -> None:
    one = user()
    one(COMPUTES.replace('return "done"', "cache.transact().__enter__()"))
    one.ask("slow()")
    wait_until(lambda: shared_cache.get("begun") == 1)
    with shared_cache.transact():
        shared_cache["go"] = True
        wait_until(lambda: waiting(shared_cache, TRANSACT) == 1)

        @shared_cache.memoize("slow", lock=True)
        def slow() -> str:
            return "here"

        with pytest.raises(lsmkv.DeadlockError, match=r"holds; process .* waits for transact"):
            slow()
    assert one.answer() is None


def test_a_task_that_asks_for_what_it_computes(shared_cache: Cache) -> None:
    async def main() -> None:
        @shared_cache.memoize("f", lock=True)
        async def f(number: int) -> int:
            return await f(1 - number)

        with pytest.raises(lsmkv.DeadlockError, match=r"'f', \(1,\), \(\)") as error:
            await f(1)
        assert len(error.value.waits) == 1

        @shared_cache.memoize("g", lock=True)
        async def g() -> int:
            return await g()

        with pytest.raises(lsmkv.DeadlockError, match=r"'g', \(\), \(\)"):
            await g()

    asyncio.run(main())


def test_tasks_that_call_each_other(shared_cache: Cache) -> None:
    async def main() -> None:
        begun = {"p": asyncio.Event(), "q": asyncio.Event()}

        def function(mine: str, other: str) -> Callable[[], Awaitable[str]]:
            @shared_cache.memoize(mine, lock=True)
            async def compute() -> str:
                begun[mine].set()
                await begun[other].wait()
                return f"{mine} of {await functions[other]()}"

            return compute

        functions = {"p": function("p", "q"), "q": function("q", "p")}
        found = await asyncio.gather(functions["p"](), functions["q"](), return_exceptions=True)
        assert any(isinstance(one, lsmkv.DeadlockError) for one in found)

    asyncio.run(main())


def test_tasks_that_compute_other_results_wait_for_one(shared_cache: Cache) -> None:
    calls: list[int] = []

    async def main() -> None:
        @shared_cache.memoize("shared part", lock=True)
        async def shared_part() -> int:
            calls.append(1)
            await asyncio.sleep(0)
            return 7

        @shared_cache.memoize("whole", lock=True)
        async def whole(number: int) -> int:
            return number + await shared_part()

        assert await asyncio.gather(*(whole(n) for n in range(8))) == list(range(7, 15))

    asyncio.run(main())
    assert calls == [1]


def test_a_blocked_thread_keeps_its_tasks_from_releasing(shared_cache: Cache) -> None:
    @shared_cache.memoize("f", lock=True)
    def plain() -> None:
        pass

    @shared_cache.memoize("f", lock=True)
    async def f() -> None:
        plain()

    with pytest.raises(lsmkv.DeadlockError):
        asyncio.run(f())


def test_who_waits_for_long_enough_raises_a_timeout_error(shared_cache: Cache, user: User) -> None:
    one = user()
    one(COMPUTES)
    one.ask("result = slow()")
    wait_until(lambda: shared_cache.get("begun") == 1)

    @shared_cache.memoize("slow", lock=True, timeout=0.01)
    def slow() -> str:
        return "here"

    @shared_cache.memoize("slow", lock=True, timeout=0.01)
    async def slow_task() -> str:
        return "here"

    async def both() -> list[str | BaseException]:
        return await asyncio.gather(slow_task(), slow_task(), return_exceptions=True)

    with pytest.raises(TimeoutError, match=r"waited 0\.01 seconds for memoize") as error:
        slow()
    assert isinstance(error.value, lsmkv.IOError)
    assert [type(one).__mro__[1] for one in asyncio.run(both())] == [lsmkv.IOError] * 2
    with shared_cache.transact():
        one_more = "with cache.transact(timeout=0.01): pass"
        assert "waited 0.01 seconds for transact" in user()(one_more)
    shared_cache["go"] = True
    assert one.answer() == "done"
    with pytest.raises(ValueError, match="requires lock=True"):
        shared_cache.memoize(timeout=1)


def test_a_task_that_is_cancelled_just_after_the_grant_releases(
    shared_cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = shared_cache._lease(b"memoize", "k")
    assert held is not None
    name = lease_name(b"memoize", cache_key(shared_cache, "k"))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        create = loop.create_future

        def created() -> asyncio.Future[Any]:
            future = create()
            future.add_done_callback(lambda _: task.cancel())
            return future

        monkeypatch.setattr(loop, "create_future", created)
        task = asyncio.create_task(lease_of_task(shared_cache, b"memoize", "k"))
        while waiting(shared_cache, name) == 0:
            await asyncio.sleep(0.001)
        held.release()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert shared_cache._lease(b"memoize", "k", timeout=0) is not None


def test_labels_are_short_whatever_the_key() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise ValueError("no")

    assert _label(b"transact", None) == "transact"
    assert _label(b"Lock", "report") == "Lock 'report'"
    assert len(_label(b"memoize", ("f", "x" * 100_000, None))) < 200
    assert "Odd instance" in _label(b"memoize", ("f", Odd(), None))
