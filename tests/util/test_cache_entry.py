"""The entry of a cache: its value while that is cached."""

from __future__ import annotations

import pytest
from filled_caches import filled, kept

from lsmkv.util.cache_entry import CacheEntry


@pytest.mark.parametrize("end", ["discarded", "replaced", "evicted", "cleared"])
def test_an_entry_has_its_value_while_that_is_cached(end: str) -> None:
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


def test_an_entry_is_spared_if_used_but_not_if_looked_up() -> None:
    cache = filled(2, "ab")
    entry = cache.entry("a")
    assert entry is not None
    cache.put("c", "C", 1)  # a lookup alone is no use
    assert kept(cache, "abc") == "bc"
    cache = filled(2, "ab")
    entry = cache.entry("a")
    assert entry is not None
    entry.used = True
    cache.put("c", "C", 1)
    assert kept(cache, "abc") == "ac"


def test_taking_marks_a_value_as_used_and_emptying_returns_it_once() -> None:
    entry = CacheEntry(7)
    assert (entry.take(), entry.used, entry.charge) == (None, False, 7)
    entry.value = "value"
    assert entry.take() == "value"
    assert entry.used
    assert entry.empty() == "value"
    assert entry.empty() is entry.take() is None
