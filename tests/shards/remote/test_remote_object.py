"""Ranges of an object, out of the cache on disk and by requests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from memory_objects import MemoryObjects
from threads import run_threads
from waiters import Waiters

from lsmkv.errors import CorruptionError
from lsmkv.shards.remote.disk_cache import PAGE_SIZE, DiskCache
from lsmkv.shards.remote.remote_object import RemoteObject, Source

DATA = random.Random(3).randbytes(5 * PAGE_SIZE + 1234)


@pytest.fixture
def objects() -> MemoryObjects:
    objects = MemoryObjects()
    objects.put("o", DATA)
    return objects


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[DiskCache]:
    cache = DiskCache(tmp_path)
    yield cache
    cache.close()


def remote(objects: MemoryObjects, cache: DiskCache | None, identity: str = "one") -> RemoteObject:
    return RemoteObject(Source(objects, cache), "o", len(DATA), identity)


def pages(objects: MemoryObjects) -> list[tuple[int, int]]:
    """First page and number of bytes of each request, which begins at a page."""
    assert all(offset % PAGE_SIZE == 0 for _, offset, _ in objects.ranges)
    return [(offset // PAGE_SIZE, length) for _, offset, length in objects.ranges]


def test_without_a_cache_a_read_is_a_request_for_its_bytes(objects: MemoryObjects) -> None:
    source = remote(objects, None)
    for offset, length in ((0, 1), (100, 70_000), (len(DATA) - 5, 5), (0, len(DATA))):
        assert source.read(offset, length) == DATA[offset : offset + length]
    assert source.read(7, 0) == b""
    assert objects.ranges == [
        ("o", 0, 1),
        ("o", 100, 70_000),
        ("o", len(DATA) - 5, 5),
        ("o", 0, len(DATA)),
    ]


def test_every_read_with_a_cache_is_right(objects: MemoryObjects, cache: DiskCache) -> None:
    chance = random.Random(4)
    source = remote(objects, cache)
    for _ in range(200):
        offset = chance.randrange(len(DATA))
        length = min(chance.choice([0, 1, 4096, PAGE_SIZE, 100_000]), len(DATA) - offset)
        assert source.read(offset, length) == DATA[offset : offset + length]
    assert sum(length for _, length in pages(objects)) == len(DATA)
    assert source.counters.page_misses == 6
    assert source.counters.page_hits > 100


def test_a_run_of_missing_pages_is_one_request(objects: MemoryObjects, cache: DiskCache) -> None:
    source = remote(objects, cache)
    source.read(2 * PAGE_SIZE + 5, 10)
    assert pages(objects) == [(2, PAGE_SIZE)]
    objects.forget_requests()
    assert source.read(10, len(DATA) - 20) == DATA[10:-10]
    assert pages(objects) == [(0, 2 * PAGE_SIZE), (3, 2 * PAGE_SIZE + 1234)]
    objects.forget_requests()
    assert source.read(0, len(DATA)) == DATA
    assert objects.requests == 0


def test_another_process_finds_the_pages(
    objects: MemoryObjects, cache: DiskCache, tmp_path: Path
) -> None:
    remote(objects, cache).read(0, len(DATA))
    objects.forget_requests()
    later = DiskCache(tmp_path)
    assert remote(objects, later).read(0, len(DATA)) == DATA
    assert objects.requests == 0
    later.close()


def test_an_object_of_another_identity_has_pages_of_its_own(
    objects: MemoryObjects, cache: DiskCache
) -> None:
    remote(objects, cache).read(0, 10)
    other = bytes(len(DATA))
    objects.put("o", other)
    assert remote(objects, cache, "two").read(0, 10) == other[:10]
    assert remote(objects, cache, "one").read(0, 10) == DATA[:10]


def test_a_damaged_page_is_fetched_again(
    objects: MemoryObjects, cache: DiskCache, tmp_path: Path
) -> None:
    source = remote(objects, cache)
    source.read(0, len(DATA))
    for file in tmp_path.glob("??/*"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    objects.forget_requests()
    assert source.read(0, len(DATA)) == DATA
    assert pages(objects) == [(0, len(DATA))]


def test_a_page_of_another_length_is_fetched_again(
    objects: MemoryObjects, cache: DiskCache
) -> None:
    cache.put("one", 0, b"short")
    source = remote(objects, cache)
    assert source.read(0, 100) == DATA[:100]
    assert source.read(0, 100) == DATA[:100]
    assert len(objects.ranges) == 1


@pytest.mark.parametrize("with_cache", [False, True])
def test_readers_of_one_range_share_a_request(
    objects: MemoryObjects, cache: DiskCache, with_cache: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiters = Waiters(monkeypatch)
    objects.hook = lambda kind, name: waiters.expect(5)
    source = remote(objects, cache if with_cache else None)
    results: list[bytes] = []
    assert run_threads(*[lambda: results.append(source.read(50_000, 4096))] * 6) == []
    assert results == [DATA[50_000:54_096]] * 6
    assert objects.counts == {"put": 1, "get_range": 1}
    assert source.counters.shared_reads == 5


@pytest.mark.parametrize("with_cache", [False, True])
def test_what_is_missing_is_damage(
    objects: MemoryObjects, cache: DiskCache, with_cache: bool
) -> None:
    source = remote(objects, cache if with_cache else None)
    objects.put("o", DATA[:-1])
    assert source.read(0, 100) == DATA[:100]
    with pytest.raises(CorruptionError, match=f"should have {len(DATA)}") as caught:
        source.read(len(DATA) - 100, 100)
    assert (caught.value.path, caught.value.offset) == (objects.url_of("o"), len(DATA) - 1)
    objects.delete(["o"])
    with pytest.raises(CorruptionError, match="missing") as caught:
        source.read(2 * PAGE_SIZE, 100)
    assert caught.value.path == objects.url_of("o")


def test_a_failed_request_leaves_nothing_in_the_cache(
    objects: MemoryObjects, cache: DiskCache
) -> None:
    source = remote(objects, cache)
    objects.edit = lambda name, data: data[:-1]
    with pytest.raises(CorruptionError):
        source.read(0, 100)
    objects.edit = lambda name, data: data
    assert source.read(0, 100) == DATA[:100]
    assert cache.puts == 1
