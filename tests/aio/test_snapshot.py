"""Snapshots of lsmkv.aio."""

from __future__ import annotations

import pytest

import lsmkv
from lsmkv import aio


async def test_snapshots_stay_as_they_were() -> None:
    async with aio.open_db(":memory:") as db:
        await db.put(b"k", b"old")
        async with db.snapshot() as entered:
            awaited = await db.snapshot()
            await db.put(b"k", b"new")
            for snapshot in (entered, awaited):
                assert await snapshot.get(b"k") == b"old"
                assert await snapshot.get(b"none", 1) == 1
                assert [pair async for pair in snapshot] == [(b"k", b"old")]
                assert not snapshot.closed
        await awaited.close()
        await awaited.close()
        for snapshot in (entered, awaited):
            assert snapshot.closed
            with pytest.raises(lsmkv.ClosedError):
                await snapshot.get(b"k")
            with pytest.raises(lsmkv.ClosedError):
                await snapshot.open()
        with pytest.raises(lsmkv.ClosedError, match="not taken yet"):
            db.snapshot().iterator()
