"""Descriptions of a table's damage: the damaged part, the effect on reads, and the repair.

Every view that finds damage describes it in these words.
"""

from __future__ import annotations

import os
from typing import Final

from lsmkv.engine.errors import CorruptionError, ForeignFormatError
from lsmkv.files import FOOTER_SIZE, Table, parse_name
from lsmkv.tools.inspect.plain import NotThereError, grouped
from lsmkv.tools.inspect.source import Source
from lsmkv.tools.text import printable

NAMES: Final = {
    "filter": "filter block",
    "full filter": "whole-table filter",
    "prefix filter": "filter of prefixes",
    "metaindex": "metaindex block, which names its filters",
    "index": "index block",
    "footer": "footer",
    "data": "data block",
    "meta": "meta block",
}
"""The parts of a table, by their kinds."""

_EVERY_READ: Final = (
    "A Get that reaches this table, and a scan over it, raise CorruptionError when they open it."
)
_WITHOUT_FILTERS: Final = (
    "Its entries are not damaged: 'lsmkv repair' writes the table again, with new filters."
    " Until then lsmkv.DB(DIR, bloom_filter_bits=0) reads it without filters."
)
_FOUND_AGAIN: Final = (
    "'lsmkv repair' finds the data blocks without it, and writes the entries of all sound blocks "
    "into a new table."
)
_EFFECTS: Final = {
    "filter": f"{_EVERY_READ} {_WITHOUT_FILTERS}",
    "full filter": f"{_EVERY_READ} {_WITHOUT_FILTERS}",
    "metaindex": f"{_EVERY_READ} {_WITHOUT_FILTERS}",
    "prefix filter": (
        "A store that is opened with this prefix extractor raises CorruptionError when it needs "
        "the table; without the extractor, the table is read as before. 'lsmkv repair' writes it "
        "again."
    ),
    "index": f"{_EVERY_READ} {_FOUND_AGAIN}",
    "footer": f"{_EVERY_READ} {_FOUND_AGAIN}",
    "data": (
        "A Get that has to search this block, and a scan over it, raise CorruptionError; keys in "
        "other blocks are read as before. 'lsmkv repair' keeps the other blocks; the entries of "
        "this one are lost."
    ),
    "meta": "No read needs it.",
}


def effect(kind: str) -> str:
    """Return the effect of such damage on reads, and a way to repair it; empty if unknown."""
    return _EFFECTS.get(kind, "")


def surveyed_effect(reason: str, offset: int, size: int) -> str:
    """:func:`effect` for a problem that a survey found in a table of ``size`` bytes."""
    part, parted, _ = reason.partition(":")
    if parted and part in _EFFECTS:
        return effect(part)
    return effect("footer" if offset >= size - FOOTER_SIZE else "data")


def describe(source: Source, error: CorruptionError) -> str:
    """Describe an error of the store.  For a table: its part, the consequences and the repair.

    Costs the table's footer, index and metaindex; nothing for damage elsewhere.
    """
    reason = grouped(printable(error.reason))
    name = "" if error.path is None else os.path.basename(error.path)
    parsed = parse_name(name)
    if parsed is None or parsed.kind != "table" or error.offset is None:
        where = "" if error.path is None else f"{printable(error.path)}: "
        at = "" if error.offset is None else f" (at offset {error.offset:,})"
        return f"{where}{reason}{at}"
    kind = _kind_at(source, name, error.offset)
    part = NAMES.get(kind, "content")
    # If the index or the metaindex is read for its handles, the reason names it again.
    reason = reason.removesuffix(f"; it is the {kind}")
    message = f"{name} is damaged: its {part}, at {error.offset:,} ({reason})."
    return f"{message} {effect(kind)}".rstrip()


def _kind_at(source: Source, name: str, offset: int) -> str:
    """The kind of a table's part at this offset; empty if unknown."""
    try:
        with source.open_table(name) as table:
            return _kind_in(table, offset)
    except (NotThereError, OSError):
        return ""


def _kind_in(table: Table, offset: int) -> str:
    try:
        places = table.places()
    except (CorruptionError, ForeignFormatError):
        return "footer"
    if offset >= table.size - FOOTER_SIZE:
        return "footer"
    for place in places:
        if place.offset <= offset <= place.offset + place.size:
            return place.kind
    return ""
