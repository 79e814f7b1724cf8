"""The scans among the reads of one file."""

from __future__ import annotations

import random
from contextlib import closing
from functools import partial
from pathlib import Path

from memory_objects import MemoryObjects
from scanned import BLOCK, DATA, KIB, MIB, MOST, lengths, open_file, read, scan, scan_back
from threads import run_threads

from lsmkv.shards.remote.disk_cache import PAGE_SIZE, DiskCache
from lsmkv.shards.remote.fetch_ahead import FetchAhead
from lsmkv.shards.remote.remote_file import Held, RemoteFile
from lsmkv.shards.remote.remote_object import RemoteObject, Source


def test_point_reads_fetch_nothing_ahead(objects: MemoryObjects, ahead: FetchAhead) -> None:
    chance = random.Random(6)
    with open_file(objects, ahead) as file:
        for _ in range(2000):
            read(file, chance.randrange(len(DATA) // BLOCK) * BLOCK)
        for number in range(0, 1000, 2):  # in order, but with gaps
            read(file, number * BLOCK)
        for _ in range(20):  # one block, again and again
            read(file, 7 * BLOCK)
    assert set(lengths(objects)) == {BLOCK}


def test_chance_seldom_makes_a_scan(objects: MemoryObjects, ahead: FetchAhead) -> None:
    """In a table of 512 blocks, as the text of lsmkv.shards.remote.streams says."""
    chance = random.Random(7)
    with open_file(objects, ahead) as file:
        for _ in range(20_000):
            read(file, chance.randrange(512) * BLOCK)
    windows = [length for length in lengths(objects) if length > BLOCK]  # 2 are to be expected
    assert len(windows) <= 10


def test_what_the_cache_has_is_not_fetched_ahead(
    objects: MemoryObjects, ahead: FetchAhead, tmp_path: Path
) -> None:
    offsets = [PAGE_SIZE * at for at in range(20, 40)]
    with closing(DiskCache(tmp_path)) as cache:
        for order in (offsets[::2] + offsets[1::2], offsets):
            remote = RemoteObject(Source(objects, cache), "o", len(DATA), "o")
            with RemoteFile(Held(remote, ((0, DATA[:1]),)), ahead) as file:
                for offset in order:
                    read(file, offset, PAGE_SIZE)
            assert lengths(objects) == [PAGE_SIZE] * len(offsets)
            assert cache.misses == len(offsets)
        read_on = RemoteObject(Source(objects, cache), "o", len(DATA), "o")
        with RemoteFile(Held(read_on, ((0, DATA[:1]),)), ahead) as file:
            scan(file, offsets[0], offsets[-1] + 4 * PAGE_SIZE, PAGE_SIZE)
        assert lengths(objects)[len(offsets) :][0] >= 256 * KIB - PAGE_SIZE


def test_scans_at_once_in_one_file(objects: MemoryObjects, ahead: FetchAhead) -> None:
    """Cursors that go both ways, with gaps and point reads in between."""
    chance = random.Random(8)
    with open_file(objects, ahead) as file:
        for _ in range(20):
            cursors = [[chance.randrange(len(DATA)), chance.choice([-1, 1])] for _ in range(4)]
            for _ in range(300):
                cursor = chance.choice(cursors)
                length = chance.choice([1, 700, BLOCK, 64 * KIB])
                gap = chance.choice([0, 0, 0, 0, 5000])
                if cursor[1] > 0:
                    start = min(len(DATA), cursor[0] + gap)
                    cursor[0] = min(len(DATA), start + length)
                    read(file, start, cursor[0] - start)
                else:
                    stop = max(0, cursor[0] - gap)
                    cursor[0] = max(0, stop - length)
                    read(file, cursor[0], stop - cursor[0])
                if chance.random() < 0.1:
                    read(file, chance.randrange(len(DATA) - BLOCK))
    assert ahead.room == MOST


def test_threads_scan_one_file(objects: MemoryObjects, ahead: FetchAhead) -> None:
    done: list[int] = []
    with open_file(objects, ahead) as file:

        def work(at: int) -> None:
            scan(file, at, at + 2 * MIB)
            scan_back(file, at, at + 2 * MIB, 10_000)
            done.append(at)

        assert run_threads(*[partial(work, at * 3 * MIB) for at in (0, 1, 1, 4)]) == []
    assert len(done) == 4
    assert ahead.room == MOST
