"""Removing entries: expired, tagged, first in the order of eviction."""

from __future__ import annotations

import random
from typing import Any

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache.culling import evict_first, first_expiry, remove_numbers
from lsmkv.cache.keys import EVICTION, HEAD, ORDER, encode_key, head_key, tag_prefix

KIB = 1024


def limited(cache: lsmkv.Cache, limit: int, cull: int = 10) -> None:
    cache.reset("size_limit", limit)
    cache.reset("cull_limit", cull)


def test_expired_entries_are_removed_by_writes(cache: lsmkv.Cache, clock: StillClock) -> None:
    for number in range(25):
        cache.set(number, number, expire=1 + number)
    clock.now += 1000
    cache["k"] = 1
    assert len(cache) == 16
    cache["l"] = 2
    cache["m"] = 3
    assert list(cache) == ["k", "l", "m"]
    assert first_expiry(cache._steps) == float("inf")


def test_expire_and_evict_go_in_steps(cache: lsmkv.Cache, clock: StillClock) -> None:
    cache.reset("cull_limit", 0)
    for number in range(250):
        cache.set(number, number, expire=10, tag=number % 2)
    clock.now += 11
    before = cache._db.stats().log_writes
    assert cache.evict(1) == 125
    assert cache.evict("no such tag") == 0
    assert cache._db.stats().log_writes == before + 2
    assert cache.expire(clock.now - 5) == 0
    assert cache.expire() == 125


def test_clear(cache: lsmkv.Cache) -> None:
    for number in range(250):
        cache.set(number, bytes(number), tag="t")
    assert cache.clear() == 250
    assert (len(cache), cache.volume(), list(cache)) == (0, 0, [])


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ("least-recently-stored", {"b", "c", "d"}),
        ("least-recently-used", {"a", "c", "d"}),
        ("least-frequently-used", {"a", "c", "d"}),
    ],
)
def test_what_a_policy_evicts(
    cache: lsmkv.Cache, clock: StillClock, policy: str, left: set[str]
) -> None:
    cache.reset("eviction_policy", policy)
    for key in "abc":
        cache[key] = bytes(KIB)
        clock.now += 1
    clock.now += 100
    cache["a"], cache["c"]
    limited(cache, 4 * KIB, cull=1)
    cache["d"] = bytes(KIB)
    assert set(cache) == left


def test_nothing_is_evicted_by_the_policy_none(cache: lsmkv.Cache) -> None:
    cache.reset("eviction_policy", "none")
    limited(cache, KIB)
    for number in range(10):
        cache[number] = bytes(KIB)
    assert cache.cull() == 0
    assert len(cache) == 10


def test_a_write_evicts_no_more_than_it_may(cache: lsmkv.Cache) -> None:
    limited(cache, 100 * KIB, cull=3)
    lengths = []
    for number in range(200):
        cache[number] = bytes(KIB)
        lengths.append(len(cache))
    most = max(lengths)
    assert lengths[:most] == list(range(1, most + 1))
    assert lengths[most : most + 3] == [most + 1 - 3, most + 2 - 3, most + 3 - 3]
    assert min(lengths[most:]) == most - 2


def test_a_small_cache_is_never_nearly_empty(cache: lsmkv.Cache) -> None:
    limited(cache, 6 * 1240)
    lengths = []
    for number in range(40):
        cache[number] = bytes(KIB)
        lengths.append(len(cache))
    assert max(lengths) == 6
    assert set(lengths[6:]) == {3, 4, 5, 6}
    assert cache.volume() <= 6 * 1240
    limited(cache, 3 * 1240)
    assert cache.cull() == lengths[-1] - 3
    assert len(cache) == 3


def test_an_entry_larger_than_the_limit_leaves_an_empty_cache(cache: lsmkv.Cache) -> None:
    limited(cache, 10 * KIB)
    for number in range(4):
        cache[number] = bytes(KIB)
    cache["large"] = bytes(30 * KIB)
    assert len(cache) == 0


