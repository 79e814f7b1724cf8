"""The entry of a cache: its value while that is cached."""

from __future__ import annotations

from typing import Any

import pytest
from filled_caches import NamedEntries

from lsmkv.engine.util.cache_entry import CacheEntry


@pytest.mark.parametrize("end", ["forgotten", "evicted", "cleared"])
def test_an_entry_has_its_value_while_that_is_cached(end: str) -> None:
    named = NamedEntries(2, "ab")
    entry = named.entries["a"]
    assert entry.value == "A"
    if end == "forgotten":
        named.forget("a")
    elif end == "evicted":
        named.add("c", "C", 1)
    else:
        named.cache.clear()
    assert entry.value is None
    named.cache.check()


def test_an_entry_is_spared_if_used_but_not_if_looked_at() -> None:
    named = NamedEntries(2, "ab")
    assert named.entries["a"].value == "A"
    named.add("c", "C", 1)
    assert named.kept == ["b", "c"]
    named = NamedEntries(2, "ab")
    named.entries["a"].uses = 1
    named.add("c", "C", 1)
    assert named.kept == ["a", "c"]


def test_taking_counts_uses_and_emptying_returns_the_value_once() -> None:
    entry = CacheEntry(7)
    assert (entry.take(), entry.used, entry.uses, entry.charge) == (None, False, 0, 7)
    entry.value = "value"
    assert entry.take() == "value"
    assert entry.take() == "value"
    assert (entry.used, entry.uses) == (True, 2)
    assert entry.empty() == "value"
    assert entry.empty() is entry.take() is None


class Looking:
    """Looks at the entry that had it, when it ends."""

    def __init__(self, entry: CacheEntry, seen: list[Any]) -> None:
        self._entry = entry
        self._seen = seen

    def __del__(self) -> None:
        self._seen.append(self._entry.value)


def test_the_end_of_a_value_finds_the_next_one_in_its_place() -> None:
    """As any thread would, if that end closes a file: compiled, mypyc would leave the old one."""
    entry = CacheEntry(1)
    seen: list[Any] = []
    entry.value = Looking(entry, seen)
    entry.value = "next"
    assert seen == ["next"]
