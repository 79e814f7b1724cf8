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


def added(cache: LRUCache[Any, str], *values: str) -> list[CacheEntry]:
    """Entries of charge 1 without keys."""
    entries = [cache.add(value, 1) for value in values]
    assert None not in entries
    return [entry for entry in entries if entry is not None]


def values(entries: list[CacheEntry]) -> str:
    """What is left of them."""
    return "".join(entry.value or "-" for entry in entries)


def test_entries_without_a_key_may_fill_the_cache() -> None:
    cache = LRUCache[str | None, str](20)
    entries = added(cache, *"abcdefghijklmnopqrst")
    assert values(entries) == "abcdefghijklmnopqrst"
    entries += added(cache, "u", "v")
    assert values(entries) == "--cdefghijklmnopqrstuv"
    assert cache.add("too large", 21) is None
    assert (len(cache), cache.usage) == (20, 20)
    cache.check()


def test_an_entry_not_used_in_probation_evicts_no_admitted_entry() -> None:
    cache = LRUCache[str, str](20)
    read = added(cache, *"abcdefghijklmnopqrst")
    for entry in read[:19]:
        entry.take()
    once = added(cache, "0")
    # Two have room on trial: t and 0.  Where the others stand now, a is the oldest.
    assert (values(read), values(once)) == ("-bcdefghijklmnopqrst", "0")
    once += added(cache, *"23456789" * 100)
    assert (values(read), values(once[-4:])) == ("-bcdefghijklmnopqrs-", "--89")
    cache.check()


@pytest.mark.parametrize("used_again", [True, False])
def test_an_entry_used_in_probation_is_admitted_and_must_be_used_again(used_again: bool) -> None:
    cache = LRUCache[str, str](20)
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
    # Of the twenty two are on trial; beside them eighteen have room, and d is the oldest.
    assert entries[3].value == ("d" if used_again else None)
    assert values(more) == ("-" + "x" * 19 if used_again else "x" * 20)
    cache.check()


def test_an_entry_that_returns_soon_skips_probation() -> None:
    cache = LRUCache[str, str](20)
    entries = added(cache, *"abcdefghijklmnopqrst", *"uvwxy")
    assert values(entries) == "-----fghijklmnopqrstuvwxy"
    for entry, name in zip(entries, "abcde", strict=False):
        cache.refill(entry, name, 1)
        cache.check()
    assert values(entries) == "abcde-----klmnopqrstuvwxy"
    later = added(cache, *"0" * 40)
    assert values(entries[:5]) == "abcde"
    cache.refill(entries[5], "f", 1)  # 45 others were dropped since: it is on trial as a new one
    assert entries[5].value == "f"
    later += added(cache, *"1" * 20)
    assert (values(entries[:6]), values(later[-15:])) == ("abcde-", "1" * 15)
    cache.check()


def test_an_evicted_entry_is_remembered_as_long_as_twice_the_size_would_keep_it() -> None:
    for others, known in ((19, True), (20, False)):
        cache = LRUCache[str, str](20)
        entries = added(cache, *"a" * (21 + others))
        assert (entries[0].value, cache.usage) == (None, 20)
        assert entries[others].value is None, "the last of so many more that were dropped"
        cache.refill(entries[0], "again", 1)
        assert entries[0].value == "again"
        added(cache, *"b" * 40)
        assert entries[0].value == ("again" if known else None)
        cache.check()


@pytest.mark.parametrize("percent", [102, 105, 110, 120, 130])
def test_part_of_a_loop_that_does_not_fit_stays_cached(percent: int) -> None:
    """What came back is tried again once it has gone once more: else all would push out all."""
    capacity = 300
    cache = LRUCache[int, int](capacity)
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


def test_a_forgotten_entry_frees_its_room_at_once() -> None:
    cache = LRUCache[str, str](20)
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


def test_an_entry_back_in_probation_has_left_the_main_queue() -> None:
    cache = LRUCache[str, str](20)
    entries = added(cache, *"abcdefghijklmnopqrst")
    entries[0].take()
    for entry in entries[2:]:
        entry.take()
    added(cache, "u")
    assert not entries[0].on_probation
    cache.forget([entries[0]])
    cache.refill(entries[0], "A", 1)
    assert entries[0].on_probation
    cache.put("k", "K", 1)  # all that was used leaves trial, where a tenth is left
    assert values(entries) == "A-cdefghijklmnopqrst"
    cache.check()


