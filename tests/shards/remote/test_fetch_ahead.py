"""Windows ahead of scans, up and down."""

from __future__ import annotations

import errno
import gc
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from memory_objects import MemoryObjects

from lsmkv.shards.remote import fetch_ahead
from lsmkv.shards.remote.disk_cache import PAGE_SIZE, DiskCache
from lsmkv.shards.remote.fetch_ahead import FetchAhead
from lsmkv.shards.remote.remote_file import Held, RemoteFile
from lsmkv.shards.remote.remote_object import RemoteObject, Source

KIB = 1 << 10
MIB = 1 << 20
MOST = 64 * MIB
BLOCK = 4 * KIB
DATA = random.Random(5).randbytes(16 * MIB + 5 * KIB)


@pytest.fixture
def objects() -> MemoryObjects:
    objects = MemoryObjects()
    objects.put("o", DATA)
    objects.forget_requests()
    return objects


@pytest.fixture
def ahead() -> Iterator[FetchAhead]:
    ahead = FetchAhead(MOST)
    yield ahead
    ahead.close()


def open_file(objects: MemoryObjects, ahead: FetchAhead, *, data_end: int = 0) -> RemoteFile:
    """The object as a table, whose META holds what lies behind ``data_end``."""
    pieces = ((data_end, DATA[data_end:]),) if data_end else ((0, DATA[:1]),)
    remote = RemoteObject(Source(objects, None), "o", len(DATA), "o")
    return RemoteFile(Held(remote, pieces), ahead)


def read(file: RemoteFile, offset: int, length: int = BLOCK) -> None:
    assert file.read(offset, length) == DATA[offset : offset + length]


def scan(file: RemoteFile, start: int, stop: int, length: int = BLOCK) -> None:
    for offset in range(start, stop, length):
        read(file, offset, min(length, stop - offset))


def scan_back(file: RemoteFile, start: int, stop: int, length: int = BLOCK) -> None:
    while stop > start:
        read(file, max(start, stop - length), stop - max(start, stop - length))
        stop -= length


def lengths(objects: MemoryObjects) -> list[int]:
    return [length for _, _, length in objects.ranges]


def in_pool() -> bool:
    return threading.current_thread().name.startswith("lsmkv-fetch-ahead")


def test_a_scan_asks_for_windows_that_double(objects: MemoryObjects, ahead: FetchAhead) -> None:
    with open_file(objects, ahead) as file:
        scan(file, 0, len(DATA))
    # Windows end at pages' edges; the first begins at block 2.
    first = [BLOCK, BLOCK, 256 * KIB + 24 * KIB]
    assert lengths(objects)[:7] == [*first, 512 * KIB, MIB, 2 * MIB, 4 * MIB]
    assert sum(lengths(objects)) == len(DATA)
    assert len(lengths(objects)) == 10
    assert ahead.room == MOST


def test_a_scan_down_asks_for_windows_that_double(
    objects: MemoryObjects, ahead: FetchAhead
) -> None:
    with open_file(objects, ahead) as file:
        scan_back(file, 0, len(DATA))
    assert lengths(objects)[:2] == [BLOCK, BLOCK]
    assert 256 * KIB <= lengths(objects)[2] < 288 * KIB
    assert lengths(objects)[3:7] == [512 * KIB, MIB, 2 * MIB, 4 * MIB]
    assert sum(lengths(objects)) == len(DATA)
    assert len(lengths(objects)) == 10
    assert ahead.room == MOST


def test_the_next_window_comes_from_the_pool(objects: MemoryObjects, ahead: FetchAhead) -> None:
    fetched_in_pool: list[bool] = []
    objects.hook = lambda kind, name: fetched_in_pool.append(in_pool())
    with open_file(objects, ahead) as file:
        scan(file, 0, 8 * MIB)
    assert fetched_in_pool[:3] == [False] * 3
    assert all(fetched_in_pool[3:])


