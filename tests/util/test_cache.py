"""lsmkv.util.cache: what is kept, what goes first, and threads that fight over it."""

from __future__ import annotations

import linecache
import random
import sys
import threading
import weakref
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lsmkv
from lsmkv.util import cache as cache_module
from lsmkv.util.cache import CacheEntry, LRUCache


def filled(capacity: int, names: str) -> LRUCache[str, str]:
    cache = LRUCache[str, str](capacity)
    for name in names:
        cache.put(name, name.upper(), 1)
    return cache


def kept(cache: LRUCache[Any, str], names: str) -> str:
    """Which of ``names`` are in the cache.."""
    return "".join(name for name in names if cache.get(name) is not None)


def test_hit_and_miss() -> None:
    cache = filled(10, "ab")
    assert cache.get("a") == "A"
    assert cache.get("b") == "B"
    assert cache.get("c") is None
    assert len(cache) == 2
    assert cache.usage == 2
    cache.check()


def test_the_coldest_goes_first() -> None:
    cache = filled(3, "abcd")
    assert kept(cache, "abcd") == "bcd"
    cache.check()


def test_a_hit_keeps_an_entry_warm() -> None:
    cache = filled(3, "abc")
    cache.get("a")
    cache.put("d", "D", 1)
    assert kept(cache, "abcd") == "acd"


def test_replacing_makes_an_entry_warm() -> None:
    cache = filled(3, "abc")
    cache.put("a", "again", 1)
    cache.put("d", "D", 1)
    assert kept(cache, "abcd") == "acd"
    assert cache.get("a") == "again"


def test_a_miss_changes_nothing() -> None:
    cache = filled(3, "abc")
    cache.get("x")
    cache.put("d", "D", 1)
    assert kept(cache, "abcd") == "bcd"


def test_replacing_charges_anew() -> None:
    cache = LRUCache[str, str](10)
    cache.put("a", "small", 2)
    cache.put("a", "large", 7)
    assert (cache.usage, len(cache)) == (7, 1)
    cache.put("a", "small", 1)
    assert (cache.usage, len(cache)) == (1, 1)
    cache.check()


def test_a_large_entry_pushes_out_many() -> None:
    cache = filled(5, "abcde")
    cache.put("f", "F", 4)
    assert kept(cache, "abcdef") == "ef"
    assert cache.usage == 5
    cache.check()


def test_an_entry_as_large_as_the_cache_is_kept() -> None:
    cache = filled(5, "abc")
    cache.put("f", "F", 5)
    assert kept(cache, "abcf") == "f"


def test_an_oversize_entry_is_not_kept_and_pushes_nothing_out() -> None:
    cache = filled(5, "abc")
    cache.put("f", "F", 6)
    assert kept(cache, "abcf") == "abc"
    cache.check()


def test_an_oversize_entry_still_ends_the_one_it_replaces() -> None:
    cache = filled(5, "abc")
    cache.put("b", "too large", 6)
    assert kept(cache, "abc") == "ac"
    assert cache.usage == 2
    cache.check()


def test_a_capacity_of_nothing_turns_caching_off() -> None:
    cache = filled(0, "abc")
    assert kept(cache, "abc") == ""
    assert (cache.usage, len(cache)) == (0, 0)
    cache.check()


def test_a_negative_capacity_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        LRUCache[str, str](-1)


def test_discard_and_clear() -> None:
    cache = filled(5, "abc")
    cache.discard("b")
    cache.discard("never there")
    assert kept(cache, "abc") == "ac"
    assert cache.usage == 2
    cache.clear()
    assert kept(cache, "abc") == ""
    assert cache.usage == 0
    cache.check()
    cache.put("a", "A", 5)
    assert cache.get("a") == "A"


def test_none_is_not_kept() -> None:
    """It could not be told from what was removed."""
    cache = LRUCache[str, str | None](5)
    cache.put("a", "A", 5)
    assert cache.put("a", None, 1) is None
    assert cache.add(None, 1) is None
    assert (len(cache), cache.usage, cache.get("a")) == (0, 0, None)
    cache.check()


def test_what_has_no_key_takes_its_turn_with_the_others() -> None:
    cache = LRUCache[str | None, str](3)
    first = cache.add("first", 1)
    cache.put(None, "None is a key", 1)
    second = cache.add("second", 1)
    assert first is not None
    assert second is not None
    assert (len(cache), cache.usage) == (3, 3)
    assert second.take() == "second"
    third = cache.add("third", 1)
    assert third is not None
    assert (first.value, third.value, cache.get(None)) == (None, "third", "None is a key")
    cache.put("a", "A", 1)  # both that were used are spared
    assert (third.value, second.value, len(cache)) == (None, "second", 3)
    cache.put("b", "B", 1)
    cache.put("c", "C", 1)
    cache.put("d", "D", 1)
    assert (cache.get(None), second.value, kept(cache, "abcd")) == (None, None, "bcd")
    assert cache.add("too large", 4) is None
    cache.check()


