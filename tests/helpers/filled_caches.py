"""Caches whose values have names, and what is done to them in text.

Letters add a value of charge 1 each, their capitals; ``add f 4`` adds one of charge 4.  ``take ab``
and ``forget ab`` are of these names, ``refill ab 2`` and ``replace ab 2`` of these with charge 2,
and ``clear`` of all.  ``more 40`` adds values without names; ``used 40`` takes each right after.
"""

from __future__ import annotations

from typing import Protocol

from states import StatesError

from lsmkv.engine.util.block_cache import BlockCache
from lsmkv.engine.util.cache_entry import CacheEntry
from lsmkv.engine.util.second_chance_cache import SecondChanceCache


class NamedCache(Protocol):
    """What is done to either cache."""

    @property
    def kept(self) -> list[str]:
        """The names of the values that are in the cache."""

    def add(self, name: str, value: str, charge: int) -> None: ...
    def take(self, name: str) -> str | None: ...
    def forget(self, name: str) -> None: ...
    def again(self, call: str, name: str, charge: int) -> None: ...
    def clear(self) -> None: ...
    def check(self) -> None: ...


class NamedEntries:
    """A block cache, and the entries of its values by name, as a table keeps those of its blocks by
    number."""

    def __init__(self, capacity: int, names: str = "") -> None:
        """A value of charge 1 for each letter of ``names``: its capital."""
        self.cache = BlockCache[None, str](capacity)
        self.entries: dict[str, CacheEntry] = {}
        self.clear = self.cache.clear
        self.check = self.cache.check
        for name in names:
            self.add(name, name.upper(), 1)

    def add(self, name: str, value: str, charge: int) -> None:
        """Add a value, in place of the one that has this name."""
        self.forget(name)
        entry = self.cache.add(value, charge)
        assert (entry is None) == (charge > self.cache.capacity)
        if entry is not None:
            self.entries[name] = entry

    def take(self, name: str) -> str | None:
        """The value, which is used."""
        entry = self.entries.get(name)
        return None if entry is None else entry.take()

    def forget(self, name: str) -> None:
        entry = self.entries.get(name)
        if entry is not None:
            self.cache.forget([entry])

    def again(self, call: str, name: str, charge: int) -> None:
        getattr(self.cache, call)(self.entries[name], f"another {name.upper()}", charge)

    @property
    def kept(self) -> list[str]:
        return [name for name, entry in self.entries.items() if entry.value is not None]


class NamedKeys:
    """A second-chance cache, whose names are its keys."""

    def __init__(self, capacity: int) -> None:
        self.cache = SecondChanceCache[str, str](capacity)
        self.names: dict[str, None] = {}
        self.take = self.cache.get
        self.forget = self.cache.discard
        self.clear = self.cache.clear
        self.check = self.cache.check

    def add(self, name: str, value: str, charge: int) -> None:
        self.names[name] = None
        self.cache.put(name, value)

    def again(self, call: str, name: str, charge: int) -> None:
        raise NotImplementedError

    @property
    def kept(self) -> list[str]:
        return [name for name in self.names if self.cache.peek(name) is not None]


def kept_after(calls: str, cache: NamedCache) -> str:
    """The names that are kept after these calls, and how many values without names."""
    number = 0
    for call in calls.split(","):
        match call.split():
            case ["more" | "used" as word, count]:
                for _ in range(int(count)):
                    number += 1
                    cache.add(f"#{number}", "#", 1)
                    if word == "used":
                        cache.take(f"#{number}")
            case ["add", name, charge]:
                cache.add(name, name.upper(), int(charge))
            case ["take" | "forget" as word, names]:
                for name in names:
                    getattr(cache, word)(name)
            case ["refill" | "replace" as word, names, charge]:
                for name in names:
                    cache.again(word, name, int(charge))
            case ["clear"]:
                cache.clear()
            case [names]:
                for name in names:
                    cache.add(name, name.upper(), 1)
            case _:
                raise StatesError(f"not a call: {call}")
        cache.check()
    named = "".join(name for name in cache.kept if not name.startswith("#"))
    others = sum(name.startswith("#") for name in cache.kept)
    return (named or "none") + (f" +{others}" if others else "")
