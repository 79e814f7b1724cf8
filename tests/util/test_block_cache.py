"""lsmkv.util.block_cache: what is kept, what is evicted first, and many threads at once."""

from __future__ import annotations

import random
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from filled_caches import NamedEntries
from threads import run_threads

import lsmkv
from lsmkv.util import block_cache
from lsmkv.util.block_cache import BlockCache
from lsmkv.util.cache_entry import CacheEntry
from lsmkv.util.second_chance_cache import SecondChanceCache


def test_hit_and_miss() -> None:
    named = NamedEntries(10, "ab")
    assert named.take("a") == "A"
    assert named.take("b") == "B"
    assert len(named.cache) == 2
    assert named.cache.usage == 2
    named.cache.check()


def test_the_oldest_value_is_evicted_first() -> None:
    named = NamedEntries(3, "abcd")
    assert named.kept == "bcd"
    named.cache.check()


def test_a_hit_spares_a_value_from_eviction() -> None:
    named = NamedEntries(3, "abc")
    named.take("a")
    named.add("d", "D", 1)
    assert named.kept == "acd"


def test_a_replaced_value_counts_as_new() -> None:
    named = NamedEntries(3, "abc")
    named.add("a", "again", 1)
    named.add("d", "D", 1)
    assert named.kept == "cad"
    assert named.take("a") == "again"


def test_replacing_a_value_replaces_its_charge() -> None:
    named = NamedEntries(10)
    named.add("a", "small", 2)
    named.add("a", "large", 7)
    assert (named.cache.usage, len(named.cache)) == (7, 1)
    named.add("a", "small", 1)
    assert (named.cache.usage, len(named.cache)) == (1, 1)
    named.cache.check()


def test_a_large_value_evicts_several() -> None:
    named = NamedEntries(5, "abcde")
    named.add("f", "F", 4)
    assert named.kept == "ef"
    assert named.cache.usage == 5
    named.cache.check()


def test_a_value_as_large_as_the_cache_is_kept() -> None:
    named = NamedEntries(5, "abc")
    named.add("f", "F", 5)
    assert named.kept == "f"


def test_a_value_larger_than_the_cache_is_not_kept_and_evicts_nothing() -> None:
    named = NamedEntries(5, "abc")
    assert named.add("f", "F", 6) is None
    assert named.kept == "abc"
    named.cache.check()


def test_a_capacity_of_zero_turns_caching_off() -> None:
    named = NamedEntries(0, "abc")
    assert named.kept == ""
    assert (named.cache.usage, len(named.cache)) == (0, 0)
    named.cache.check()


def test_a_negative_capacity_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        BlockCache[str, str](-1)


def test_forget_and_clear() -> None:
    named = NamedEntries(5, "abc")
    named.forget("b")
    assert named.kept == "ac"
    assert named.cache.usage == 2
    named.cache.clear()
    assert named.kept == ""
    assert named.cache.usage == 0
    named.cache.check()
    named.add("a", "A", 5)
    assert named.take("a") == "A"


def test_another_form_of_a_value_takes_its_place() -> None:
    named = NamedEntries(5, "abcd")
    cache, entry = named.cache, named.entries["a"]
    assert entry is not None
    assert named.take("a") == "A"
    cache.replace(entry, "another A", 3)
    assert named.kept == "acd"  # b gives way, the oldest that was not used
    assert named.take("a") == "another A"
    cache.check()


def test_a_value_that_was_evicted_is_not_replaced() -> None:
    named = NamedEntries(3, "abcd")
    entry = named.entries["a"]
    assert entry is not None
    named.cache.replace(entry, "again", 1)
    assert named.kept == "bcd"
    named.cache.check()


def test_a_cache_is_full_where_a_value_would_push_out_another() -> None:
    named = NamedEntries(5, "abc")
    assert [named.cache.is_full(charge) for charge in (2, 3, 6)] == [False, True, True]