def test_what_has_no_key_goes_with_the_others() -> None:
    cache = LRUCache[str, Held](5)
    held = Held()
    gone = weakref.ref(held)
    entry = cache.add(held, 1)
    del held
    assert gone() is not None
    cache.clear()
    assert entry is not None
    assert (gone(), entry.value, len(cache), cache.usage) == (None, None, 0, 0)
    cache.check()


def test_an_entry_that_is_filled_again_is_as_new() -> None:
    cache = LRUCache[str, str](3)
    entry = cache.add("first", 1)
    assert entry is not None
    assert entry.take() == "first"
    cache.refill(entry, "too early", 1)
    assert (entry.value, len(cache), cache.usage) == ("first", 1, 1)
    cache.clear()
    cache.put("a", "A", 1)
    cache.refill(entry, "second", 2)
    assert (entry.value, len(cache), cache.usage) == ("second", 2, 3)
    cache.check()
    cache.put("b", "B", 1)
    assert (entry.value, kept(cache, "ab")) == ("second", "b")
    cache.put("c", "C", 1)  # its turn, and nobody used it since
    assert (entry.value, kept(cache, "bc")) == (None, "bc")
    cache.refill(entry, "too large", 4)
    assert (entry.value, len(cache), cache.usage) == (None, 2, 2)
    keyed = cache.entry("c")
    assert keyed is not None
    with pytest.raises(ValueError, match="has a key"):
        cache.refill(keyed, "C", 1)
    cache.check()


@pytest.mark.parametrize("end", ["discarded", "replaced", "evicted", "cleared"])
def test_an_entry_has_its_value_as_long_as_it_is_cached(end: str) -> None:
    cache = filled(2, "ab")
    assert cache.entry("x") is None
    entry = cache.entry("a")
    assert entry is not None
    assert entry.value == "A"
    if end == "discarded":
        cache.discard("a")
    elif end == "replaced":
        cache.put("a", "again", 1)
    elif end == "evicted":
        cache.put("c", "C", 1)
    else:
        cache.clear()
    assert entry.value is None
    cache.check()


def test_put_returns_the_entry() -> None:
    cache = LRUCache[str, str](5)
    entry = cache.put("a", "A", 5)
    assert entry is not None
    assert (entry.key, entry.value) == ("a", "A")
    assert cache.entry("a") is entry
    assert cache.put("b", "too large", 6) is None
    assert cache.put("b", "B", 1) is cache.entry("b") is not None
    assert entry.value is None


def test_an_entry_is_spared_by_who_uses_it() -> None:
    cache = filled(2, "ab")
    entry = cache.entry("a")
    assert entry is not None
    cache.put("c", "C", 1)  # to have looked it up is no use
    assert kept(cache, "abc") == "bc"
    cache = filled(2, "ab")
    entry = cache.entry("a")
    assert entry is not None
    entry.used = True
    cache.put("c", "C", 1)
    assert kept(cache, "abc") == "ac"


class Held:
    """Something that can be watched going away."""


@pytest.mark.parametrize("end", ["discarded", "replaced", "evicted", "cleared"])
def test_what_is_no_longer_cached_is_let_go(end: str) -> None:
    """A table's file is closed with it, and a removed file takes room until it is closed."""
    cache: LRUCache[int, Held] = LRUCache(2)
    held = Held()
    gone = weakref.ref(held)
    cache.put(1, held, 1)
    del held
    assert gone() is not None
    if end == "discarded":
        cache.discard(1)
    elif end == "replaced":
        cache.put(1, Held(), 1)
    elif end == "evicted":
        for key in (2, 3, 4):
            cache.put(key, Held(), 1)
    else:
        cache.clear()
    assert gone() is None


def test_check_sees_a_wrong_sum() -> None:
    cache = filled(5, "abc")
    cache.usage += 1
    with pytest.raises(AssertionError):
        cache.check()


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["put", "get", "discard"]), st.integers(0, 5), st.integers(0, 8)),
    max_size=60,
)