@pytest.mark.parametrize("seed", range(20))
def test_forgetting_entries_keeps_the_cache_consistent(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        capacity = rng.choice([1, 5, 20, 29])
        cache = LRUCache[int, int](capacity)
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
            elif dice < 0.2:
                cache.put(at, value, rng.randrange(4))
            elif entry is None:
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


def test_the_newest_entry_stays_even_where_a_tenth_of_the_cache_is_smaller() -> None:
    cache = filled(3, "abc")
    entries = added(cache, "0", "1")
    assert (kept(cache, "abc"), values(entries)) == ("bc", "-1")
    cache.check()


def test_an_entry_with_a_key_skips_probation() -> None:
    cache = LRUCache[str | None, str](20)
    cache.put(None, "None is a key", 1)
    filled_up = added(cache, *"a" * 60)
    assert values(filled_up) == "-" * 41 + "a" * 19
    assert cache.get(None) == "None is a key"
    for name in "abcdefghijklmnopqrst":
        cache.put(name, name, 1)
    # In a tenth of the room those on trial are not touched.
    assert values(filled_up) == "-" * 58 + "aa"
    assert cache.get(None) is not None
    cache.check()


def test_clear_lets_go_of_entries_without_a_key() -> None:
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


def test_an_evicted_entry_can_be_filled_again() -> None:
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
    other = cache.add("third", 1)  # its turn, and nobody used it since
    assert other is not None
    assert (entry.value, other.value, kept(cache, "b")) == (None, "third", "b")
    cache.refill(entry, "too large", 4)
    assert (entry.value, len(cache), cache.usage) == (None, 2, 2)
    keyed = cache.entry("b")
    assert keyed is not None
    with pytest.raises(ValueError, match="has a key"):
        cache.refill(keyed, "B", 1)
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


def test_a_used_entry_survives_the_next_eviction() -> None:
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
def test_an_evicted_value_is_released(end: str) -> None:
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


def test_probation_raises_the_hit_rate_of_skewed_reads() -> None:
    """6,000 blocks asked for after Zipf's law, room for 600; and the same with keys, not tried."""
    rng = random.Random(1)
    weights = [1 / rank**0.7 for rank in range(1, 6001)]
    tried, keyed = LRUCache[int, int](600), LRUCache[int, int](600)
    entries: dict[int, CacheEntry] = {}
    hits = [0, 0]
    for block in rng.choices(range(6000), weights, k=60_000):
        entry = entries.get(block)
        if entry is None:
            new = tried.add(block, 1)
            assert new is not None
            entries[block] = new
        elif entry.take() is None:
            tried.refill(entry, block, 1)
        else:
            hits[0] += 1
        if keyed.get(block) is None:
            keyed.put(block, block, 1)
        else:
            hits[1] += 1
    assert hits[0] > 1.15 * hits[1]  # 0.40 of all, and 0.33


class Model:
    """What a cache should hold: lists of [entry, key, value, charge, used], oldest first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.main: list[list[Any]] = []
        self.trial: list[list[Any]] = []
        self.dropped: list[CacheEntry | None] = []
        """From trial, in this order."""

    @property
    def rows(self) -> list[list[Any]]:
        return self.main + self.trial

    @staticmethod
    def charge(rows: list[list[Any]]) -> int:
        return sum(row[3] for row in rows)

    def remove(self, key: int) -> None:
        self.main = [row for row in self.main if row[1] != key]

    def insert(self, entry: CacheEntry | None, key: int | None, value: int, charge: int) -> None:
        if charge > self.capacity:
            return
        since = self.dropped[::-1].index(entry) if entry in self.dropped else None
        known = since is not None and since < len(self.rows)
        if known:
            self.dropped = [None if one is entry else one for one in self.dropped]
        rows = self.main if key is not None or known else self.trial
        rows.append([entry, key, value, charge, False])
        while self.charge(self.rows) > self.capacity:
            if len(self.trial) > 1 and self.charge(self.trial) > self.capacity // 10:
                oldest = self.trial.pop(0)
                if oldest[4]:
                    self.main.append([*oldest[:4], False])
                else:
                    self.dropped.append(oldest[0])
            else:
                oldest = self.main.pop(0)
                if oldest[4]:
                    self.main.append([*oldest[:4], False])


@pytest.mark.parametrize("seed", range(20))
def test_against_a_model_of_lists(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        compare_with_lists(rng, capacity=rng.choice([0, 1, 5, 9, 20, 29]))


def compare_with_lists(rng: random.Random, capacity: int) -> None:
    cache = LRUCache[int, int](capacity)
    model = Model(capacity)
    keyless: list[CacheEntry] = []
    for value in range(1, 200):
        operation = rng.choice(["put", "add", "add", "refill", "refill", "get", "take", "discard"])
        if rng.random() < 0.01:
            operation = "clear"
        key, charge = rng.randrange(6), rng.randrange(4)
        if operation == "get":
            rows = [row for row in model.rows if row[1] == key]
            assert cache.get(key) == (rows[0][2] if rows else None)
            for row in rows:
                row[4] = True
        elif operation == "put":
            entry = cache.put(key, value, charge)
            assert (entry is None) == (charge > capacity)
            model.remove(key)
            model.insert(entry, key, value, charge)
        elif operation == "add":
            entry = cache.add(value, charge)
            assert (entry is None) == (charge > capacity)
            model.insert(entry, None, value, charge)
            if entry is not None:
                keyless.append(entry)
        elif operation == "discard":
            cache.discard(key)
            model.remove(key)
        elif operation == "clear":
            cache.clear()
            model.main, model.trial = [], []
        elif keyless:
            entry = rng.choice(keyless[-40:])
            rows = [row for row in model.rows if row[0] is entry]
            if operation == "refill":
                cache.refill(entry, value, charge)
                if not rows:
                    model.insert(entry, None, value, charge)
            else:
                assert entry.take() == (rows[0][2] if rows else None)
                for row in rows:
                    row[4] = True
        assert cache.usage == model.charge(model.rows)
        assert len(cache) == len(model.rows)
        held = {id(row[0]): row[2] for row in model.rows}
        assert all(entry.value == held.get(id(entry)) for entry in keyless)
        cache.check()


def test_a_used_entry_survives_one_eviction() -> None:
    cache = filled(2, "ab")
    for _ in range(5):
        cache.get("a")
    cache.put("c", "C", 1)  # a is passed over, b goes
    assert len(cache) == 2
    cache.put("d", "D", 1)  # c is older than a is now, and was not used
    cache.put("e", "E", 1)  # a's turn: nobody has asked for it since
    assert kept(cache, "abcde") == "de"


def test_the_queue_does_not_grow_with_removed_entries() -> None:
    cache = filled(1000, "ab")
    for number in range(10_000):
        cache.put("a", str(number), 1)
        cache.discard("b")
        cache.put("b", "B", 1)
        entry = cache.add("c", 1)
        assert entry is not None
        cache.forget([entry])
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
        keyless: list[CacheEntry] = []
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
                    if key > 4:
                        keyless[-1].take()
                    entry = cache.add(str(key), 1)
                    assert entry is not None
                    entries[id(entry)] = entry
                    keyless.append(entry)
            for entry in keyless:
                cache.refill(entry, "again", 1)
            cache.discard(5)
            cache.clear()
            cache.refill(keyless[0], "once more", 1)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        last = [cache.add("new", 1), cache.add("new", 1)]  # of those on trial one stays
        for key in range(10, 40):
            cache.put(key, str(key), 1)
            cache.check()
            assert cache.entry(key) is not None
        assert [entry.value for entry in entries.values()] == [None] * len(entries)
        last += [cache.entry(key) for key in range(10, 40)]
        cache.clear()
        assert all(entry is None or entry.value is None for entry in last)
        return lines >= number

    number = 1
    while interrupted_at(number):
        number += 1
    assert number > 50 or lsmkv.COMPILED


@pytest.mark.usefixtures("quick_switches")
def test_many_threads_keep_the_cache_consistent() -> None:
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
