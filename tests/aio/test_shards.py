"""A shard set for asyncio."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import lsmkv
import lsmkv.aio
import lsmkv.bulk

PAIRS = {b"%05d" % n: b"v%d" % n for n in range(3000)}


async def test_it_reads_as_the_plain_one_does(tmp_path: Path) -> None:
    lsmkv.bulk.build(PAIRS.items(), tmp_path, shards=3)
    async with lsmkv.aio.open_shards(tmp_path, cache_dir=tmp_path / "cache") as s:
        keys = [b"%05d" % n for n in range(0, 6000, 7)]
        assert await asyncio.gather(*map(s.get, keys)) == [PAIRS.get(key) for key in keys]
        assert await s.multi_get(keys) == [PAIRS.get(key) for key in keys]
        assert [pair async for pair in s] == sorted(PAIRS.items())
        assert [key async for key in s.iterator(prefix=b"012", include_value=False)] == [
            key for key in PAIRS if key.startswith(b"012")
        ]
        async with s.iterator(reverse=True, chunk=10) as iterator:
            assert (await iterator.next())[0] == b"02999"
            assert (await iterator.next())[0] == b"02998"
            assert (await iterator.prev())[0] == b"02998"
        assert await s.get(b"none", b"default") == b"default"
        lsmkv.bulk.build([(b"k", b"v")], tmp_path)
        assert await s.refresh()
        assert (s.version, await s.get(b"k")) == (2, b"v")
    assert s.closed
    with pytest.raises(lsmkv.ClosedError):
        await s.get(b"k")


async def test_what_cannot_be_opened(tmp_path: Path) -> None:
    s = lsmkv.aio.Shards(tmp_path)
    with pytest.raises(lsmkv.ClosedError):
        await s.get(b"k")
    with pytest.raises(lsmkv.NotFoundError):
        await s
    assert s.closed
    with pytest.raises(ValueError, match="only once"):
        await s.open()