def test_large_values_evict_until_there_is_room(cache: lsmkv.Cache) -> None:
    limited(cache, 100 * KIB, cull=2)
    for number in range(80):
        cache[number] = bytes(KIB)
    cache["large"] = bytes(60 * KIB)
    assert cache.volume() <= 125 * KIB
    assert "large" in cache


def test_cull_goes_down_to_the_limit(cache: lsmkv.Cache, clock: StillClock) -> None:
    limited(cache, 1 << 20, cull=0)
    for number in range(100):
        cache.set(number, bytes(KIB), expire=10 if number > 95 else None)
    cache.reset("size_limit", 50 * KIB)
    clock.now += 11
    removed = cache.cull()
    assert removed > 50
    assert len(cache) == 100 - removed
    assert cache.volume() <= 50 * KIB < cache.volume() + 11 * 1300
    assert 99 not in cache
    assert 95 in cache


def test_a_key_of_an_index_that_leads_nowhere_is_removed(cache: lsmkv.Cache) -> None:
    number, position = b"number of 12", bytes(8)
    cache._db.put(EVICTION + position + number, b"")
    assert cache._steps.run(lambda step: evict_first(step, EVICTION, 5, 1, 0.0)).removed == 0
    assert list(cache._db.iterator(prefix=EVICTION)) == []
    cache["k"] = 1
    cache._db.put(ORDER + number, position + b"\x20k")  # the entry has another number

    def remove(step: Any) -> int:
        return remove_numbers(step, [number], [EVICTION + position + number])

    assert cache._steps.run(remove) == 0
    assert cache["k"] == 1


def test_keys_that_lead_nowhere_do_not_end_a_removal(cache: lsmkv.Cache) -> None:
    encoded = encode_key("t", cache.codec)
    for number in range(150):
        cache._db.put(tag_prefix(encoded) + number.to_bytes(12, "big"), b"")
    cache.set("k", 1, tag="t")
    assert cache.evict("t") == 1
    assert len(cache) == 0


def test_a_damaged_entry_is_evicted(cache: lsmkv.Cache) -> None:
    cache["k"], cache["l"] = bytes(100), 1
    cache._db.put(head_key("k", cache.codec), b"\2damaged")
    assert cache.clear() == 2
    assert list(cache._db.iterator(prefix=HEAD)) == []
    cache.check(fix=True)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("limit", [6, 50])
@pytest.mark.parametrize(
    "policy", ["least-recently-used", "least-recently-stored", "least-frequently-used"]
)
def test_what_is_evicted_was_first_in_the_order(
    clock: StillClock, policy: Any, limit: int, seed: int
) -> None:
    """A model of the order, under random operations; time passes when the test says so."""
    rng = random.Random(seed)
    size_limit = limit * 1200
    order: dict[int, tuple[float, int]] = {}
    """By key: what the policy goes by, and when the entry was stored first."""
    with lsmkv.Cache(
        ":memory:", shared=False, clock=clock, recency=0, size_limit=size_limit, eviction=policy
    ) as cache:
        for number in range(limit * 5):
            clock.now += rng.choice((0.001, 1.0))
            key = rng.randrange(limit * 2)
            if rng.random() < 0.4:
                assert (cache.get(key) is not None) == (key in order)
                if key in order and policy != "least-recently-stored":
                    used = policy == "least-recently-used"
                    order[key] = (clock.now if used else order[key][0] + 1, order[key][1])
                continue
            position = 0.0 if policy == "least-frequently-used" else clock.now
            order[key] = (position, order[key][1] if key in order else number)
            cache[key] = bytes(rng.randrange(1200))
            gone = sorted(order, key=order.__getitem__)[: len(order) - len(cache)]
            for one in gone:
                del order[one]
            assert set(cache) == set(order)
            assert len(gone) <= 10
            assert cache.volume() < size_limit
            assert not gone or cache.volume() > size_limit / 2 - 1400
        assert cache.check() == []
