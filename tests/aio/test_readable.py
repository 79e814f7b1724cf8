"""What readers of lsmkv.aio share: the arguments of an iterator."""

from __future__ import annotations

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
