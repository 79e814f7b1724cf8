"""One filter of a table: its bits as they are stored, and the keys that it was made of.

The keys come with their hashes, from which the page computes the bits that each of them set: of a
Bloom filter nothing else is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from lsmkv.env.base import RandomAccessFile
from lsmkv.errors import CorruptionError
from lsmkv.filter.bloom import leveldb_hash, rate_from_fill
from lsmkv.format.filenames import FileType
from lsmkv.tools.dump.blocks import is_bloom, load_block, spans_and_faults, split_key
from lsmkv.tools.dump.records import Fault, Filter, Handle
from lsmkv.tools.dump.tables import read_filters, read_footer, read_handles
from lsmkv.tools.inspect.plain import NotThereError, Plain
from lsmkv.tools.inspect.source import Source
from lsmkv.tools.text import count, escape

MOST_KEYS: Final = 300
"""Keys of a filter that an answer has."""
MOST_BITS: Final = 8 * 8192
"""Bits of a filter that an answer has: its first ones."""
LONGEST_KEY: Final = 1024
"""Bytes of a key that an answer has whole; of longer ones it has the beginning and the hash."""


def table_filter(source: Source, name: str, n: int = 0) -> Plain:
    """The ``n``-th filter of a table, from 0 on; those without keys are not counted.

    ``NotThereError`` if there is none, and ``CorruptionError`` for damage.  Cost: the table's
    filters, and of its data blocks those that have the keys.
    """
    with source.open_file(name, FileType.TABLE) as file:
        filters = [one for one in read_filters(file) if one.data and not one.extractor]
        if n >= len(filters):
            told = count(len(filters), "filter") if filters else "no filter"
            raise NotThereError(f"{name} has {told}; there is none of number {n:,}")
        chosen = filters[n]
        keys = list(itertools.islice(_user_keys(file, chosen), MOST_KEYS + 1))
        return {
            "name": name,
            "n": n,
            "filters": len(filters),
            "kind": "block" if chosen.first is not None else "table",
            "first": chosen.first,
            "last": chosen.last,
            "policy": escape(chosen.policy),
            "bytes": len(chosen.data),
            "keys": [_shown_key(source, key) for key in keys[:MOST_KEYS]],
            "more_keys": len(keys) > MOST_KEYS,
        } | _bits(chosen)


def _bits(chosen: Filter) -> Plain:
    """What a Bloom filter consists of; one of another policy has bytes alone."""
    data = chosen.data
    if not is_bloom(chosen.policy) or len(data) < 2:
        return {"bits": None, "probes": None, "hex": "", "rate": None}
    return {
        "bits": 8 * (len(data) - 1),
        "probes": data[-1],
        "hex": data[: min(len(data) - 1, MOST_BITS // 8)].hex(),
        "rate": rate_from_fill(data),
    }


def _shown_key(source: Source, key: bytes) -> Plain:
    whole = {"hex": key.hex()} if len(key) <= LONGEST_KEY else {}
    return source.shown_key(key) | {"hash": leveldb_hash(key)} | whole


def _user_keys(file: RandomAccessFile, chosen: Filter) -> Iterator[bytes]:
    """The different user keys in the data blocks that a filter is for, in their order."""
    last: bytes | None = None
    for record in read_handles(file, read_footer(file).index, "index"):
        if not isinstance(record, Handle) or not _covers(chosen, record.handle.offset):
            continue
        block = load_block(file, record.handle)
        if isinstance(block, Fault):
            raise CorruptionError(block.reason, file.path, block.offset)
        for span in spans_and_faults(block, "data"):
            if isinstance(span, Fault):
                raise CorruptionError(span.reason, file.path, span.offset)
            user_key = split_key(span.key).user_key
            if user_key != last:
                yield user_key
            last = user_key


def _covers(chosen: Filter, offset: int) -> bool:
    """Whether a filter is for the data block at this offset."""
    if chosen.first is None or chosen.last is None:
        return True
    return chosen.first <= offset <= chosen.last
