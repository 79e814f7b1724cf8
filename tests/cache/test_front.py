"""Values beside their heads: where they are, what a read saves, and how their space comes back."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache.atomic_steps import Steps
from lsmkv.cache.checking import remove_unowned_values
from lsmkv.cache.entry_head import Pointer, parse
from lsmkv.cache.keys import FLOOR, LAYOUT, VALUE, head_key, number_moment
from lsmkv.errors import ConflictError

KIB = 1 << 10
MIB = 1 << 20
LIMIT = 2 * MIB


@pytest.fixture(params=[False, True], ids=["alone", "shared"])
def cache(
    tmp_path: Path, clock: StillClock, request: pytest.FixtureRequest
) -> Iterator[lsmkv.Cache]:
    """A cache with a limit of 2 MiB, whose clock stands still."""
    with lsmkv.Cache(
        tmp_path, shared=request.param, size_limit=LIMIT, clock=clock, compression=None
    ) as made:
        yield made
        made._reclaiming.wait()
        assert made.check() == []


def fill(cache: lsmkv.Cache, clock: StillClock, start: int, stop: int, size: int = 8 * KIB) -> None:
    for number in range(start, stop):
        clock.now += 1
        cache[number] = os.urandom(size)


def values(cache: lsmkv.Cache) -> list[bytes]:
    return list(cache._db.iterator(prefix=VALUE, include_value=False))


def pointer_of(cache: lsmkv.Cache, key: object) -> Pointer:
    data = cache._db.get(head_key(key, cache.codec))
    assert data is not None
    pointer = parse(data).pointer
    assert pointer is not None
    return pointer


def test_a_value_of_1_kib_to_1_mib_is_beside_its_head(cache: lsmkv.Cache) -> None:
    cache.reset("size_limit", 2 * LIMIT)
    sizes = (1000, 1100, MIB - 20, MIB + 1)
    for size in sizes:
        cache[size] = bytes(size)
    assert len(values(cache)) == 2
    assert [len(cache[size]) for size in sizes] == list(sizes)


def test_values_are_in_tables_that_no_compaction_writes(
    cache: lsmkv.Cache, clock: StillClock
) -> None:
    fill(cache, clock, 0, 1000)
    cache._reclaiming.wait()
    stats = cache._db.stats()
    assert stats.levels[2].compaction_bytes_written < MIB
    tables = [table for table in cache._db.tables() if table.smallest[:1] == VALUE]
    assert tables
    assert all(table.largest[:1] == VALUE and table.level == 2 for table in tables)
    assert sum(table.size for table in tables) < 1.15 * LIMIT


def test_what_was_read_stays_and_what_was_not_goes(cache: lsmkv.Cache, clock: StillClock) -> None:
    fill(cache, clock, 0, 200)
    for start in range(200, 1000, 50):
        fill(cache, clock, start, start + 50)
        assert cache.get(7) is not None
    assert 7 in cache
    assert 8 not in cache
    assert cache.get(7, read=True).size == 8 * KIB


def test_a_mark_counts_once(cache: lsmkv.Cache, clock: StillClock) -> None:
    fill(cache, clock, 0, 200)
    cache[7]
    fill(cache, clock, 200, 400)
    assert 7 in cache
    fill(cache, clock, 400, 800)
    assert 7 not in cache


def test_values_that_are_replaced_make_way(cache: lsmkv.Cache, clock: StillClock) -> None:
    """What nobody reads or replaces stays, as long as the cache is not nearly full."""
    fill(cache, clock, 0, 50)
    kept = {number: cache[number] for number in range(50)}
    for _ in range(60):
        fill(cache, clock, 100, 150)
    cache._reclaiming.wait()
    assert {number: cache.get(number) for number in kept} == kept
    stored = sum(table.size for table in cache._db.tables())
    assert stored < 1.15 * LIMIT


def test_a_position_is_never_behind_the_value(cache: lsmkv.Cache, clock: StillClock) -> None:
    """Else a value would be dropped while its entry stays."""
    fill(cache, clock, 0, 300)
    clock.now -= 100  # a clock that is set back
    fill(cache, clock, 300, 500)
    for key in cache:
        data = cache._db.get(head_key(key, cache.codec))
        assert data is not None
        head = parse(data)
        order = cache._db.get(b"n" + head.number)
        assert head.pointer is not None
        assert order is not None
        assert order[:8] <= number_moment(head.pointer.number)


def test_no_value_is_stored_below_the_floor(cache: lsmkv.Cache, clock: StillClock) -> None:
    floor = int((clock.now + 1000) * 1e9).to_bytes(8, "big")
    cache._db.put(FLOOR, floor)
    cache["k"] = bytes(8 * KIB)
    assert pointer_of(cache, "k").number > floor


def test_a_step_that_was_overtaken_by_the_floor_fails(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path) as cache:
        cache["k"] = bytes(8 * KIB)
        db = cache._db
        sequence, writer = db.sequence, db._open_writer()
        db.put(FLOOR, bytes(8))
        with pytest.raises(ConflictError):
            writer.write_unless_changed([(VALUE + bytes(12), b"v")], sequence, [FLOOR])


def test_everything_goes_once_the_cache_is_cleared(cache: lsmkv.Cache, clock: StillClock) -> None:
    fill(cache, clock, 0, 200)
    cache.clear()
    cache._reclaiming.wait()
    cache._front.advance()
    assert len(values(cache)) < 10  # of a table that is not whole yet


@pytest.mark.parametrize("policy", ["least-frequently-used", "none"])
def test_other_policies_have_no_values_without_entries(
    cache: lsmkv.Cache, clock: StillClock, policy: str
) -> None:
    fill(cache, clock, 0, 100)
    fill(cache, clock, 50, 100)
    assert len(values(cache)) > 100
    cache.reset("eviction_policy", policy)
    assert len(values(cache)) == 100
    cache[0] = bytes(8 * KIB)
    assert len(values(cache)) == 99
    cache.reset("eviction_policy", "least-recently-stored")
    assert cache[1] is not None


def test_a_cache_of_before_is_taken_over(tmp_path: Path, clock: StillClock) -> None:
    with lsmkv.Cache(tmp_path, shared=False, recency=0, clock=clock, size_limit=LIMIT) as cache:
        fill(cache, clock, 0, 200)
        assert cache._db.get(LAYOUT) == b"1"
        assert values(cache) == []
    with lsmkv.Cache(tmp_path, shared=False, clock=clock) as cache:
        assert cache._db.get(LAYOUT) == b"2"
        fill(cache, clock, 200, 300)
        assert cache[199] is not None
        assert 0 not in cache
        fill(cache, clock, 300, 800)
        assert len(values(cache)) > 150
        assert cache.check() == []


def test_a_value_that_is_gone_is_a_miss(cache: lsmkv.Cache) -> None:
    cache["k"] = bytes(8 * KIB)
    cache._db.delete(pointer_of(cache, "k").key(0))
    assert cache.get("k", 1) == 1
    with suppress(KeyError):
        cache.pop("k")
    assert cache.check(fix=True) != [] or "k" not in cache


@pytest.mark.skipif(lsmkv.COMPILED, reason="replaces a function")
def test_values_are_removed_once_nothing_leaves_more_of_them(
    cache: lsmkv.Cache, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(cache, clock, 0, 50)
    cache._reclaiming.wait()
    thread_ends = cache._reclaiming._done  # held, as by a thread that copies
    thread_ends.acquire()
    seen = []

    def remove_and_note(steps: Steps) -> None:
        seen.append((steps.keeps_values, thread_ends.locked()))
        remove_unowned_values(steps)

    def end_late() -> None:
        while cache._steps.keeps_values:
            time.sleep(0.001)
        thread_ends.release()

    monkeypatch.setattr("lsmkv.cache.opened.remove_unowned_values", remove_and_note)
    threading.Thread(target=end_late).start()
    cache.reset("eviction_policy", "none")
    assert seen == [(False, False)]


def test_each_handle_removes_what_it_has_left_under_the_old_policy(
    tmp_path: Path, clock: StillClock
) -> None:
    with (
        lsmkv.Cache(tmp_path, clock=clock, compression=None) as one,
        lsmkv.Cache(tmp_path, clock=clock, compression=None) as two,
    ):
        fill(one, clock, 0, 10)
        two.reset("eviction_policy", "none")
        fill(one, clock, 0, 5)  # it does not know yet
        assert len(values(two)) == 15
        one.reset("eviction_policy")
        assert len(values(two)) == 10
        assert one.check() == two.check() == []
