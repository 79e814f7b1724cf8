"""A lookup in the tables, and what it teaches: which file was read in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lsmkv.db.keys import KIND_VALUE, MAX_SEQUENCE, before_versions, pack
from lsmkv.db.store import Store
from lsmkv.db.version import PLACE_BITS, Version
from lsmkv.errors import CorruptionError
from lsmkv.table.reader import FROM_CACHE, FROM_FILE, RULED_OUT, SharedBlocks

if TYPE_CHECKING:
    from mypy_extensions import i64

AT_HAND: Final = 1
"""The block that answered was in the cache."""
COMPACTION_DUE: Final = 2
"""This lookup was one too many for some file."""


def look_up(
    store: Store,
    version: Version,
    user_key: bytes,
    sequence: int,
    fill_cache: bool,
    shared: SharedBlocks | None = None,
) -> tuple[int, bytes | None, bytes | None]:
    """Look for the newest version of a key at or before ``sequence`` in a version's tables.

    Returns flags of how it went, the internal key that answered (None if there is none), and its
    value (None for a deletion).  Files are asked newest first, each one's filter before any block
    of it is read.  ``shared``: blocks at hand, for looking up many keys in order.

    LevelDB charges a seek to every first file, even where its filter said no; enough lookups of
    absent keys then rewrite a database that nobody wrote to.  Here a file is charged only when a
    block of it was really read, in vain, and a block of a second file had to be read too.
    """
    newest = sequence == MAX_SEQUENCE
    key = before_versions(user_key) if newest else pack(user_key, sequence, KIND_VALUE)
    order = user_key if store.order.is_bytewise else store.order.of(user_key)
    key_hash = store.key_hash(user_key)
    flags = 0
    in_vain: i64 = 0
    blocks_read = 0
    place = version.next_candidate(0, key, order)
    while place > 0:
        file = version.file_in(place)
        counters = store.counters.reads[place >> PLACE_BITS]
        counters.tables_asked += 1
        table = store.tables.find(file)
        outcome, found, value = table.get(
            key, key_hash, counters, fill_cache, shared, order, newest
        )
        if outcome != RULED_OUT:
            if outcome == FROM_FILE:
                blocks_read += 1
                if blocks_read == 2 and in_vain > 0 and version.charge_seek(in_vain):
                    flags = COMPACTION_DUE
            if found is not None:
                if len(found) < 8 or found[-8] > KIND_VALUE:
                    raise CorruptionError(f"not an internal key: {found!r}", table.path)
                if found[:-8] == user_key or store.order.compare(found[:-8], user_key) == 0:
                    if outcome == FROM_CACHE:
                        flags |= AT_HAND
                    return flags, found, value if found[-8] == KIND_VALUE else None
            if table.has_filter:
                counters.filter_false_positives += 1
            if outcome == FROM_FILE and in_vain == 0:
                in_vain = place
        place = version.next_candidate(place, key, order)
    return flags, None, None


def may_contain(store: Store, version: Version, user_key: bytes) -> bool:
    """False only if no table holds the key.  No data block is read."""
    key = pack(user_key, MAX_SEQUENCE, KIND_VALUE)
    key_hash = store.key_hash(user_key)
    for level, file in version.candidates(key):
        counters = store.counters.reads[level]
        counters.tables_asked += 1
        if store.tables.find(file).may_contain(key, key_hash, counters):
            return True
    return False
