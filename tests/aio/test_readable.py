"""What readers of lsmkv.aio share: an iterator's arguments, ``async with`` and ``await``."""

from __future__ import annotations

import pathlib

import pytest

from lsmkv import aio


async def test_wrong_chunks_are_refused() -> None:
    async with aio.open_db(":memory:") as db:
        with pytest.raises(ValueError, match="chunk"):
            db.iterator(chunk=0)


async def test_wrong_arguments_of_an_iterator_raise_at_once() -> None:
    async with aio.open_db(":memory:") as db:
        for wrong in ({"start": "text"}, {"prefix": 3}, {"begin": b"a"}, {"limit": "5"}):
            with pytest.raises(TypeError):
                db.iterator(**wrong)  # type: ignore[call-overload]
        with pytest.raises(ValueError, match="negative"):
            db.iterator(limit=-1)


async def test_an_iterator_has_the_bounds_of_its_call() -> None:
    async with aio.open_db(":memory:") as db:
        await db.put(b"a", b"1")
        start = bytearray(b"a")
        iterator = db.iterator(start=start)
        start[:] = b"b"
        assert [pair async for pair in iterator] == [(b"a", b"1")]


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