def test_the_next_window_is_fetched_while_the_last_is_read(
    objects: MemoryObjects, ahead: FetchAhead
) -> None:
    """The scan goes on to its window's end while the next one is held up."""
    go = threading.Event()
    asked = threading.Event()

    def hold(kind: str, name: str) -> None:
        if in_pool():
            asked.set()
            assert go.wait(60)

    objects.hook = hold
    with open_file(objects, ahead) as file:
        scan(file, 0, 288 * KIB)
        assert asked.wait(60)
        go.set()
        scan(file, 288 * KIB, MIB)


def test_a_short_scan_fetches_one_window(objects: MemoryObjects, ahead: FetchAhead) -> None:
    with open_file(objects, ahead) as file:
        scan(file, 0, 2 * BLOCK)
        assert lengths(objects) == [BLOCK, BLOCK]
        read(file, 2 * BLOCK)
    assert lengths(objects) == [BLOCK, BLOCK, 280 * KIB]


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


def test_nothing_behind_the_data_is_fetched(objects: MemoryObjects, ahead: FetchAhead) -> None:
    end = 600 * KIB + 7
    with open_file(objects, ahead, data_end=end) as file:
        scan(file, 0, end)
    with open_file(objects, ahead, data_end=end) as file:
        scan_back(file, 0, end)
    assert all(offset + length <= end for _, offset, length in objects.ranges)
    assert sum(lengths(objects)) == 2 * end


def test_a_read_across_the_end_of_the_data(objects: MemoryObjects, ahead: FetchAhead) -> None:
    end = 600 * KIB + 7
    with open_file(objects, ahead, data_end=end) as file:
        scan(file, 0, len(DATA), 100 * KIB)


