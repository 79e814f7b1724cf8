"""The cache as a whole: several handles, full disks, kills, and what it is opened with.

``test_processes.py`` has several processes.
"""

from __future__ import annotations

import errno
import time
from pathlib import Path
from typing import Any

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache.keys import CHUNK, ORDER, PENDING
from lsmkv.cache.opened import wall_clock
from lsmkv.shared.system.local import SHARES
from lsmkv.testing.faulty import FaultyEnv

needs_sharing = pytest.mark.skipif(not SHARES, reason="processes cannot share a store here")


def test_the_clock_is_that_of_the_system() -> None:
    assert abs(wall_clock() - time.time()) < 60


def test_a_small_cache_has_a_small_memtable(tmp_path: Path) -> None:
    for limit, size in ((1 << 20, 1 << 16), (8 << 20, 1 << 19), (None, 2 << 20)):
        with lsmkv.Cache(tmp_path / str(limit), shared=False, size_limit=limit) as cache:
            assert cache._db.options.write_buffer_size == size
    with lsmkv.Cache(tmp_path / "own", shared=False, write_buffer_size=5 << 20) as cache:
        assert cache._db.options.write_buffer_size == 5 << 20


def test_a_large_value_gets_no_number_of_another_one(tmp_path: Path) -> None:
    """The value's number is later than its entry's, and the clock stands, or was set back."""
    clock = StillClock()
    arguments: Any = {"shared": False, "clock": clock}
    with lsmkv.Cache(tmp_path, **arguments) as cache:
        cache["k"] = b""
        cache["k"] = bytes(70_000)
    with lsmkv.Cache(tmp_path, **arguments) as cache:
        assert not cache.add("k", bytes(70_000))
        assert cache["k"] == bytes(70_000)
        assert cache.check() == []


# Several handles


@needs_sharing
def test_two_handles_are_one_cache(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path) as one, lsmkv.Cache(tmp_path) as other:
        one.set("a", 1, tag="t")
        other.set("b", bytes(100_000), expire=1000)
        assert list(one) == list(other) == ["a", "b"]
        assert len(one) == len(other) == 2
        assert one.volume() == other.volume()
        assert other.incr("a") == one.incr("a") - 1 == 2
        assert one.pop("b") == bytes(100_000)
        assert other.evict("t") == 1
        assert one.volume() == other.volume() == 0
        assert one.check() == other.check() == []


@needs_sharing
def test_both_handles_hold_the_limit(tmp_path: Path) -> None:
    limit = 200 * 1024
    with lsmkv.Cache(tmp_path, size_limit=limit) as one, lsmkv.Cache(tmp_path) as other:
        for number in range(0, 600, 2):
            one[number] = bytes(1024)
            other[number + 1] = bytes(1024)
            if number % 50 == 0:
                assert one.volume() < limit * 1.6
        assert one.cull() + other.cull() < 100
        assert one.volume() == other.volume() <= limit
        assert one.check() == []


@needs_sharing
def test_a_handle_sees_later_what_others_let_expire(tmp_path: Path, clock: StillClock) -> None:
    with lsmkv.Cache(tmp_path, clock=clock) as one, lsmkv.Cache(tmp_path, clock=clock) as other:
        one.set("short", 1, expire=5)
        clock.now += 6
        for number in range(64):
            other[number] = 1
        assert len(other) == 64


# Kills and full disks


def test_a_kill_at_any_call_leaves_no_half_of_a_change(clock: StillClock) -> None:
    def use(env: FaultyEnv) -> None:
        with lsmkv.Cache("c", shared=False, clock=clock, env=env, size_limit=500_000) as cache:
            cache.set("a", bytes(10), expire=5, tag="t")
            cache["large"] = bytes(150_000)
            cache["large"] = bytes(140_000)
            cache.incr("n")
            cache.touch("a", 50)
            cache.push("job")
            cache.pop("large")

    counting = FaultyEnv()
    use(counting)
    assert counting.calls > 20
    for number in range(1, counting.calls + 1):
        env = FaultyEnv()
        env.fail_at(number, OSError(errno.EIO, "pulled out"), sticky=True)
        try:
            use(env)
        except OSError:
            pass
        with lsmkv.Cache("c", shared=False, clock=clock, env=env.kill()) as cache:
            assert cache.check() == []
            assert list(cache._db.iterator(prefix=PENDING)) == []
            for key in cache:
                assert cache[key] is not None


def test_what_has_expired_stays_expired_after_a_kill(clock: StillClock) -> None:
    env = FaultyEnv()
    cache = lsmkv.Cache("c", shared=False, clock=clock, env=env)
    cache.set("k", 1, expire=5)
    clock.now += 5
    assert cache.get("k") is None
    with lsmkv.Cache("c", shared=False, clock=clock, env=env.kill()) as again:
        assert again.get("k") is None
        assert again.expire() == 0  # the moment itself
        clock.now += 1
        assert again.expire() == 1
    cache.close()


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_full_disk(clock: StillClock, on_error: Any) -> None:
    env = FaultyEnv()
    full = OSError(errno.ENOSPC, "disk full")
    with lsmkv.Cache("c", shared=False, clock=clock, env=env, on_error=on_error) as cache:
        cache["k"] = 1
        env.fail_at(1, full, sticky=True, calls={"append"})
        if on_error == "raise":
            for call in (
                lambda: cache.set("l", 1),
                lambda: cache.set("l", bytes(100_000)),
                lambda: cache.touch("k"),
                lambda: cache.add("l", 1),
            ):
                with pytest.raises(lsmkv.IOError) as raised:
                    call()
                assert raised.value.errno == errno.ENOSPC
        else:
            assert not cache.set("l", 1)
            assert not cache.set("l", bytes(100_000))
            assert not cache.add("l", 1)
            assert not cache.touch("k")
        assert cache["k"] == 1
        assert cache.get("l") is None
        env.heal()
        assert cache.set("l", 2)
        assert cache.check() == []
        assert list(cache._db.iterator(prefix=CHUNK)) == []


def test_a_failing_store_does_not_fail_a_read(clock: StillClock) -> None:
    env = FaultyEnv()
    with lsmkv.Cache("c", shared=False, clock=clock, env=env, recency=0) as cache:
        cache["k"] = 1
        clock.now += 1
        env.fail_at(1, sticky=True, calls={"append"})
        assert cache["k"] == 1  # though the order cannot be written
        env.heal()


def test_a_policy_that_counts_and_back(clock: StillClock) -> None:
    with lsmkv.Cache(":memory:", shared=False, clock=clock) as cache:
        for number in range(150):
            cache[number] = number
        cache.reset("eviction", "least-frequently-used")
        assert cache.check() == []
        positions = [entry[:8] for _, entry in cache._db.iterator(prefix=ORDER)]
        assert set(positions) == {bytes(8)}
        cache[3]
        cache.reset("eviction", "least-recently-stored")
        positions = [entry[:8] for _, entry in cache._db.iterator(prefix=ORDER)]
        assert bytes(8) not in positions
        assert cache.check() == []
