"""Tasks that conflict take turns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from gates import PATIENCE

from lsmkv import aio
from lsmkv.engine.db.handles.transaction_turns import FREE_ATTEMPTS


@pytest.mark.parametrize("kind", ["update", "run"])
def test_tasks_that_conflict_take_turns(kind: str) -> None:
    """Function and store are called in turns: no task is called more often than there are tasks,
    but for its attempts before the turn."""
    tasks = 16
    calls = [0] * tasks
    most = [0] * tasks

    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            turns: Any = db._turns
            turns.longest = PATIENCE

            async def increment(own: int) -> None:
                async def slow(old: bytes | None) -> bytes:
                    calls[own] += 1
                    await asyncio.sleep(0)
                    return b"%d" % (int(old or 0) + 1)

                async def slow_run(transaction: aio.Transaction) -> None:
                    transaction.put(b"n", await slow(await transaction.get(b"n")))

                for _ in range(20):
                    calls[own] = 0
                    if kind == "update":
                        await db.update(b"n", slow)
                    else:
                        await db.run(slow_run)
                    most[own] = max(most[own], calls[own])

            await asyncio.gather(*map(increment, range(tasks)))
            assert await db.get(b"n") == b"%d" % (tasks * 20)

    asyncio.run(main())
    assert max(most) <= FREE_ATTEMPTS + tasks


async def test_a_call_inside_a_call_and_a_cancelled_one_hold_up_nobody() -> None:
    async with aio.open_db(":memory:") as db:
        turns: Any = db._turns
        turns.longest = PATIENCE
        calls = 0
        inside = asyncio.Event()

        async def outer(old: bytes | None) -> bytes:
            nonlocal calls
            calls += 1
            if calls <= FREE_ATTEMPTS:
                await db.put(b"k", b"%d" % calls)
                return b""
            inner = db.update(b"k2", lambda old: b"inner")
            child = db.run(lambda transaction: transaction.put(b"k3", b"child"))
            await asyncio.gather(inner, child)
            inside.set()
            await asyncio.sleep(PATIENCE)
            return b""

        task = asyncio.create_task(db.update(b"k", outer))
        async with asyncio.timeout(PATIENCE / 2):
            await inside.wait()
            waiting = asyncio.create_task(db.update(b"k", lambda old: b"waited"))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await waiting == b"waited"
        assert await db.multi_get([b"k2", b"k3"]) == [b"inner", b"child"]
