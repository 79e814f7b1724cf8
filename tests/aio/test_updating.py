"""``update`` and ``run`` of a store of lsmkv.aio, and of a part of one."""

from __future__ import annotations

import pytest

import lsmkv
from lsmkv import aio


@pytest.mark.parametrize("prefix", [None, b"p:"])
async def test_update_and_run_take_plain_functions_and_async_ones(prefix: bytes | None) -> None:
    async with aio.open_db(":memory:") as whole:
        db = whole if prefix is None else whole.prefixed_db(prefix)

        async def nothing(old: bytes | None) -> None:
            pass

        assert await db.update(b"k", lambda old: old) is None
        assert await db.update(b"k", lambda old: bytearray(b"1"), sync=True) == b"1"
        assert await db.update(b"k", nothing) is None
        assert not await db.contains(b"k")
        with pytest.raises(TypeError, match="value"):
            await db.update(b"k", lambda old: 1)  # type: ignore[arg-type, return-value]

        def plain(transaction: aio.Transaction) -> str:
            transaction.put(b"k", b"2")
            return "plain"

        async def failing(transaction: aio.Transaction) -> None:
            transaction.put(b"k", b"3")
            raise LookupError

        assert await db.run(plain) == "plain"
        with pytest.raises(LookupError):
            await db.run(failing)
        assert await db.get(b"k") == b"2"
    with pytest.raises(lsmkv.ClosedError):
        await db.update(b"k", nothing)
    with pytest.raises(lsmkv.ClosedError):
        await db.run(plain)


async def test_a_transaction_of_a_part_adds_the_prefix_to_its_keys() -> None:
    async with aio.open_db(":memory:") as db:
        part = db.prefixed_db(b"p:")
        await db.put(b"a", b"outside")
        await part.put(b"a", b"1")

        async def move(work: aio.Transaction) -> list[bytes]:
            work.put(b"b", await work.get(b"a", b""))
            work.delete(b"a")
            assert await work.get(b"none", 5) == 5
            return [key async for key in work.iterator(include_value=False)]

        assert await part.run(move) == [b"b"]
        assert [pair async for pair in db] == [(b"a", b"outside"), (b"p:b", b"1")]


async def test_a_transaction_of_a_part_is_over_with_that_of_its_store() -> None:
    async with aio.open_db(":memory:") as db:
        part = db.prefixed_db(b"p:")

        async def commit(work: aio.Transaction) -> None:
            work.put(b"a", b"1")
            await work.commit()
            with pytest.raises(lsmkv.ClosedError):
                await work.get(b"a")

        def drop(work: aio.Transaction) -> None:
            work.put(b"a", b"2")
            work.rollback()

        await part.run(commit)
        await part.run(drop)
        assert await db.get(b"p:a") == b"1"


async def test_a_function_on_a_part_is_called_again_after_a_conflict() -> None:
    async with aio.open_db(":memory:") as db:
        part = db.prefixed_db(b"p:")
        calls = 0

        async def add(work: aio.Transaction) -> None:
            nonlocal calls
            calls += 1
            old = int(await work.get(b"n", b"0"))
            if calls == 1:
                await part.put(b"n", b"10")
            work.put(b"n", b"%d" % (old + 1))

        await part.run(add)
        assert (calls, await part.get(b"n")) == (2, b"11")
        assert await part.update(b"n", lambda old: None) is None
        assert not await part.contains(b"n")


@pytest.mark.parametrize("prefix", [None, b"p:"])
async def test_an_object_that_comes_back_unchanged_is_not_written(prefix: bytes | None) -> None:
    async with aio.open_db(":memory:") as whole:
        db = whole if prefix is None else whole.prefixed_db(prefix)

        async def same(old: bytes | None) -> bytes | None:
            return old

        await db.put(b"k", b"value")
        before = await whole.sequence()
        assert await db.update(b"k", lambda old: old) == b"value"
        assert await db.update(b"k", same) == b"value"
        assert await db.update(b"none", same) is None
        assert await whole.sequence() == before
        assert await db.update(b"k", same, sync=True) == b"value"
        assert await whole.sequence() == before + 1
        assert (await whole.stats()).log_syncs == 1