def test_none_is_not_kept() -> None:
    """None would look the same as a value that was removed."""
    cache = BlockCache[None, str | None](5)
    assert cache.add(None, 1) is None
    assert (len(cache), cache.usage) == (0, 0)
    cache.check()


KEYED: dict[str, Callable[[BlockCache[str, str]], object]] = {
    "put": lambda cache: cache.put("b", "B", 1),
    "get": lambda cache: cache.get("a"),
    "entry": lambda cache: cache.entry("a"),
    "discard": lambda cache: cache.discard("a"),
}


@pytest.mark.parametrize("method", KEYED)
def test_methods_with_keys_are_deprecated(method: str) -> None:
    cache = BlockCache[str, str](2)
    words = rf"BlockCache\.{method} is deprecated: keep the entries that BlockCache\.add returns"
    with pytest.warns(DeprecationWarning, match=words) as caught:
        KEYED[method](cache)
    assert [one.filename for one in caught] == [__file__]


@pytest.mark.filterwarnings("ignore:BlockCache:DeprecationWarning")
def test_values_are_still_kept_under_keys() -> None:
    cache = BlockCache[str | None, str](2)
    entry = cache.put("a", "A", 1)
    assert entry is not None
    assert cache.entry("a") is entry
    assert (cache.get("a"), cache.get("b"), cache.entry("b")) == ("A", None, None)
    assert cache.put("a", "again", 1) is not entry
    assert (entry.value, cache.get("a"), len(cache)) == (None, "again", 1)
    assert cache.put("b", "too large", 3) is None
    cache.put(None, "None is a key", 1)
    cache.put("c", "C", 1)
    assert (cache.get("a"), cache.get(None), cache.get("c")) == ("again", None, "C")
    cache.discard("a")
    cache.discard("never there")
    assert (cache.get("a"), len(cache)) == (None, 1)
    cache.clear()
    assert cache.get("c") is None
    cache.check()


@pytest.mark.filterwarnings("ignore:BlockCache:DeprecationWarning")
def test_keys_whose_values_are_gone_do_not_add_up() -> None:
    cache = BlockCache[Held, str](2)
    keys: weakref.WeakSet[Held] = weakref.WeakSet()
    for _ in range(1000):
        key = Held()
        keys.add(key)
        cache.put(key, "value", 1)
    assert len(keys) < 100


def added(cache: BlockCache[Any, str], *values: str) -> list[CacheEntry]:
    """Entries of charge 1."""
    entries = [cache.add(value, 1) for value in values]
    assert None not in entries
    return [entry for entry in entries if entry is not None]


def values(entries: list[CacheEntry]) -> str:
    """Their values, with a dash for each that was removed."""
    return "".join(entry.value or "-" for entry in entries)


def test_values_on_probation_may_fill_an_empty_cache() -> None:
    cache = BlockCache[str | None, str](20)
    entries = added(cache, *"abcdefghijklmnopqrst")
    assert values(entries) == "abcdefghijklmnopqrst"
    entries += added(cache, "u", "v")
    assert values(entries) == "--cdefghijklmnopqrstuv"
    assert cache.add("too large", 21) is None
    assert (len(cache), cache.usage) == (20, 20)
    cache.check()


def test_unused_values_on_probation_evict_only_each_other() -> None:
    cache = BlockCache[str, str](20)
    read = added(cache, *"abcdefghijklmnopqrst")
    for entry in read[:19]:
        entry.take()
    once = added(cache, "0")
    # Two have room on probation: t and 0.  In the main queue, a is the oldest.
    assert (values(read), values(once)) == ("-bcdefghijklmnopqrst", "0")
    once += added(cache, *"23456789" * 100)
    assert (values(read), values(once[-4:])) == ("-bcdefghijklmnopqrs-", "--89")
    cache.check()


