"""Parts of a store of lsmkv.aio."""

from __future__ import annotations

import pytest

import lsmkv
from lsmkv import aio


async def test_a_part_does_what_the_plain_part_does() -> None:
    async with aio.open_db(":memory:") as db:
        part = db.prefixed_db(bytearray(b"p:"))
        await part.put(bytearray(b"k"), b"1", sync=True)
        await db.put(b"q", b"outside")
        assert await part.get(b"k") == await db.get(b"p:k") == b"1"
        assert await part.get(b"x", 5) == 5
        assert await part.contains(b"k")
        assert not await part.contains(b"q")
        async with part.snapshot() as before, part.write_batch() as batch:
            batch.put(b"l", b"2")
            batch.delete(b"k")
            inner = lsmkv.WriteBatch()
            inner.put(b"raw", b"3")
            batch.append(inner)
            await batch.write()
            batch.clear()
            assert await before.get(b"k") == b"1"
            assert [pair async for pair in before.iterator()] == [(b"k", b"1")]
        assert [pair async for pair in part] == [(b"l", b"2")]
        assert await db.get(b"raw") == b"3"
        assert [key async for key in part.iterator(prefix=b"l", include_value=False)] == [b"l"]
        nested = part.prefixed_db(b"n")
        await nested.put(b"k", b"v")
        assert (nested.db, nested.prefix) == (db, b"p:n")
        assert await db.get(b"p:nk") == b"v"
        await nested.delete(b"k")
        assert repr(part) == f"<lsmkv.aio.PrefixedDB b'p:' of {db!r}>"
        for wrong in (part.prefixed_db, db.prefixed_db):
            with pytest.raises(TypeError):
                wrong("text")  # type: ignore[arg-type]
    with pytest.raises(lsmkv.ClosedError):
        await part.get(b"k")
