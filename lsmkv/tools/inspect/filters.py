"""One filter of a table: its bits or slots as they are stored, and the keys that it was made of.

A filter is named as ``lsmkv dump`` names it: by the offset of its filter block, and its number in
that block.  Of a Bloom filter of LevelDB's the keys come with their hashes, from which the page
computes the bits that each of them sets; of lsmkv's own kinds the bits or slots come with the keys,
and :func:`probe` answers for any other key.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator
from typing import Final

from lsmkv.env.base import RandomAccessFile
from lsmkv.errors import CorruptionError, ForeignFormatError
from lsmkv.filter.bloom import BloomFilterPolicy, leveldb_hash
from lsmkv.filter.bloom64 import bloom64_positions
from lsmkv.filter.fuse import FINGERPRINT_BITS, filter64_may_match, look_at_fuse
from lsmkv.filter.hash64 import xxh3_hash
from lsmkv.filter.known import rate_of
from lsmkv.filter.prefix import PrefixExtractor, own_extractor
from lsmkv.filter.rates import keys_from_fill, keys_from_fill64
from lsmkv.format.filenames import FileType
from lsmkv.tools.dump.blocks import (
    fuse_in,
    has_bits,
    is_bloom,
    load_block,
    ones,
    spans_and_faults,
    split_key,
)
from lsmkv.tools.dump.records import Fault, Filter, Handle
from lsmkv.tools.dump.tables import filters_and_faults, meta_kind, read_footer, read_handles
from lsmkv.tools.inspect.damage import describe
from lsmkv.tools.inspect.plain import NotThereError, Plain
from lsmkv.tools.inspect.saving import saving_of_table, words_for_table
from lsmkv.tools.inspect.source import Source
from lsmkv.tools.text import count, escape

MOST_KEYS: Final = 300
"""Keys of a filter that an answer has."""
MOST_COUNTED: Final = 200_000
"""Keys of a filter that are counted; the number of more keys follows from a Bloom filter's fill."""
MOST_BITS: Final = 8 * 8192
"""Bits of a filter that an answer has: its first ones."""
LONGEST_KEY: Final = 1024
"""Bytes of a key that an answer has whole; of longer ones it has the beginning and the hash."""
NEAR: Final = 64
"""Bytes around a slot that a probe shows: a piece of the filter that begins at a multiple of it."""


def table_filter(source: Source, name: str, n: int = 0, block: int | None = None) -> Plain:
    """A filter of a table, by its number in its block; those without keys are not counted.

    ``block`` is the offset of the filter block; without it, it is the first one that has a filter
    of that number.  A table without filters is said to have none, with what one would save.
    ``NotThereError`` if there is no filter of that number, and ``CorruptionError`` if the block
    that should hold it is damaged.  ``key_count`` is the number of its keys; if not all are
    ``counted``, about that by a Bloom filter's fill, or the number of those that were counted.
    Cost: the table's filters, and of its data blocks those that have the keys, up to
    ``MOST_COUNTED``.
    """
    with source.open_file(name, FileType.TABLE) as file:
        filters, faults = _read(file)
        if not filters and not faults:
            saving = saving_of_table(file)
            return {"name": name, "filters": 0} | saving | {"words": words_for_table(name, saving)}
        at = _place(name, filters, faults, file, n, block)
        chosen = filters[at]
        damage = [describe(source, _error(file, fault)) for fault in faults]
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
                "kind": _kind(chosen),
                "extractor": escape(chosen.extractor),
                "first": chosen.first,
                "last": chosen.last,
                "policy": escape(chosen.policy),
                "leveldb": is_bloom(chosen.policy),
                "bytes": len(chosen.data),
            }
            | _keys(source, file, chosen, form)
            | form
        )