@pytest.mark.parametrize("used_again", [True, False])
def test_a_value_used_on_probation_is_admitted_and_must_be_used_again(used_again: bool) -> None:
    cache = BlockCache[str, str](20)
    entries = added(cache, *"abcdefghijklmnopqrst")
    entries[3].take()
    more = added(cache, *"0123")
    assert (values(entries), values(more)) == ("---d-fghijklmnopqrst", "0123")
    cache.check()
    if used_again:
        entries[3].take()
    more = []
    for _ in range(20):
        more += added(cache, "x")
        more[-1].take()
    # Two of the twenty are on probation; the main queue has room for eighteen, d is the oldest.
    assert entries[3].value == ("d" if used_again else None)
    assert values(more) == ("-" + "x" * 19 if used_again else "x" * 20)
    cache.check()


def test_a_value_refilled_soon_after_eviction_skips_probation() -> None:
    cache = BlockCache[str, str](20)
    entries = added(cache, *"abcdefghijklmnopqrst", *"uvwxy")
    assert values(entries) == "-----fghijklmnopqrstuvwxy"
    for entry, name in zip(entries, "abcde", strict=False):
        cache.refill(entry, name, 1)
        cache.check()
    assert values(entries) == "abcde-----klmnopqrstuvwxy"
    later = added(cache, *"0" * 40)
    assert values(entries[:5]) == "abcde"
    cache.refill(entries[5], "f", 1)  # after 45 more evictions it is on probation, as a new one is
    assert entries[5].value == "f"
    later += added(cache, *"1" * 20)
    assert (values(entries[:6]), values(later[-15:])) == ("abcde-", "1" * 15)
    cache.check()


def test_an_eviction_is_remembered_for_as_many_more_as_the_cache_holds() -> None:
    for others, remembered in ((19, True), (20, False)):
        cache = BlockCache[str, str](20)
        entries = added(cache, *"a" * (21 + others))
        assert (entries[0].value, cache.usage) == (None, 20)
        assert entries[others].value is None, "the last of the other evicted values"
        cache.refill(entries[0], "again", 1)
        assert entries[0].value == "again"
        added(cache, *"b" * 40)
        assert entries[0].value == ("again" if remembered else None)
        cache.check()


