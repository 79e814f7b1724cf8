"""One filter of a table: its bits or slots as stored, and the keys that it was made from.

A filter is identified as in ``lsmkv dump``: by the offset of its filter block, and its number in
that block.  For LevelDB's Bloom filters the keys come with their hashes, from which the page
computes the bits of each key.  For lsmkv's own kinds the bits or slots come with the keys, and
:func:`probe` answers for any other key.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable, Iterator
from typing import Final

from lsmkv.engine.errors import CorruptionError, ForeignFormatError
from lsmkv.files import BITS_OF_FUSE, BlockPlace, Damage, Filter, Table
from lsmkv.tools.dump.records import fault_of
from lsmkv.tools.inspect.damage import describe
from lsmkv.tools.inspect.plain import NotThereError, Plain
from lsmkv.tools.inspect.saving import saving_of_table, words_for_table
from lsmkv.tools.inspect.source import Source
from lsmkv.tools.text import count, escape

MOST_KEYS: Final = 300
"""The most keys of a filter in an answer."""
MOST_COUNTED: Final = 200_000
"""The most keys of a filter that are counted; beyond that a Bloom filter's fill gives their number.
"""
MOST_BITS: Final = 8 * 8192
"""The most bits of a filter in an answer: its first ones."""
LONGEST_KEY: Final = 1024
"""The longest key in bytes that an answer has whole; of longer keys it has the beginning and the
hash."""
NEAR: Final = 64
"""Bytes around a slot that a probe shows: a piece of the filter that begins at a multiple of this.
"""


def table_filter(source: Source, name: str, n: int = 0, block: int | None = None) -> Plain:
    """A filter of a table, by its number in its block; those without keys are not counted.

    ``block`` is the offset of the filter block; the default is the first one with a filter of that
    number.  For a table without filters, the answer says what one would save.  Raises
    ``NotThereError`` if there is no such filter, and ``CorruptionError`` if its block is damaged.
    ``key_count`` is the number of its keys.  If not all are ``counted``, it is estimated from a
    Bloom filter's fill, or is the number of those counted.  Cost: the table's filters, and the data
    blocks with its keys, up to ``MOST_COUNTED`` keys.
    """
    with source.open_table(name) as table:
        filters, faults = _read(table)
        if not filters and not faults:
            saving = saving_of_table(table)
            return {"name": name, "filters": 0} | saving | {"words": words_for_table(name, saving)}
        at = _place(name, filters, faults, table, n, block)
        chosen = filters[at]
        damage = [describe(source, _error(table, fault)) for fault in faults]
        form = _form(chosen)
        return (
            {
                "name": name,
                "n": chosen.number,
                "block": chosen.block,
                "filters": len(filters),
                "place": at + 1,
                "before": _name_of(filters, at - 1),
                "next": _name_of(filters, at + 1),
                "damage": damage,
                "kind": chosen.kind,
                "extractor": escape(chosen.extractor),
                "first": chosen.first,
                "last": chosen.last,
                "policy": escape(chosen.policy),
                "leveldb": chosen.is_leveldbs,
                "bytes": len(chosen.data),
            }
            | _keys(source, table, chosen)
            | form
        )


def probe(source: Source, name: str, key: bytes, n: int = 0, block: int | None = None) -> Plain:
    """A filter's answer for a key, and the bits or slots that it reads.

    Raises ``NotThereError`` if there is no such filter, or if it has a custom policy: only that
    policy's code can ask it.  Cost: the table's filters.
    """
    with source.open_table(name) as table:
        filters, faults = _read(table)
        chosen = filters[_place(name, filters, faults, table, n, block)]
    read = probed(chosen, key)
    if read is None:
        raise NotThereError(f"only the code of {escape(chosen.policy)!r} can ask this filter")
    return read | {"key": source.shown_key(key), "near": near(chosen, read.get("slots", ()))}


def filter_summary(source: Source, name: str) -> Plain:
    """The names of a table's filters, and descriptions of any damage in them.

    A table that no longer exists has none.  Cost: the table's filters.
    """
    try:
        with source.open_table(name) as table:
            names = [place.name for place in table.meta_blocks() if place.kind != "meta"]
            damage = [describe(source, _error(table, fault)) for fault in _read(table)[1]]
            saving = None if names or damage else saving_of_table(table)
    except CorruptionError as error:
        return {"filters": [], "filter_damage": describe(source, error)}
    except (ForeignFormatError, NotThereError):
        return {"filters": [], "filter_damage": ""}
    summary: Plain = {"filters": [escape(key) for key in names], "filter_damage": " ".join(damage)}
    return summary if saving is None else summary | {"saving": saving}


def facts_of(one: Filter) -> Plain:
    """The kind of a filter, its sizes and its rate, without its bits: for a list of filters."""
    facts = _form(one) | {"n": one.number, "block": one.block, "kind": one.kind}
    del facts["hex"]
    return facts | {"first": one.first, "last": one.last, "bytes": len(one.data)}


def filters_in(table: Table, block: int) -> list[Filter]:
    """The filters of the filter block at an offset, those without keys left out."""
    return [one for one in _read(table)[0] if one.block == block]


def _read(table: Table) -> tuple[list[Filter], list[Damage]]:
    """The filters that have keys, and the damage."""
    parts = list(table.filters())
    filters = [part for part in parts if isinstance(part, Filter) and part.data]
    return filters, [part for part in parts if isinstance(part, Damage)]


def _place(
    name: str,
    filters: list[Filter],
    faults: list[Damage],
    table: Table,
    n: int,
    block: int | None,
) -> int:
    """Return the index of the filter with this number."""
    for at, one in enumerate(filters):
        if one.number == n and block in (None, one.block):
            return at
    for fault in faults:
        if block is None or not any(one.block == block for one in filters):
            raise _error(table, fault)
    if not filters:
        raise NotThereError(f"{name} has no filter")
    numbers = ", ".join(f"{one.number:,}" for one in filters[:8])
    more = ", ..." if len(filters) > 8 else ""
    message = f"{name} has {count(len(filters), 'filter')}, of number {numbers}{more}"
    raise NotThereError(f"{message}; there is none of number {n:,}, or it has no keys")


def _error(table: Table, damage: Damage) -> CorruptionError:
    return CorruptionError(fault_of(damage).reason, table.path, damage.offset)


def _name_of(filters: list[Filter], at: int) -> Plain | None:
    return {"n": filters[at].number, "block": filters[at].block} if 0 <= at < len(filters) else None


def _form(chosen: Filter) -> Plain:
    """Describe a filter's structure: bits and probes, or slots; nothing for a custom policy."""
    data = chosen.data
    form: Plain = dict.fromkeys(("bits", "probes", "ones", "fuse", "rate"))
    form["hex"] = ""
    fuse = chosen.fuse
    if fuse is not None:
        return form | {
            "fuse": {
                "slots": fuse.slots,
                "arity": fuse.arity,
                "segments": fuse.segments + fuse.arity - 1,
                "segment_slots": fuse.segment_slots,
                "seed": fuse.seed,
                "fingerprint_bits": BITS_OF_FUSE,
            },
            "hex": data[: min(fuse.slots, MOST_BITS // 8)].hex(),
            "rate": chosen.expected_rate,
        }
    if chosen.is_bloom or (chosen.is_leveldbs and len(data) >= 2):
        return form | {
            "bits": 8 * (len(data) - 1),
            "probes": data[-1],
            "ones": int.from_bytes(data[:-1], "little").bit_count(),
            "hex": data[: min(len(data) - 1, MOST_BITS // 8)].hex(),
            "rate": chosen.expected_rate,
        }
    return form


def near(chosen: Filter, slots: Iterable[int]) -> list[Plain]:
    """The pieces of a filter's bytes that have these slots: each is :data:`NEAR` long."""
    places = sorted({slot // NEAR * NEAR for slot in slots})
    return [{"first": at, "hex": chosen.data[at : at + NEAR].hex()} for at in places]


def probed(chosen: Filter, key: bytes) -> Plain | None:
    """The bits or slots that a lookup of a key reads, and the answer; None for another policy."""
    probe = chosen.probe(key)
    if probe is None:
        return None
    if probe.fingerprint is None:
        return {"positions": list(probe.positions), "may_match": probe.may_match}
    return {
        "slots": list(probe.slots),
        "values": list(probe.values),
        "xored": functools.reduce(operator.xor, probe.values, 0),
        "fingerprint": probe.fingerprint,
        "may_match": probe.may_match,
    }


def _keys(source: Source, table: Table, chosen: Filter) -> Plain:
    """The first keys of a filter, as far as the data blocks can be read, and how many there are."""
    keys: list[Plain] = []
    counted = 0
    problem = ""
    members = _members(table, chosen)
    try:
        for key in itertools.islice(members or (), MOST_COUNTED):
            counted += 1
            if counted <= MOST_KEYS:
                keys.append(_shown_key(source, chosen, key))
        whole = members is not None and next(members, None) is None
    except CorruptionError as error:
        problem = f"Keys are missing here. {describe(source, error)}"
        whole = False
    return {
        "keys": keys,
        "more_keys": counted > len(keys),
        "keys_problem": problem,
        "key_count": counted if whole else max(counted, chosen.estimated_keys or 0),
        "counted": whole,
    }


def _shown_key(source: Source, chosen: Filter, key: bytes) -> Plain:
    whole = {"hex": key.hex()} if len(key) <= LONGEST_KEY else {}
    shown = source.shown_key(key) | whole
    if chosen.is_leveldbs:
        return shown | {"hash": chosen.hash(key)}
    return shown | (probed(chosen, key) or {})


def _members(table: Table, chosen: Filter) -> Iterator[bytes] | None:
    """Return the keys from which a filter was made: user keys, or their prefixes.

    None for a custom extractor: only its program can find the prefixes.
    """
    return _different(table, chosen) if chosen.knows_members else None


def _different(table: Table, chosen: Filter) -> Iterator[bytes]:
    """The different members of a filter in the data blocks that it is for, in their order."""
    last: bytes | None = None
    for entry in table.index.walk():
        if isinstance(entry, Damage):
            raise _error(table, entry)
        handle = entry.handle
        if handle is None or not chosen.covers(handle.offset):
            continue
        for one in table.block(BlockPlace(handle.offset, handle.size, "data")).walk():
            if isinstance(one, Damage):
                raise _error(table, one)
            member = chosen.member(one.internal_key.user_key)
            if member is not None and member != last:
                yield member
                last = member
