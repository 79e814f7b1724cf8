"""What ``async with`` and ``await`` do with a store, a snapshot and a cache."""

from __future__ import annotations

import pathlib

import pytest

from lsmkv import aio


async def test_an_awaited_store_may_be_entered(tmp_path: pathlib.Path) -> None:
    db = await aio.open_db(tmp_path / "db", create_if_missing=True)
    async with db as same:
        assert same is db
        await db.put(b"k", b"v")
    assert db.closed
    with pytest.raises(ValueError, match="only once"):
        async with db:
            pass
    snapshots = await aio.open_db(tmp_path / "db")
    async with snapshots, await snapshots.snapshot() as snapshot:
        assert await snapshot.get(b"k") == b"v"


async def test_a_closed_cache_is_not_entered_again() -> None:
    cache = await aio.Cache(":memory:", shared=False)
    async with cache as same:
        assert same is cache
    with pytest.raises(ValueError, match="only once"):
        async with cache:
            pass
