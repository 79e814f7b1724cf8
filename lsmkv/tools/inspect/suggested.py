"""Keys to ask for on the page of a Get: present ones, absent ones, and one that a filter lets pass.

Absent keys are made of keys of the store, and each is asked for before it is suggested.  What is
not found within the time is left out.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from typing import Final

import lsmkv
from lsmkv import Explanation
from lsmkv.engine.errors import DirectoryReplacedError, Error
from lsmkv.tools.inspect.memtables import memtable_keys
from lsmkv.tools.inspect.plain import NotThereError, Plain
from lsmkv.tools.inspect.source import Source
from lsmkv.tools.sample_keys import Misspeller

SECONDS: Final = 2.0
"""After so long no further key is made."""
LONGEST: Final = 40
"""Bytes of a key that is suggested."""
_TRIES = 2000
_TABLES = 6  # whose keys are read
_KEYS = 20  # of a block of each of these
_PRESENT = 3
_ABSENT = 2
_FROM_MEMTABLE = 7  # where there is no table
_SEED = 4


def suggested(source: Source, seconds: float = SECONDS) -> Plain:
    """Keys by kind: ``absent``, ``near``, ``wrong`` and ``present``.

    All but present keys lie in the range of a table, so that a Get asks it.  ``near`` keys differ
    from a present one by a letter; ``wrong`` has one for which a filter errs.  Cost: a data block
    of some tables, and Gets for ``seconds`` at most.
    """
    end = time.monotonic() + seconds
    rng = random.Random(_SEED)
    db = source.db()
    stored = list(dict.fromkeys(_stored(db, source, rng)))
    unflushed = [key for key in memtable_keys(source, 4 * _FROM_MEMTABLE) if len(key) < LONGEST]
    rng.shuffle(stored)
    found = [one for one in _asked(db, stored, end) if one.found]
    found.sort(key=lambda one: one.blocks_searched - one.blocks_without_filters)
    chosen = [one.key for one in found[:_PRESENT]]  # those of which filters save most
    more = _asked(db, [key for key in unflushed if key not in chosen], end)
    chosen += [one.key for one in more if one.found][: 2 if chosen else _FROM_MEMTABLE]
    kinds: dict[str, list[bytes]] = {"absent": [], "near": [], "wrong": [], "present": chosen}
    if stored and "meaning" not in source.shown_key(stored[0]):  # other keys cannot be made up
        _make_up(db, stored, kinds, rng, end)
    return {kind: [source.shown_key(key) for key in keys] for kind, keys in kinds.items()}


def _make_up(
    db: lsmkv.DB, stored: list[bytes], kinds: dict[str, list[bytes]], rng: random.Random, end: float
) -> None:
    """Add absent keys to ``kinds``."""
    misspeller = Misspeller(stored, set(stored).__contains__, rng)
    for number in range(_TRIES):
        kind = ("near", "absent")[number % 2]
        if kinds["wrong"] and len(kinds["near"]) == len(kinds["absent"]) == _ABSENT:
            return
        key = rng.choice(stored)
        made = misspeller.misspelt(key) if kind == "near" else _like(key, rng.choice(stored), rng)
        if len(made) >= LONGEST or any(made in keys for keys in kinds.values()):
            continue
        for one in _asked(db, [made], end):
            if one.chosen is not None or not one.blocks_without_filters:
                continue
            if any(table.wasted and table.filters for table in one.tables):
                kinds["wrong"] = kinds["wrong"] or [made]
            elif len(kinds[kind]) < _ABSENT:
                kinds[kind].append(made)
        if time.monotonic() > end:
            return


def _like(key: bytes, other: bytes, rng: random.Random) -> bytes:
    """A key that begins as two keys do, and goes on with letters of the first in another order."""
    pairs = enumerate(zip(key, other, strict=False))
    same = next((at for at, (one, another) in pairs if one != another), 0)
    rest = list(key[same:].decode("utf-8", "surrogateescape"))
    rng.shuffle(rest)
    return key[:same] + "".join(rest).encode("utf-8", "surrogateescape")


def _asked(db: lsmkv.DB, keys: list[bytes], end: float) -> Iterator[Explanation]:
    """Look these keys up, until ``end``; those that meet damage are left out."""
    for key in keys:
        try:
            yield db.explain(key)
        except DirectoryReplacedError:
            raise
        except Error:
            continue
        if time.monotonic() > end:
            return


def _stored(db: lsmkv.DB, source: Source, rng: random.Random) -> Iterator[bytes]:
    """Keys in tables, which a later write may have deleted."""
    tables = db.tables()
    for table in rng.sample(tables, min(_TABLES, len(tables))):
        keys = [table.smallest, table.largest]
        with contextlib.suppress(Error, NotThereError), source.open_table(table.name) as file:
            places = [place for place in file.places() if place.kind == "data"]
            block = file.block(rng.choice(places))
            entries = block.entries()
            keys += [
                one.internal_key.user_key for one in rng.sample(entries, min(_KEYS, len(entries)))
            ]
        yield from (key for key in keys if len(key) < LONGEST)
