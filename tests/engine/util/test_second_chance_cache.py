"""lsmkv.engine.util.second_chance_cache: which values are evicted, and many threads at once."""

from __future__ import annotations

import random
import threading
import weakref
from collections.abc import Callable
from functools import partial
from types import ModuleType

import pytest
from filled_caches import NamedKeys, kept_after
from states import Case, Drawing, states
from threads import run_threads

import lsmkv
from lsmkv.engine.util import second_chance_cache
from lsmkv.engine.util.cache_entry import CacheEntry
from lsmkv.engine.util.second_chance_cache import SecondChanceCache


def filled(capacity: int, names: str) -> SecondChanceCache[str, str]:
    cache = SecondChanceCache[str, str](capacity)
    for name in names:
        cache.put(name, name.upper())
    return cache


def kept(cache: SecondChanceCache[str, str], names: str) -> str:
    """Those of ``names`` that are in the cache."""
    return "".join(name for name in names if cache.entry(name) is not None)


def answer(drawing: Drawing, words: list[str]) -> str:
    """Of a cache of the capacity that is drawn, to which some calls are made."""
    named = NamedKeys(int(dict(drawing)["cache"]))
    if words[0] != "after":
        raise NotImplementedError
    kept = kept_after(" ".join(words[1:]), named)
    assert len(named.cache) == len(named.kept)
    return kept


@states("second_chance_cache.txt")
def test_states(case: Case) -> None:
    case.check(answer, draws="cache")


def test_one_value_goes_at_a_time() -> None:
    cache = filled(10, "ab")
    cache.get("a")
    assert cache.peek("b") == "B"  # which does not spare it
    assert cache.evict_one() is None  # "a" was used
    assert (cache.evict_one(), cache.evict_one()) == ("b", "a")
    assert cache.evict_one() is None
    assert cache.peek("a") is None


def test_a_value_taken_from_its_entry_is_spared_but_not_one_looked_up() -> None:
    for use, left in ((CacheEntry.take, "ac"), (bool, "bc")):
        cache = filled(2, "ab")
        entry = cache.entry("a")
        assert entry is not None
        use(entry)
        cache.put("c", "C")
        assert kept(cache, "abc") == left


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_below_one_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match=str(capacity)):
        SecondChanceCache[str, str](capacity)


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
