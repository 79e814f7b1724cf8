"""A lookup in the tables, and what it teaches: which file was read in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from librt.strings import read_i64_le

from lsmkv.db.store import Store
from lsmkv.db.version import PLACE_BITS, Version
from lsmkv.errors import CorruptionError
from lsmkv.format.keys import KIND_VALUE, MAX_SEQUENCE, TAG_SIZE, pack
from lsmkv.stats import ReadCounters
from lsmkv.table.reader import FROM_CACHE, FROM_FILE, RULED_OUT, SharedBlocks, Table

if TYPE_CHECKING:
    from mypy_extensions import i64

FROM_BLOCK_CACHE: Final = 1
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
) -> tuple[i64, i64, bytes | None]:
    """Look for the newest version of a key at or before ``sequence`` in a version's tables.

    Returns flags of how it went, the tag of the version that answered (0 if there is none), and its
    value (None for a deletion).  Files are asked newest first, each one's filter before any block
    of it is read.  ``shared``: blocks at hand, for looking up many keys in order.

    LevelDB charges a seek to every first file, even where its filter said no; enough lookups of
    absent keys then rewrite a database that nobody wrote to.  Here a file is charged only when a
    block of it was really read, in vain, and a block of a second file had to be read too.
    """
    key: bytes | None = None  # where the user key says it all
    order: Any = user_key
    if sequence != MAX_SEQUENCE or not store.order.is_bytewise:
        key = pack(user_key, sequence, KIND_VALUE)
        order = store.order.of(user_key)
    key_hash = store.key_hash(user_key)
    flags: i64 = 0
    in_vain: i64 = 0
    blocks_read: i64 = 0
    place = version.next_candidate(0, key, order)
    while place > 0:
        counters = store.counters.reads[place >> PLACE_BITS]
        counters.tables_asked += 1
        table = store.tables.find(version.file_in(place))
        if key is None:
            outcome, tag, value = table.newest(user_key, key_hash, counters, fill_cache)
        else:
            outcome, tag, value = _at_or_before(
                store, table, key, order, key_hash, counters, fill_cache, shared
            )
        if outcome != RULED_OUT:
            if outcome == FROM_FILE:
                blocks_read += 1
                if blocks_read == 2 and in_vain > 0 and version.charge_seek(in_vain):
                    flags = COMPACTION_DUE
            if value is not None:
                kind = tag & 0xFF
                if kind > KIND_VALUE:
                    raise _not_internal(pack(user_key, (tag >> 8) & MAX_SEQUENCE, kind), table)
                if outcome == FROM_CACHE:
                    flags |= FROM_BLOCK_CACHE
                return flags, tag, value if kind == KIND_VALUE else None
            if table.has_filter:
                counters.filter_false_positives += 1
            if outcome == FROM_FILE and in_vain == 0:
                in_vain = place
        place = version.next_candidate(place, key, order)
    return flags, 0, None


def _at_or_before(
    store: Store,
    table: Table,
    key: bytes,
    order: Any,
    key_hash: i64,
    counters: ReadCounters,
    fill_cache: bool,
    shared: SharedBlocks | None,
) -> tuple[i64, i64, bytes | None]:
    """As :meth:`Table.newest`, for the newest version at or before an internal key."""
    outcome, found, value = table.get(key, key_hash, counters, fill_cache, shared, order)
    if found is None:
        return outcome, 0, None
    if len(found) < TAG_SIZE or found[-TAG_SIZE] > KIND_VALUE:
        raise _not_internal(found, table)
    if store.order.compare(found[:-TAG_SIZE], key[:-TAG_SIZE]) != 0:
        return outcome, 0, None
    return outcome, read_i64_le(found, len(found) - TAG_SIZE), value


def _not_internal(key: bytes, table: Table) -> CorruptionError:
    return CorruptionError(f"not an internal key: {key!r}", table.path)


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
