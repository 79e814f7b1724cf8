"""Transactions of lsmkv.aio."""

from __future__ import annotations

import pytest

import lsmkv
from lsmkv import aio


async def test_transactions_conflict() -> None:
    async with aio.open_db(":memory:") as db:
        await db.put(b"n", b"1")
        async with db.transaction() as one:
            one.put(b"n", b"%d" % (int(await one.get(b"n", b"0")) + 1))
            one.delete(b"none")
            await one.commit()  # and not again at the end of the block
        assert await db.get(b"n") == b"2"
        two = db.transaction()
        await two.__aenter__()
        await two.get(b"n")
        await db.put(b"n", b"9")
        two.put(b"m", b"1")
        with pytest.raises(lsmkv.ConflictError):
            await two.__aexit__(None, None, None)
        assert await db.get(b"m") is None
        async with db.transaction() as three:
            three.put(b"m", b"1")
            three.rollback()
        assert await db.get(b"m") is None
        with pytest.raises(lsmkv.ClosedError):
            await three.get(b"m")
        with pytest.raises(lsmkv.ClosedError):
            await three.__aenter__()
        with pytest.raises(lsmkv.ClosedError, match="not begun"):
            await db.transaction().get(b"m")


async def test_iterators_of_transactions() -> None:
    async with aio.open_db(":memory:") as db:
        for key in (b"a", b"c", b"e"):
            await db.put(key, b"old")
        with pytest.raises(lsmkv.ClosedError, match="not begun"):
            db.transaction().iterator()
        with pytest.raises(ValueError, match="isolation"):
            db.transaction(isolation="none")  # type: ignore[arg-type]
        async with db.transaction() as work:
            work.put(b"b", b"mine")
            work.delete(b"c")
            entries = work.iterator()
            assert [entry async for entry in entries] == [
                (b"a", b"old"),
                (b"b", b"mine"),
                (b"e", b"old"),
            ]
            work.put(b"d", b"later")
            await entries.seek(b"c")
            assert await entries.next() == (b"e", b"old")
            keys = work.iterator(include_value=False, reverse=True)
            assert [key async for key in keys] == [b"e", b"d", b"b", b"a"]
            async for key, _ in work:  # gets take turns with the iterator
                assert await work.get(key) is not None
        with pytest.raises(lsmkv.ClosedError):
            await work.iterator().next()


async def test_a_phantom_conflicts() -> None:
    async with aio.open_db(":memory:") as db:
        await db.put(b"a", b"")
        await db.put(b"b", b"")
        calls = 0

        async def count(work: aio.Transaction) -> int:
            nonlocal calls
            calls += 1
            found = len([key async for key in work.iterator(prefix=b"k:")])
            if calls == 1:
                await db.put(b"k:1", b"")
            work.put(b"count", b"%d" % found)
            return found

        assert await db.run(count) == 1
        assert calls == 2
        calls = 0
        await db.delete(b"k:1")
        assert await db.run(count, isolation="snapshot") == 0
        assert calls == 1
        for chunk, conflicts in ((1, False), (2, True)):
            work = db.transaction()
            await work.__aenter__()
            keys = work.iterator(chunk=chunk, include_value=False)
            assert await keys.next() == b"a"
            work.put(b"new", b"")
            await db.put(b"b", b"")
            if conflicts:
                with pytest.raises(lsmkv.ConflictError):
                    await work.commit()
            else:
                await work.commit()
