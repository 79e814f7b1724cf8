"""``lsmkv.aio.SharedDB``: the store of several processes, without blocking the event loop."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from others import Other

import lsmkv
from lsmkv import aio
from lsmkv.shared.system.local import SHARES

pytestmark = pytest.mark.skipif(not SHARES, reason="this system shares no store")


async def test_a_member_in_an_event_loop(tmp_path: Path) -> None:
    path = tmp_path / "store"
    owner = Other(path, create_if_missing=True)
    try:
        async with aio.SharedDB(path) as db:
            assert db.role == "member"
            await db.put(b"k", b"v")
            assert owner("db.get(b'k')") == b"v"
            async with db.transaction() as transaction:
                transaction.put(b"n", b"1")
            assert [pair async for pair in db.iterator()] == [(b"k", b"v"), (b"n", b"1")]
            waiting = asyncio.create_task(db.wait_for_change(2))
            await asyncio.sleep(0.05)
            owner("db.put(b'l', b'w')")
            assert await waiting == 3
            assert await db.wait_for_change(3, timeout=0.01) == 3
            assert repr(db).endswith("(member)>")
    finally:
        owner.kill()


async def test_a_warning_of_the_opening_shows_the_users_line(tmp_path: Path) -> None:
    async with aio.SharedDB(tmp_path / "store", create_if_missing=True) as owner:
        made = aio.SharedDB(tmp_path / "store", block_size=8192)
        with pytest.warns(RuntimeWarning, match="block_size is 4096, not 8192") as caught:
            await asyncio.create_task(made.open())
        assert made.options.block_size == owner.options.block_size == 4096
        assert [one.filename for one in caught] == [__file__]
        await made.close()
    async with aio.Cache(tmp_path / "cache"), aio.Cache(tmp_path / "cache", size_limit=1 << 20):
        with pytest.warns(RuntimeWarning, match="block_size is 4096, not 8192") as caught:
            await (await aio.Cache(tmp_path / "cache", block_size=8192)).close()
        assert [one.filename for one in caught] == [__file__]


async def test_a_cancelled_wait(tmp_path: Path) -> None:
    async with aio.SharedDB(tmp_path / "store", create_if_missing=True) as db:
        waiting = asyncio.create_task(db.wait_for_change(0))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert db.role == "owner"


def test_tasks_of_several_processes_lose_no_update(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with contextlib.ExitStack() as ending:
        others = [Other(path, create_if_missing=True) for _ in range(4)]
        for one in others:
            ending.callback(one.kill)
            one(f"""
import asyncio
from lsmkv import aio

def more(old):
    return b"%d" % (int(old or 0) + 1)

async def add(transaction):
    transaction.put(b"run", more(await transaction.get(b"run")))

async def task(store):
    for _ in range(15):
        await store.update(b"update", more)
        await store.run(add)
        await store.prefixed_db(b"part:").update(b"update", more)

async def work():
    async with aio.SharedDB({str(path)!r}) as store:
        await asyncio.gather(task(store), task(store))
""")
        for one in others:
            one.ask("asyncio.run(work())")
        assert [one.answer() for one in others] == [None] * 4
        counted = others[0]("list(db)")
    assert counted == [(b"part:update", b"120"), (b"run", b"120"), (b"update", b"120")]


def test_a_mapping_of_several_processes(tmp_path: Path) -> None:
    with (
        lsmkv.open(tmp_path / "store", "c", shared=True) as first,
        lsmkv.open(tmp_path / "store", "w", shared=True) as second,
        lsmkv.open(tmp_path / "store", "r", shared=True) as third,
    ):
        first["k"] = "v"
        assert second["k"] == third["k"] == b"v"
        with pytest.raises(lsmkv.ReadOnlyError):
            third["k"] = "w"
