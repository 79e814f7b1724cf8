"""lsmkv.engine.util.block_cache: what is kept, what is evicted first, and many threads at once."""

from __future__ import annotations

import random
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
from filled_caches import NamedEntries, kept_after
from states import Case, Drawing, states
from threads import run_threads

import lsmkv
from lsmkv.engine.util import block_cache
from lsmkv.engine.util.block_cache import BlockCache
from lsmkv.engine.util.cache_entry import CacheEntry
from lsmkv.engine.util.second_chance_cache import SecondChanceCache


def answer(drawing: Drawing, words: list[str]) -> str:
    """Of a cache of the capacity that is drawn, to which some calls are made."""
    named = NamedEntries(int(dict(drawing)["cache"]))
    at = words.index("after") + 1
    kept = kept_after(" ".join(words[at:]), named)
    assert len(named.cache) == len(named.kept)
    match words[: at - 1]:
        case []:
            return f"{kept}, {named.cache.usage} used"
        case ["value", name]:
            return str(named.take(name))
    raise NotImplementedError


@states("block_cache.txt")
def test_states(case: Case) -> None:
    case.check(answer, draws="cache")


def test_a_negative_capacity_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        BlockCache[str, str](-1)


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


class Reads:
    """Reads of values of charge 1 by number, as a table reads its blocks."""

    def __init__(self, capacity: int) -> None:
        self.cache = BlockCache[int, int](capacity)
        self.entries: dict[int, CacheEntry | None] = {}
        self.missed: dict[int, int] = {}

    def read(self, number: int) -> bool:
        """Whether the value was in the cache, or was the last one that was not admitted."""
        cache = self.cache
        entry = self.entries.get(number)
        if entry is not None and entry.take() is not None:
            return True
        if cache.latest == number + 1:
            return True
        admitted = cache.admits(1, self.missed.get(number, 0))
        self.missed[number] = cache.misses
        if not admitted:
            cache.latest = number + 1
        elif entry is None:
            self.entries[number] = cache.add(number + 1, 1)
        else:
            cache.refill(entry, number + 1, 1)
        return False

    def hits(self, numbers: Iterable[int]) -> int:
        """How many of these reads were hits."""
        return sum([self.read(number) for number in numbers])


def test_values_that_do_not_come_back_push_out_nothing() -> None:
    reads = Reads(20)
    reads.hits(range(20))
    assert reads.hits(range(100, 900)) == 0
    assert reads.hits(range(20)) == 20
    reads.cache.check()


def test_a_value_that_comes_back_soon_is_admitted() -> None:
    reads = Reads(20)
    reads.hits(range(20))
    assert reads.hits([100, *range(200, 219), 100, 1, 100]) == 2  # 1 and 100: 20 misses between
    reads = Reads(20)
    reads.hits(range(20))
    assert reads.hits([100, *range(200, 220), 100, 1, 100]) == 2
    assert 100 not in reads.entries


def test_repeated_reads_of_one_value_are_hits_though_it_is_not_admitted() -> None:
    reads = Reads(20)
    reads.hits(range(20))
    assert reads.hits([100] * 10) == 9
    assert len(reads.entries) == 20
    reads.cache.clear()
    assert reads.cache.latest is None


@pytest.mark.parametrize("percent", [102, 105, 110, 120, 130])
def test_part_of_a_loop_that_does_not_fit_stays_cached(percent: int) -> None:
    reads = Reads(300)
    loop = range(300 * percent // 100)
    for _ in range(20):
        reads.hits(loop)
    assert reads.hits([*loop] * 20) > 0.4 * 20 * len(loop)
    reads.cache.check()


def test_forgetting_many_values_lets_go_of_their_entries() -> None:
    cache = BlockCache[str, str](1000)
    entries = added(cache, *"a" * 500)
    before = sys.getrefcount(entries[0])
    cache.forget(entries)
    after = sys.getrefcount(entries[0])
    assert after == before - 1
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


def test_admission_makes_skewed_reads_hit_more_often() -> None:
    """6,000 blocks read by Zipf's law, room for 600; and the same by second chance alone."""
    rng = random.Random(1)
    weights = [1 / rank**0.7 for rank in range(1, 6001)]
    blocks = rng.choices(range(6000), weights, k=60_000)
    spared = SecondChanceCache[int, int](600)
    hits = 0
    for block in blocks:
        if spared.get(block) is None:
            spared.put(block, block + 1)
        else:
            hits += 1
    assert Reads(600).hits(blocks) > 1.15 * hits


class Model:
    """The cache as a list of [entry, value, charge, used], oldest first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.cached: list[list[Any]] = []

    @property
    def charge(self) -> int:
        return sum(one[2] for one in self.cached)

    def insert(self, entry: CacheEntry | None, value: int, charge: int) -> None:
        if charge > self.capacity:
            return
        while self.charge + charge > self.capacity:
            oldest = self.cached.pop(0)
            if oldest[3]:
                self.cached.append([*oldest[:3], False])
        self.cached.append([entry, value, charge, False])


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
            model.cached = []
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
        assert cache.usage == model.charge
        assert len(cache) == len(model.cached)
        held = {id(one[0]): one[1] for one in model.cached}
        assert all(entry.value == held.get(id(entry)) for entry in entries)
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
