"""Windows ahead of scans, up and down."""

from __future__ import annotations

import errno
import gc
import threading
from collections.abc import Callable

import pytest
from memory_objects import MemoryObjects
from scanned import BLOCK, DATA, KIB, MIB, MOST, lengths, open_file, read, scan, scan_back

from lsmkv.shards.remote import fetch_ahead
from lsmkv.shards.remote.fetch_ahead import FetchAhead


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