@pytest.mark.parametrize("percent", [102, 105, 110, 120, 130])
def test_part_of_a_loop_that_does_not_fit_stays_cached(percent: int) -> None:
    """A value that skipped probation once begins there the next time, or all would evict all."""
    capacity = 300
    cache = BlockCache[int, int](capacity)
    loop: list[CacheEntry | None] = [None] * (capacity * percent // 100)
    hits = 0
    for turn in range(40):
        for at, entry in enumerate(loop):
            if entry is None:
                loop[at] = cache.add(at, 1)
            elif entry.take() is None:
                cache.refill(entry, at, 1)
            elif turn >= 20:
                hits += 1
    assert hits > 0.4 * 20 * len(loop)
    cache.check()


def test_forgotten_values_make_room_at_once() -> None:
    cache = BlockCache[str, str](20)
    entries = added(cache, *"abcdefghijklmnopqrst")
    entries[0].take()
    entries += added(cache, "u")
    assert values(entries) == "a-cdefghijklmnopqrstu"
    cache.forget([entries[0], entries[1], entries[3], entries[20]])
    assert values(entries) == "--c-efghijklmnopqrst-"
    assert (len(cache), cache.usage) == (17, 17)
    cache.check()
    cache.refill(entries[3], "D", 1)
    cache.refill(entries[0], "A", 1)
    entries += added(cache, "v")
    assert values(entries) == "A-cDefghijklmnopqrst-v"
    cache.check()


def test_forgetting_many_values_lets_go_of_their_entries() -> None:
    cache = BlockCache[str, str](1000)
    entries = added(cache, *"a" * 500)
    before = sys.getrefcount(entries[0])
    cache.forget(entries)
    after = sys.getrefcount(entries[0])
    assert after == before - 1
    cache.check()


def test_a_refilled_entry_on_probation_has_no_turn_in_the_main_queue() -> None:
    cache = BlockCache[str, str](20)
    entries = added(cache, *"abcdefghijklmnopqrst")
    entries[0].take()
    for entry in entries[2:]:
        entry.take()
    added(cache, "u")
    assert not entries[0].on_probation
    cache.forget([entries[0]])
    cache.refill(entries[0], "A", 1)
    assert entries[0].on_probation
    added(cache, "v")  # the used values are admitted, until a tenth is on probation
    assert values(entries) == "A-cdefghijklmnopqrst"
    cache.check()


@pytest.mark.parametrize("seed", range(20))
def test_forget_keeps_the_invariants_in_random_runs(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        capacity = rng.choice([1, 5, 20, 29])
        cache = BlockCache[int, int](capacity)
        entries: dict[int, CacheEntry] = {}
        last: dict[int, int] = {}
        for value in range(1, 300):
            at = rng.randrange(60)
            entry = entries.get(at)
            dice = rng.random()
            if dice < 0.1:
                some = [one for number, one in entries.items() if number % 3 == at % 3]
                cache.forget(some)
                assert all(one.value is None for one in some)
            elif entry is None or dice < 0.2:
                new = cache.add(value, rng.randrange(min(4, capacity + 1)))
                assert new is not None
                entries[at] = new
                last[at] = value
            elif entry.take() is None:
                cache.refill(entry, value, rng.randrange(min(4, capacity + 1)))
                last[at] = value
            cache.check()
            for number, one in entries.items():
                assert one.value in (None, last[number])


def test_the_last_value_stays_however_small_the_probation_queue() -> None:
    cache = BlockCache[None, str](3)
    admitted = added(cache, *"abc")
    for entry in admitted:
        entry.take()
    entries = added(cache, "0", "1")
    assert (values(admitted), values(entries)) == ("-bc", "-1")
    cache.check()


def test_a_tenth_of_the_room_stays_with_values_on_probation() -> None:
    cache = BlockCache[None, str](20)
    admitted = added(cache, *"abcdefghijklmnopqrst")
    for entry in admitted:
        entry.take()
    once = added(cache, *"0" * 60)
    assert (values(admitted), values(once)) == ("--" + "cdefghijklmnopqrst", "-" * 58 + "00")
    for entry in added(cache, *"1" * 5):
        entry.take()
    assert sum(one.value is not None for one in admitted) == 18
    cache.check()


def test_clear_lets_go_of_values() -> None:
    cache = BlockCache[str, Held](5)
    held = Held()
    gone = weakref.ref(held)
    entry = cache.add(held, 1)
    del held
    assert gone() is not None
    cache.clear()
    assert entry is not None
    assert (gone(), entry.value, len(cache), cache.usage) == (None, None, 0, 0)
    cache.check()


def test_a_refilled_entry_counts_as_new() -> None:
    cache = BlockCache[str, str](3)
    entry = cache.add("first", 1)
    assert entry is not None
    assert entry.take() == "first"
    cache.refill(entry, "too early", 1)
    assert (entry.value, len(cache), cache.usage) == ("first", 1, 1)
    cache.clear()
    others = added(cache, "a")
    cache.refill(entry, "second", 2)
    assert (entry.value, len(cache), cache.usage) == ("second", 2, 3)
    cache.check()
    others += added(cache, "b")
    assert (entry.value, values(others)) == ("second", "-b")
    others += added(cache, "c")  # the turn of the refilled entry, which was not used since
    assert (entry.value, values(others)) == (None, "-bc")
    cache.refill(entry, "too large", 4)
    assert (entry.value, len(cache), cache.usage) == (None, 2, 2)
    cache.check()


class Held:
    """An object whose end a weak reference tells."""


@pytest.mark.parametrize("end", ["forgotten", "evicted", "cleared"])
def test_a_removed_value_is_let_go(end: str) -> None:
    """A cached object may hold a file open, which takes room on disk until it is closed."""
    cache: BlockCache[int, Held] = BlockCache(2)
    held = Held()
    gone = weakref.ref(held)
    entry = cache.add(held, 1)
    del held
    assert entry is not None
    assert gone() is not None
    if end == "forgotten":
        cache.forget([entry])
    elif end == "evicted":
        for _ in range(3):
            cache.add(Held(), 1)
    else:
        cache.clear()
    assert gone() is None


def test_check_sees_a_wrong_sum() -> None:
    cache = NamedEntries(5, "abc").cache
    cache.usage += 1
    with pytest.raises(AssertionError):
        cache.check()


def test_probation_makes_skewed_reads_hit_more_often() -> None:
    """6,000 blocks read by Zipf's law, room for 600; and the same by second chance alone."""
    rng = random.Random(1)
    weights = [1 / rank**0.7 for rank in range(1, 6001)]
    admitted, spared = BlockCache[int, int](600), SecondChanceCache[int, int](600)
    entries: dict[int, CacheEntry] = {}
    hits = [0, 0]
    for block in rng.choices(range(6000), weights, k=60_000):
        entry = entries.get(block)
        if entry is None:
            new = admitted.add(block, 1)
            assert new is not None
            entries[block] = new
        elif entry.take() is None:
            admitted.refill(entry, block, 1)
        else:
            hits[0] += 1
        if spared.get(block) is None:
            spared.put(block, block + 1)
        else:
            hits[1] += 1
    assert hits[0] > 1.15 * hits[1]  # 0.40 and 0.33 of all reads


class Model:
    """The cache as lists of [entry, value, charge, used], oldest first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.main: list[list[Any]] = []
        self.probation: list[list[Any]] = []
        self.evicted: list[CacheEntry | None] = []
        """Those evicted from probation, in this order."""

    @property
    def cached(self) -> list[list[Any]]:
        return self.main + self.probation

    @staticmethod
    def charge(cached: list[list[Any]]) -> int:
        return sum(one[2] for one in cached)

    def insert(self, entry: CacheEntry | None, value: int, charge: int) -> None:
        if charge > self.capacity:
            return
        since = self.evicted[::-1].index(entry) if entry in self.evicted else None
        lately = since is not None and since < len(self.cached)
        if lately:
            self.evicted = [None if one is entry else one for one in self.evicted]
        cached = self.main if lately else self.probation
        cached.append([entry, value, charge, False])
        while self.charge(self.cached) > self.capacity:
            if len(self.probation) > 1 and self.charge(self.probation) > self.capacity // 10:
                oldest = self.probation.pop(0)
                if oldest[3]:
                    self.main.append([*oldest[:3], False])
                else:
                    self.evicted.append(oldest[0])
            else:
                oldest = self.main.pop(0)
                if oldest[3]:
                    self.main.append([*oldest[:3], False])


@pytest.mark.parametrize("seed", range(20))
def test_random_operations_match_a_model_of_lists(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        compare_with_lists(rng, capacity=rng.choice([0, 1, 5, 9, 20, 29]))


def compare_with_lists(rng: random.Random, capacity: int) -> None:
    cache = BlockCache[int, int](capacity)
    model = Model(capacity)
    entries: list[CacheEntry] = []
    for value in range(1, 200):
        operation = rng.choice(["add", "add", "refill", "refill", "take"])
        if rng.random() < 0.01:
            operation = "clear"
        charge = rng.randrange(4)
        if operation == "add":
            new = cache.add(value, charge)
            assert (new is None) == (charge > capacity)
            model.insert(new, value, charge)
            if new is not None:
                entries.append(new)
        elif operation == "clear":
            cache.clear()
            model.main, model.probation = [], []
        elif entries:
            entry = rng.choice(entries[-40:])
            cached = [one for one in model.cached if one[0] is entry]
            if operation == "refill":
                cache.refill(entry, value, charge)
                if not cached:
                    model.insert(entry, value, charge)
            else:
                assert entry.take() == (cached[0][1] if cached else None)
                for one in cached:
                    one[3] = True
        assert cache.usage == model.charge(model.cached)
        assert len(cache) == len(model.cached)
        held = {id(one[0]): one[1] for one in model.cached}
        assert all(entry.value == held.get(id(entry)) for entry in entries)
        cache.check()


def test_a_used_value_is_spared_once() -> None:
    cache = BlockCache[None, str](2)
    entries = added(cache, "a", "b")
    for _ in range(5):
        entries[0].take()
        entries[1].take()
    entries += added(cache, "c")  # a and b are admitted, and a is the older one
    assert values(entries) == "-bc"
    entries[1].take()
    entries[2].take()
    entries += added(cache, "d")  # c is admitted, b is spared
    assert values(entries) == "-b-d"
    entries[3].take()
    entries += added(cache, "e")  # b's turn again: it was not used since
    assert values(entries) == "---de"
    cache.check()


def test_removed_values_do_not_make_the_queues_grow() -> None:
    cache = NamedEntries(1000, "ab").cache
    for _ in range(10_000):
        cache.forget(added(cache, "c", "d", "e"))
    cache.check()
    assert len(cache) == 2


@pytest.mark.untraced
def test_an_interrupt_anywhere_leaves_no_value_uncounted(
    interrupted_at: Callable[..., bool],
) -> None:
    """After a Ctrl-C at any line, usage is within the capacity and evicted entries are empty.

    Compiled code is not interrupted inside the cache."""

    def is_whole_after(line: int) -> bool:
        cache = BlockCache[None, str](3)
        entries: list[CacheEntry] = []

        def use() -> None:
            for number_of_value in range(12):
                entry = cache.add(str(number_of_value), 1)
                assert entry is not None
                entries.append(entry)
                if number_of_value % 3:
                    entries[-2 if number_of_value % 2 else -1].take()
            for entry in entries:
                cache.refill(entry, "again", 1)
            cache.forget(entries[-2:])
            cache.clear()
            cache.refill(entries[0], "once more", 1)

        interrupted = interrupted_at(block_cache, line, use)
        last: list[CacheEntry] = []
        for value in range(40):
            last += added(cache, str(value))
            last[-1].take()
            cache.check()
            assert last[-1].value is not None
        assert [entry.value for entry in entries] == [None] * len(entries)
        cache.clear()
        assert all(entry.value is None for entry in last)
        return interrupted

    line = 1
    while is_whole_after(line):
        line += 1
    assert line > 50 or lsmkv.COMPILED


@pytest.mark.usefixtures("quick_switches")
def test_many_threads_at_once() -> None:
    cache = BlockCache[int, tuple[int, int]](50)
    shared: list[CacheEntry] = []
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        start.wait()
        for _ in range(10_000):
            at, dice = rng.randrange(20), rng.random()
            entry = shared[at] if at < len(shared) else None
            if entry is None:
                entry = cache.add((at, seed), rng.randrange(12))
                if entry is not None and len(shared) < 20:
                    shared.append(entry)
            elif dice < 0.7:
                if entry.take() is None:
                    cache.refill(entry, (at, seed), rng.randrange(12))
            elif dice < 0.999:
                cache.forget([entry])
            else:
                cache.clear()
            value = None if entry is None else entry.take()
            assert value is None or len(value) == 2

    assert run_threads(*[partial(work, seed) for seed in range(4)]) == []
    cache.check()


@pytest.mark.usefixtures("quick_switches")
def test_check_while_threads_read() -> None:
    cache = BlockCache[None, str](1000)
    entries = added(cache, *"a" * 900)
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            for entry in entries:
                entry.take()

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