def test_large_reads_make_large_windows(objects: MemoryObjects, ahead: FetchAhead) -> None:
    with open_file(objects, ahead) as file:
        scan(file, 0, len(DATA), 3 * MIB)
        scan_back(file, 0, len(DATA), 3 * MIB)
    assert ahead.room == MOST


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

        threads = [threading.Thread(target=work, args=(at * 3 * MIB,)) for at in (0, 1, 1, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(done) == 4
    assert ahead.room == MOST


# Failures


def test_what_fails_in_the_pool_is_fetched_by_the_reader(
    objects: MemoryObjects, ahead: FetchAhead
) -> None:
    def fail(kind: str, name: str) -> None:
        if in_pool():
            raise OSError(errno.ETIMEDOUT, "no reply")

    objects.hook = fail
    with open_file(objects, ahead) as file:
        scan(file, 0, 8 * MIB)
        scan_back(file, 0, 8 * MIB)
    assert ahead.room == MOST


def test_a_failure_is_raised_and_the_next_read_tries_again(
    objects: MemoryObjects, ahead: FetchAhead
) -> None:
    def fail(kind: str, name: str) -> None:
        raise OSError(errno.ETIMEDOUT, "no reply")

    with open_file(objects, ahead) as file:
        at = 0
        while at < 4 * MIB:
            objects.hook = fail
            try:
                read(file, at)
                objects.hook = lambda kind, name: None
            except OSError:
                objects.hook = lambda kind, name: None
                read(file, at)
            at += BLOCK
    assert ahead.room == MOST


# Memory and threads


@pytest.mark.parametrize("most", [0, 100 * KIB, 300 * KIB, 600 * KIB, 2 * MIB])
def test_memory_is_bounded(objects: MemoryObjects, most: int) -> None:
    ahead = FetchAhead(most)
    files = [open_file(objects, ahead) for _ in range(6)]
    for at in range(0, MIB, BLOCK):
        for file in files:
            read(file, at)
            read(file, 9 * MIB - at)
            assert 0 <= ahead.room <= most
    if most == 0:
        assert set(lengths(objects)) == {BLOCK}
    for file in files:
        file.close()
    assert ahead.room == most
    ahead.close()


def test_a_scan_goes_on_in_little_room(objects: MemoryObjects) -> None:
    ahead = FetchAhead(300 * KIB)
    with open_file(objects, ahead) as file:
        scan(file, 0, 4 * MIB)
    assert len(lengths(objects)) < 25
    ahead.close()


def test_windows_that_find_no_room_are_smaller(objects: MemoryObjects) -> None:
    ahead = FetchAhead(MIB)
    with open_file(objects, ahead) as file:
        for at in range(0, 15 * MIB, 900 * KIB):
            read(file, at, 900 * KIB)
            assert at < 2 * 900 * KIB or ahead.room < MIB
    ahead.close()


def test_idle_scans_give_their_room_up(
    objects: MemoryObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_ahead, "_IDLE", -1.0)  # at once
    ahead = FetchAhead(900 * KIB)
    idle = open_file(objects, ahead)
    scan(idle, 0, 10 * BLOCK)
    with open_file(objects, ahead) as file:
        before = len(lengths(objects))
        scan(file, 0, MIB)
        assert len(lengths(objects)) - before < 8
    scan(idle, 10 * BLOCK, MIB)
    idle.close()
    assert ahead.room == 900 * KIB
    ahead.close()


@pytest.mark.parametrize("walk", [scan, scan_back])
def test_a_scan_that_is_at_its_end_holds_nothing(
    objects: MemoryObjects, ahead: FetchAhead, walk: Callable[..., None]
) -> None:
    with open_file(objects, ahead) as file:
        walk(file, 0, len(DATA))
        assert ahead.room == MOST


def test_a_read_gives_up_the_windows_of_idle_scans(
    objects: MemoryObjects, ahead: FetchAhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_file(objects, ahead) as idle, open_file(objects, ahead) as file:
        scan(idle, 0, 10 * BLOCK)
        read(file, 0)
        assert ahead.room < MOST
        monkeypatch.setattr(fetch_ahead, "_IDLE", -1.0)  # as if a second had passed
        read(file, MIB)
        assert ahead.room == MOST
        scan(idle, 10 * BLOCK, MIB)


def test_a_scan_that_is_read_keeps_its_window(objects: MemoryObjects) -> None:
    ahead = FetchAhead(300 * KIB)
    with open_file(objects, ahead) as first, open_file(objects, ahead) as second:
        scan(first, 0, 5 * BLOCK)
        scan(second, MIB, MIB + 20 * BLOCK)
        assert lengths(objects)[3:] == [BLOCK] * 20
        objects.forget_requests()
        scan(first, 5 * BLOCK, 20 * BLOCK)
        assert objects.requests == 0
    ahead.close()


def test_a_file_that_is_dropped_gives_its_room_up(
    objects: MemoryObjects, ahead: FetchAhead
) -> None:
    file = open_file(objects, ahead)
    scan(file, 0, 10 * BLOCK)
    assert ahead.room < MOST
    del file
    gc.collect()
    assert ahead.room == MOST


def test_closing_a_file_cancels_what_has_not_begun(
    objects: MemoryObjects, ahead: FetchAhead
) -> None:
    go = threading.Event()

    def hold(kind: str, name: str) -> None:
        assert not in_pool() or go.wait(60)

    objects.hook = hold
    files = [open_file(objects, ahead) for _ in range(10)]
    for at, file in enumerate(files):
        scan(file, at * MIB, at * MIB + 10 * BLOCK)
    for file in files:
        file.close()
    assert ahead.room == MOST
    go.set()
    ahead.submit(lambda start, size: b"", 0, 0).result()  # after all that was submitted before
    asked = [length for length in lengths(objects) if length >= 512 * KIB]
    assert len(asked) <= 4  # one for each thread


def test_reads_go_on_without_the_pool(objects: MemoryObjects) -> None:
    ahead = FetchAhead(MOST)
    with open_file(objects, ahead) as file:
        scan(file, 0, 100 * BLOCK)
        assert any("lsmkv-fetch-ahead" in thread.name for thread in threading.enumerate())
        ahead.close()
        ahead.close()
        assert not any("lsmkv-fetch-ahead" in thread.name for thread in threading.enumerate())
        scan(file, 100 * BLOCK, 2 * MIB)
        scan_back(file, 0, 2 * MIB)


def test_a_system_without_more_threads(
    objects: MemoryObjects, ahead: FetchAhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    with open_file(objects, ahead) as file:
        scan(file, 0, 2 * MIB)
    assert ahead.room == MOST