def probe(source: Source, name: str, key: bytes, n: int = 0, block: int | None = None) -> Plain:
    """What a filter of bits or slots answers for a key, and what it reads for that.

    ``NotThereError`` if there is no such filter, or if it is of a custom policy: only that
    policy's code can ask it.  Cost: the table's filters.
    """
    with source.open_file(name, FileType.TABLE) as file:
        filters, faults = _read(file)
        chosen = filters[_place(name, filters, faults, file, n, block)]
    read = _probed(chosen, key)
    if read is None:
        raise NotThereError(f"only the code of {escape(chosen.policy)!r} can ask this filter")
    near = sorted({slot // NEAR * NEAR for slot in read.get("slots", ())})
    data = chosen.data
    return read | {
        "key": source.shown_key(key),
        "near": [{"first": at, "hex": data[at : at + NEAR].hex()} for at in near],
    }


def filter_summary(source: Source, name: str) -> Plain:
    """The names of a table's filters, and the damage that was found in them, in words.

    A table that is gone has none.  Cost: the table's filters.
    """
    try:
        with source.open_file(name, FileType.TABLE) as file:
            records = read_handles(file, read_footer(file).metaindex, "metaindex")
            keys = [record.key for record in records if isinstance(record, Handle)]
            names = [key for key in keys if isinstance(key, bytes) and meta_kind(key)[0] != "meta"]
            faults = [part for part in filters_and_faults(file) if isinstance(part, Fault)]
            damage = [describe(source, _error(file, fault)) for fault in faults]
            saving = None if names or damage else saving_of_table(file)
    except CorruptionError as error:
        return {"filters": [], "filter_damage": describe(source, error)}
    except (ForeignFormatError, NotThereError):
        return {"filters": [], "filter_damage": ""}
    summary: Plain = {"filters": [escape(key) for key in names], "filter_damage": " ".join(damage)}
    return summary if saving is None else summary | {"saving": saving}


def facts_of(one: Filter) -> Plain:
    """The kind of a filter, its sizes and its rate, without its bits: for a list of filters."""
    facts = _form(one) | {"n": one.number, "block": one.block, "kind": _kind(one)}
    del facts["hex"]
    return facts | {"first": one.first, "last": one.last, "bytes": len(one.data)}


def filters_in(file: RandomAccessFile, block: int) -> list[Filter]:
    """The filters of the filter block at an offset, those without keys left out."""
    return [one for one in _read(file)[0] if one.block == block]


def _read(file: RandomAccessFile) -> tuple[list[Filter], list[Fault]]:
    """The filters that have keys, and the damage."""
    parts = list(filters_and_faults(file))
    filters = [part for part in parts if isinstance(part, Filter) and part.data]
    return filters, [part for part in parts if isinstance(part, Fault)]


def _place(
    name: str,
    filters: list[Filter],
    faults: list[Fault],
    file: RandomAccessFile,
    n: int,
    block: int | None,
) -> int:
    """Where the filter of a number is among them."""
    for at, one in enumerate(filters):
        if one.number == n and block in (None, one.block):
            return at
    for fault in faults:
        if block is None or not any(one.block == block for one in filters):
            raise _error(file, fault)
    if not filters:
        raise NotThereError(f"{name} has no filter")
    numbers = ", ".join(f"{one.number:,}" for one in filters[:8])
    more = ", ..." if len(filters) > 8 else ""
    message = f"{name} has {count(len(filters), 'filter')}, of number {numbers}{more}"
    raise NotThereError(f"{message}; there is none of number {n:,}, or it has no keys")


def _error(file: RandomAccessFile, fault: Fault) -> CorruptionError:
    return CorruptionError(fault.reason, file.path, fault.offset)


def _name_of(filters: list[Filter], at: int) -> Plain | None:
    return {"n": filters[at].number, "block": filters[at].block} if 0 <= at < len(filters) else None


def _kind(one: Filter) -> str:
    return "prefix" if one.extractor else "block" if one.first is not None else "table"


def _form(chosen: Filter) -> Plain:
    """What a filter consists of: bits and probes, or slots; one of another policy has neither."""
    data = chosen.data
    rate = rate_of(chosen.policy.decode("utf-8", "replace"), data)
    form: Plain = dict.fromkeys(("bits", "probes", "ones", "fuse", "rate"))
    form["hex"] = ""
    fuse = fuse_in(chosen.policy, data)
    if fuse is not None:
        return form | {
            "fuse": {
                "slots": fuse.slots,
                "arity": fuse.arity,
                "segments": fuse.segments + fuse.arity - 1,
                "segment_slots": 1 << fuse.segment_bits,
                "seed": data[-2],
                "fingerprint_bits": FINGERPRINT_BITS,
            },
            "hex": data[: min(fuse.slots, MOST_BITS // 8)].hex(),
            "rate": rate,
        }
    if has_bits(chosen.policy, data) or (is_bloom(chosen.policy) and len(data) >= 2):
        return form | {
            "bits": 8 * (len(data) - 1),
            "probes": data[-1],
            "ones": ones(data),
            "hex": data[: min(len(data) - 1, MOST_BITS // 8)].hex(),
            "rate": rate,
        }
    return form


def _probed(chosen: Filter, key: bytes) -> Plain | None:
    """The bits or slots that a lookup of a key reads, and the answer; None for another policy."""
    data = chosen.data
    if is_bloom(chosen.policy):
        policy = BloomFilterPolicy()
        hashed = policy.key_hash(key)
        positions = policy.probed_positions(hashed, data)
        return {"positions": positions, "may_match": policy.hash_may_match(hashed, data)}
    hashed = xxh3_hash(key)
    if fuse_in(chosen.policy, data) is not None:
        look = look_at_fuse(hashed, data)
        assert look is not None  # it is a fuse filter
        xored = functools.reduce(operator.xor, look.values, 0)
        return {
            "slots": list(look.slots),
            "values": list(look.values),
            "xored": xored,
            "fingerprint": look.fingerprint,
            "may_match": xored == look.fingerprint,
        }
    if has_bits(chosen.policy, data):
        positions = bloom64_positions(hashed, data)
        return {
            "positions": positions,
            "may_match": filter64_may_match(hashed, data, 0, len(data)),
        }
    return None


def _keys_by_fill(chosen: Filter, form: Plain) -> int:
    """How many keys would fill a filter of bits as far; 0 if that is unknown."""
    if not form["bits"] or not form["probes"] or form["ones"] == form["bits"]:
        return 0
    fill = form["ones"] / form["bits"]
    of_keys = keys_from_fill if is_bloom(chosen.policy) else keys_from_fill64
    return round(of_keys(fill, form["bits"], form["probes"]))


def _keys(source: Source, file: RandomAccessFile, chosen: Filter, form: Plain) -> Plain:
    """The first keys of a filter, as far as the data blocks can be read, and how many there are."""
    keys: list[Plain] = []
    counted = 0
    problem = ""
    members = _members(file, chosen)
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
        "key_count": counted if whole else max(counted, _keys_by_fill(chosen, form)),
        "counted": whole,
    }


def _shown_key(source: Source, chosen: Filter, key: bytes) -> Plain:
    whole = {"hex": key.hex()} if len(key) <= LONGEST_KEY else {}
    shown = source.shown_key(key) | whole
    if is_bloom(chosen.policy):
        return shown | {"hash": leveldb_hash(key)}
    return shown | (_probed(chosen, key) or {})


def _members(file: RandomAccessFile, chosen: Filter) -> Iterator[bytes] | None:
    """What a filter was made of: user keys, or their prefixes.

    None for a custom extractor's: only its program knows what a prefix is.
    """
    keys = _user_keys(file, chosen)
    if not chosen.extractor:
        return keys
    extractor = own_extractor(chosen.extractor.decode("utf-8", "replace"))
    return None if extractor is None else _prefixes(keys, extractor)


def _prefixes(keys: Iterator[bytes], extractor: PrefixExtractor) -> Iterator[bytes]:
    """The different prefixes of sorted keys."""
    last: bytes | None = None
    for key in keys:
        prefix = extractor.extract(key)
        if prefix is not None and prefix != last:
            yield prefix
            last = prefix


def _user_keys(file: RandomAccessFile, chosen: Filter) -> Iterator[bytes]:
    """The different user keys in the data blocks that a filter is for, in their order."""
    last: bytes | None = None
    for record in read_handles(file, read_footer(file).index, "index"):
        if isinstance(record, Fault):
            raise _error(file, record)
        if not isinstance(record, Handle) or not _covers(chosen, record.handle.offset):
            continue
        block = load_block(file, record.handle)
        if isinstance(block, Fault):
            raise _error(file, block)
        for span in spans_and_faults(block, "data"):
            if isinstance(span, Fault):
                raise _error(file, span)
            user_key = split_key(span.key).user_key
            if user_key != last:
                yield user_key
            last = user_key


def _covers(chosen: Filter, offset: int) -> bool:
    """Whether a filter is for the data block at this offset."""
    if chosen.first is None or chosen.last is None:
        return True
    return chosen.first <= offset <= chosen.last
