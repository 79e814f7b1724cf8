"""lsmkv.util.second_chance_cache: which values are evicted, and many threads at once."""

from __future__ import annotations

import random
import threading
import weakref
from collections.abc import Callable
from functools import partial
from types import ModuleType

import pytest
from threads import run_threads

import lsmkv
from lsmkv.util import second_chance_cache
from lsmkv.util.cache_entry import CacheEntry
from lsmkv.util.second_chance_cache import SecondChanceCache


def filled(capacity: int, names: str) -> SecondChanceCache[str, str]:
    cache = SecondChanceCache[str, str](capacity)
    for name in names:
        cache.put(name, name.upper())
    return cache


def kept(cache: SecondChanceCache[str, str], names: str) -> str:
    """Those of ``names`` that are in the cache."""
    return "".join(name for name in names if cache.entry(name) is not None)


def test_hit_and_miss() -> None:
    cache = filled(10, "ab")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == ("A", "B", None)
    assert len(cache) == 2
    cache.check()


def test_one_value_goes_at_a_time() -> None:
    cache = filled(10, "ab")
    cache.get("a")
    assert cache.peek("b") == "B"  # which does not spare it
    assert cache.evict_one() is None  # "a" was used
    assert (cache.evict_one(), cache.evict_one()) == ("b", "a")
    assert cache.evict_one() is None
    assert cache.peek("a") is None


def test_the_oldest_value_is_evicted_first() -> None:
    cache = filled(3, "abcde")
    assert kept(cache, "abcde") == "cde"
    cache.check()


def test_a_used_value_is_spared_once() -> None:
    cache = filled(3, "abc")
    for _ in range(5):
        cache.get("a")
    cache.put("d", "D")  # a is spared, b is evicted
    assert kept(cache, "abcd") == "acd"
    cache.put("e", "E")
    cache.put("f", "F")  # a's turn: it was not used since
    assert kept(cache, "abcdef") == "def"


def test_the_oldest_value_is_evicted_if_all_were_used() -> None:
    cache = filled(3, "abc")
    for name in "cba":
        cache.get(name)
    cache.put("d", "D")
    assert kept(cache, "abcd") == "bcd"


def test_a_value_taken_from_its_entry_is_spared_but_not_one_looked_up() -> None:
    for use, left in ((CacheEntry.take, "ac"), (bool, "bc")):
        cache = filled(2, "ab")
        entry = cache.entry("a")
        assert entry is not None
        use(entry)
        cache.put("c", "C")
        assert kept(cache, "abc") == left


def test_a_replaced_value_counts_as_new() -> None:
    cache = filled(3, "abc")
    cache.put("a", "again")
    assert len(cache) == 3
    cache.put("d", "D")
    assert kept(cache, "abcd") == "acd"
    assert cache.get("a") == "again"


def test_a_replaced_value_evicts_no_other() -> None:
    cache = filled(3, "abc")
    cache.put("b", "again")
    assert kept(cache, "abc") == "abc"


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_below_one_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match=str(capacity)):
        SecondChanceCache[str, str](capacity)


def test_discard_and_clear() -> None:
    cache = filled(5, "abc")
    cache.discard("b")
    cache.discard("never there")
    assert (kept(cache, "abc"), len(cache)) == ("ac", 2)
    cache.clear()
    assert (kept(cache, "abc"), len(cache)) == ("", 0)
    cache.check()
    cache.put("a", "A")
    assert cache.get("a") == "A"


class Held:
    """An object whose end a weak reference tells."""


@pytest.mark.parametrize("end", ["discarded", "replaced", "evicted", "cleared"])
def test_a_removed_value_is_let_go(end: str) -> None:
    """A table's file is closed with it, though the entry is held on to."""
    cache = SecondChanceCache[int, Held](2)
    held = Held()
    gone = weakref.ref(held)
    entry = cache.put(1, held)
    del held
    assert gone() is not None
    if end == "discarded":
        cache.discard(1)
    elif end == "replaced":
        cache.put(1, Held())
    elif end == "evicted":
        for key in (2, 3):
            cache.put(key, Held())
    else:
        cache.clear()
    assert (gone(), entry.value, entry.take()) == (None, None, None)
    cache.check()


def test_check_sees_more_values_than_the_capacity() -> None:
    cache = filled(5, "abc")
    cache.capacity = 2
    with pytest.raises(AssertionError, match="3 values"):
        cache.check()


@pytest.mark.parametrize("seed", range(20))
def test_random_operations_match_a_model_of_lists(seed: int) -> None:
    rng = random.Random(seed)
    capacity = rng.choice([1, 2, 5, 9])
    cache = SecondChanceCache[int, int](capacity)
    queue: list[list[int]] = []  # [key, value, used], the oldest first
    for value in range(2000):
        key = rng.randrange(12)
        found = [one for one in queue if one[0] == key]
        operation = rng.choice(["get", "get", "put", "discard"])
        if rng.random() < 0.01:
            operation = "clear"
        if operation == "get":
            assert cache.get(key) == (found[0][1] if found else None)
            for one in found:
                one[2] = True
        elif operation == "clear":
            cache.clear()
            queue.clear()
        else:
            queue = [one for one in queue if one[0] != key]
            if operation == "discard":
                cache.discard(key)
            else:
                cache.put(key, value)
                while len(queue) == capacity:
                    oldest = queue.pop(0)
                    if oldest[2]:
                        queue.append([*oldest[:2], False])
                queue.append([key, value, False])
        entries = [cache.entry(key) for key in range(12)]
        values = {one[0]: one[1] for one in queue}
        assert {
            key: entry.value for key, entry in enumerate(entries) if entry is not None
        } == values
        assert len(cache) == len(queue)
        cache.check()


@pytest.mark.untraced
def test_an_interrupt_anywhere_leaves_no_value_uncounted(
    interrupted_at: Callable[[ModuleType, int, Callable[[], object]], bool],
) -> None:
    """Compiled code is not interrupted inside the cache."""
    line = 1
    while True:
        cache = SecondChanceCache[int, str](3)
        entries: list[CacheEntry] = []

        def use(
            cache: SecondChanceCache[int, str] = cache, entries: list[CacheEntry] = entries
        ) -> None:
            for key in (1, 2, 3, 1, 4, 2, 5, 6):
                if cache.get(key) is None:
                    entries.append(cache.put(key, str(key)))
            cache.discard(5)
            cache.put(6, "again")
            cache.clear()
            cache.put(7, "7")

        if not interrupted_at(second_chance_cache, line, use):
            break
        line += 1
        for key in range(10, 20):
            entries.append(cache.put(key, str(key)))
            cache.check()
        cached = [entry for entry in entries if entry.value is not None]
        assert cached == [cache.entry(key) for key in (17, 18, 19)]
    assert line > 30 or lsmkv.COMPILED


@pytest.mark.usefixtures("quick_switches")
def test_many_threads_at_once() -> None:
    cache = SecondChanceCache[int, tuple[int, int]](6)
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        start.wait()
        for _ in range(5_000):
            key = rng.randrange(12)
            dice = rng.random()
            if dice < 0.6:
                found = cache.get(key)
                assert found is None or found[0] == key
            elif dice < 0.9:
                cache.put(key, (key, seed))
            elif dice < 0.999:
                cache.discard(key)
            else:
                cache.clear()

    assert run_threads(*[partial(work, seed) for seed in range(4)]) == []
    cache.check()