@settings(deadline=None)
@given(OPERATIONS, st.integers(0, 15))
def test_it_does_what_a_list_does(operations: list[tuple[str, int, int]], capacity: int) -> None:
    """The oracle: a list of [key, value, charge, used], oldest first."""
    cache = LRUCache[int, int](capacity)
    model: list[list[int]] = []
    for at, (operation, key, charge) in enumerate(operations):
        old = [entry for entry in model if entry[0] == key]
        if operation == "get":
            assert cache.get(key) == (old[0][1] if old else None)
            for entry in old:
                entry[3] = 1
        else:
            model = [entry for entry in model if entry[0] != key]
            if operation == "discard":
                cache.discard(key)
            else:
                cache.put(key, at, charge)
                if charge <= capacity:
                    model.append([key, at, charge, 0])
                while sum(entry[2] for entry in model) > capacity:
                    oldest = model.pop(0)
                    if oldest[3]:
                        oldest[3] = 0
                        model.append(oldest)
        assert cache.usage == sum(entry[2] for entry in model)
        assert len(cache) == len(model)
        cache.check()


def test_a_used_entry_is_spared_once_for_each_use() -> None:
    cache = filled(2, "ab")
    for _ in range(5):
        cache.get("a")
    cache.put("c", "C", 1)  # a is passed over, b goes
    assert len(cache) == 2
    cache.put("d", "D", 1)  # c is older than a is now, and was not used
    cache.put("e", "E", 1)  # a's turn: nobody has asked for it since
    assert kept(cache, "abcde") == "de"


def test_the_queue_does_not_grow_with_what_was_removed() -> None:
    cache = filled(1000, "ab")
    for number in range(10_000):
        cache.put("a", str(number), 1)
        cache.discard("b")
        cache.put("b", "B", 1)
    cache.check()
    assert len(cache) == 2


@pytest.mark.untraced
def test_an_interrupt_anywhere_leaves_nothing_behind() -> None:
    """Where Ctrl-C may strike: nothing is kept beyond the capacity, and what is out holds nothing.

    Compiled, it strikes nowhere in here."""

    def interrupted_at(number: int) -> bool:
        lines = 0

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal lines
            if frame.f_code.co_filename != cache_module.__file__:
                return None
            # CPython looks for signals after calls: none comes just behind a with, or at its end.
            here = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            if event == "line" and not here.lstrip().startswith(("with ", "try:")):
                lines += 1
                if lines == number:
                    raise KeyboardInterrupt
            return trace

        cache = LRUCache[int, str](3)
        entries: dict[int, CacheEntry] = {}
        added: list[CacheEntry] = []
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            for key in (1, 2, 3, 1, 4, 2, 5, 6):
                if cache.get(key) is None:
                    cache.put(key, str(key), 1)
                entry = cache.entry(key)
                assert entry is not None
                entries[id(entry)] = entry
                if key > 2:
                    entry = cache.add(str(key), 1)
                    assert entry is not None
                    entries[id(entry)] = entry
                    added.append(entry)
            for entry in added:
                cache.refill(entry, "again", 1)
            cache.discard(5)
            cache.clear()
            cache.refill(added[0], "once more", 1)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        for key in range(10, 40):
            cache.put(key, str(key), 1)
            cache.check()
            assert cache.entry(key) is not None
        assert [entry.value for entry in entries.values()] == [None] * len(entries)
        last = [cache.entry(key) for key in range(10, 40)]
        cache.clear()
        assert all(entry is None or entry.value is None for entry in last)
        return lines >= number

    number = 1
    while interrupted_at(number):
        number += 1
    assert number > 50 or lsmkv.COMPILED


@pytest.mark.usefixtures("quick_switches")
def test_threads_hammer_it() -> None:
    cache = LRUCache[int, tuple[int, int]](50)
    shared: list[CacheEntry] = []
    failures: list[BaseException] = []
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        try:
            start.wait()
            for _ in range(10_000):
                key = rng.randrange(12)
                dice = rng.random()
                if dice < 0.5:
                    found = cache.get(key)
                    assert found is None or found[0] == key
                elif dice < 0.7:
                    cache.put(key, (key, seed), rng.randrange(12))
                elif dice < 0.95:
                    entry = rng.choice(shared) if shared and dice < 0.9 else None
                    if entry is None:
                        entry = cache.add((-1, seed), rng.randrange(12))
                        if entry is not None and len(shared) < 20:
                            shared.append(entry)
                    else:
                        cache.refill(entry, (-1, seed), rng.randrange(12))
                    value = None if entry is None else entry.take()
                    assert value is None or value[0] == -1
                elif dice < 0.999:
                    cache.discard(key)
                else:
                    cache.clear()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    cache.check()


@pytest.mark.usefixtures("quick_switches")
def test_check_beside_threads_that_read() -> None:
    cache = LRUCache[int, int](1000)
    for key in range(900):
        cache.put(key, key, 1)
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            for key in range(900):
                cache.get(key)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            cache.check()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
