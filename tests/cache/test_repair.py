"""A cache after a crash, a power cut, and a repair of its store."""

from __future__ import annotations

import io
import random
import warnings
from pathlib import Path

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache.keys import CHUNK, PENDING
from lsmkv.testing import CrashState, RecordingEnv, explore


def fill(cache: lsmkv.Cache, clock: StillClock) -> None:
    """Entries that expire after 5, 50 and 500 seconds, and others; some of them stored again."""
    for number in range(60):
        expire = (5, 50, 500, None)[number % 4]
        cache.set(
            number, bytes([number]) * (80_000 if number % 7 == 0 else 300), expire, tag=number % 3
        )
        clock.now += 0.01
    for number in range(0, 60, 5):
        cache.set(number, bytes([number]) * 200, 50)
    for number in range(1, 60, 5):
        cache.touch(number, 5)
    for number in range(2, 60, 10):
        del cache[number]


def expected(number: int, age: int) -> bool:
    """Whether an entry is there once so many seconds have passed."""
    if number % 10 == 2:
        return False
    expire = 50 if number % 5 == 0 else 5 if number % 5 == 1 else (5, 50, 500, None)[number % 4]
    return expire is None or expire > age


@pytest.mark.parametrize("lost", ["MANIFEST-*", "*.log", "CURRENT", "half of the tables"])
@pytest.mark.parametrize("expires_before", [True, False])
def test_what_has_expired_stays_expired_after_a_repair(
    tmp_path: Path, clock: StillClock, lost: str, expires_before: bool
) -> None:
    path = tmp_path / "c"
    arguments = {"shared": False, "clock": clock, "write_buffer_size": 1 << 16}
    with lsmkv.Cache(path, cull_limit=0, **arguments) as cache:  # type: ignore[arg-type]
        fill(cache, clock)
        clock.now += 60
        if expires_before:
            assert cache.expire() > 20
            cache._db.compact_range()
    if lost == "half of the tables":
        tables = sorted(path.glob("*.ldb"))
        removed = random.Random(5).sample(tables, len(tables) // 2)
    else:
        removed = list(path.glob(lost))
    for file in removed:
        file.unlink()
    lsmkv.repair_db(path)
    with lsmkv.Cache(path, **arguments) as cache:  # type: ignore[arg-type]
        whole = lost in ("MANIFEST-*", "CURRENT")
        for number in range(60):
            value = cache.get(number)
            assert value is None or set(value) == {number}
            if whole:
                assert (value is not None) == (number in cache) == expected(number, 60)
            elif number % 4 < 2 and number % 5 > 1:  # what was stored once, and not touched
                assert value is None
        cache.check(fix=True)
        assert cache.check() == []
        cache.expire()
        assert not whole or all(expected(number, 60) for number in cache)
        cache["new"] = 1
        assert cache["new"] == 1
        assert len(cache) == len(list(cache))


def test_what_has_expired_stays_expired_after_a_power_cut(clock: StillClock) -> None:
    start = clock.now

    def use(env: RecordingEnv) -> None:
        clock.now = start
        with lsmkv.Cache(
            "c", shared=False, clock=clock, env=env, write_buffer_size=1 << 16
        ) as cache:
            fill(cache, clock)
            clock.now += 60
            env.note("later")
            cache.expire()
            cache["after"] = 1

    def check(state: CrashState) -> None:
        clock.now = start + 61
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lsmkv.RecoveryWarning)
            look(state)

    def look(state: CrashState) -> None:
        with lsmkv.Cache("c", shared=False, clock=clock, env=state.env) as cache:
            for number in range(60):
                value = cache.get(number)
                assert value is None or set(value) == {number}
                if number % 4 < 2 and number % 5 > 1:
                    assert value is None
            assert list(cache._db.iterator(prefix=PENDING)) == []
            assert cache.check() == []

    report = explore(use, check, points=20)
    assert report.states > 60
    assert [str(violation) for violation in report.violations] == []


def test_a_cache_that_is_opened_again_is_the_same(tmp_path: Path, clock: StillClock) -> None:
    for shared in (False, True):
        path = tmp_path / str(shared)
        with lsmkv.Cache(
            path, shared=shared, clock=clock, size_limit=900_000, eviction="none", cull_limit=3
        ) as cache:
            fill(cache, clock)
            before = len(cache), cache.volume(), list(cache)
        for _ in range(2):
            with lsmkv.Cache(path, shared=shared, clock=clock) as cache:
                assert (len(cache), cache.volume(), list(cache)) == before
                settings = cache.size_limit, cache.eviction_policy, cache.cull_limit
                assert settings == (900_000, "none", 3)
                assert cache.check() == []


def test_a_reader_keeps_a_value_that_is_evicted(tmp_path: Path, clock: StillClock) -> None:
    value = random.Random(1).randbytes(2_500_000)
    with lsmkv.Cache(tmp_path, shared=False, clock=clock, size_limit=3 << 20) as cache:
        cache.set("k", io.BytesIO(value), read=True)
        with cache.read("k") as reader:
            assert reader.read(1000) == value[:1000]
            while "k" in cache:
                clock.now += 1
                cache[clock.now] = bytes(60_000)
            assert list(cache._db.iterator(prefix=CHUNK)) == []
            cache._db.compact_range()
            assert reader.read() == value[1000:]
            reader.seek(1_000_000)
            assert reader.read(9) == value[1_000_000:1_000_009]
        assert cache.check() == []
