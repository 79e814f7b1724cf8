"""Transactions of lsmkv.aio."""

from __future__ import annotations

import asyncio

import pytest

import lsmkv
from lsmkv import aio


def test_transactions_conflict() -> None:
    async def main() -> None:
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

    asyncio.run(main())
