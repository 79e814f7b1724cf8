"""Sentences that explain the figures of the demo."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lsmkv.tools.demo.measure import Measurement
from lsmkv.tools.text import count, size

TITLES = {
    "off": "filters off",
    "block": "per 2 KiB",
    "table": "whole table",
    "both": "both",
    "block64": "2 KiB 64-bit",
    "table64": "whole 64-bit",
    "fuse": "whole, fuse",
}
"""The layouts' names for people."""

IN_WORDS = {
    "off": "without filters",
    "block": "with a filter per 2 KiB",
    "table": "with one per table",
    "both": "with both kinds",
    "block64": "with one of 64-bit hashes per 2 KiB",
    "table64": "with one of 64-bit hashes per table",
    "fuse": "with a fuse filter per table",
}
"""The same, as a part of a sentence."""

ABOUT = {
    "off": "no filters",
    "block": "LevelDB's, a Bloom filter for each 2 KiB of a table's file",
    "table": "the same Bloom filter, one for each table",
    "both": "a filter per 2 KiB and one for each table",
    "block64": "Bloom filters of a 64-bit hash, one for each 2 KiB",
    "table64": "a Bloom filter of a 64-bit hash for each table",
    "fuse": "a binary fuse filter for each table",
}
"""Descriptions of the layouts."""

_LEVELDB_ASKS = ("block", "both")
_BEYOND_CHANCE = 3.0
"""Standard errors; chance exceeds this many in fewer than 1 case of 100."""


def findings(measurements: Sequence[Measurement], keys: int, wrong: int, lookups: int) -> list[str]:
    """Summarize the demo in three sentences: for absent keys, for existing ones, and the price.

    There are fewer if there is no store with filters, or none without.  ``keys`` is the number of
    keys in each store.  ``wrong`` answers of ``lookups`` invalidate everything else.
    """
    if wrong:
        return [f"{wrong:,} of {count(lookups, 'answer')} were WRONG."]
    off = _without_filters(measurements)
    filtered = with_filters(measurements)
    if filtered is None:
        absent = f"{measurements[0].absent.blocks_per_get:.3f} data blocks"
        return [f"Without filters, a Get of an absent key read {absent}."]
    found = [_answered(filtered, off), _held(filtered, off)]
    price = _price_of(filtered, off, keys)
    return found if price is None else [*found, price]


def headline(measurements: Sequence[Measurement], keys: int, wrong: int, lookups: int) -> str:
    """The result in a sentence or two; the arguments are those of :func:`findings`."""
    off, filtered = _without_filters(measurements), with_filters(measurements)
    if wrong or off is None or filtered is None or not filtered.absent.blocks_per_get:
        return findings(measurements, keys, wrong, lookups)[0]
    without, read = off.absent.blocks_per_get, filtered.absent.blocks_per_get
    return (
        f"With a filter, a Get of an absent key reads {without / read:,.0f} times fewer blocks:"
        f" {read:.3f} instead of {without:.3f}, for {filtered.bits(keys):.1f} bits a key."
    )


def _answered(filtered: Measurement, off: Measurement | None) -> str:
    blocks = f"{filtered.absent.blocks_per_get:.3f} blocks a Get"
    blocks += "" if off is None else f" instead of {off.absent.blocks_per_get:.3f}"
    share = math.floor(1000 * (filtered.filters_answered or 0) / filtered.absent.gets) / 10
    answered = f"{share}% of the Gets of absent keys"
    return f"The filters answered {answered} without reading a block: {blocks}."


def _held(filtered: Measurement, off: Measurement | None) -> str:
    read = f"{filtered.present.blocks_per_get:.3f}"
    text = f"A Get of an existing key read {read} blocks"
    if off is not None:
        without = f"{off.present.blocks_per_get:.3f}"
        text += " with and without them" if without == read else f" instead of {without}"
    return f"{text}: one of them is the block that holds it."


def _price_of(filtered: Measurement, off: Measurement | None, keys: int) -> str | None:
    if off is None:
        return None
    added = filtered.disk_bytes - off.disk_bytes
    return (
        f"The filters cost {added * 8 / keys:.1f} bits a key: {size(added)} beside tables of"
        f" {size(off.disk_bytes)}."
    )


def reading(as_loaded: Sequence[Measurement]) -> list[str]:
    """Explain what the tables of figures do not show."""
    sentences = [_false_positives(one) for one in as_loaded if one.absent.filters_asked]
    filtered = [one for one in as_loaded if one.layout != "off"]
    if any(one.layout not in _LEVELDB_ASKS for one in filtered):
        asked = [IN_WORDS[one.layout] for one in filtered if one.layout in _LEVELDB_ASKS]
        which = f"only in the store {' and in that '.join(asked)}" if asked else "in none of them"
        sentences.append(f"LevelDB reads all these stores, and asks filters {which}.")
    costs = [f"{one.metadata_reads:,} of {size(one.metadata_bytes)}" for one in as_loaded]
    checks = count(as_loaded[0].identity_check_reads, "identity check read")
    sentences.append(
        "Not counted in these figures are the reads of footers, indexes and filters, once when a"
        f" table is opened: {', '.join(costs)}; and {checks} in each store: the first data block of"
        " each table."
    )
    return sentences


def _false_positives(one: Measurement) -> str:
    """Compare the rate of false positives with the one that the filters' bits predict."""
    absent = one.absent
    rate = absent.filter_positives / absent.filters_asked
    title = TITLES[one.layout]
    text = (
        f"{title[0].upper()}{title[1:]}: {absent.filter_positives:,} of"
        f" {count(absent.filters_asked, 'check')} of absent keys wrongly said maybe, {rate:.2%}."
    )
    predicted, textbook = one.predicted_rate, one.textbook_rate
    if predicted is None or textbook is None:
        return text
    text += f" Their bits predict {predicted:.2%}, the textbook {textbook:.2%};"
    error = math.sqrt(predicted * (1 - predicted) / absent.filters_asked)
    if abs(rate - predicted) <= _BEYOND_CHANCE * error:
        return f"{text} measured and predicted agree within chance."
    if rate < predicted:
        return f"{text} fewer than chance explains."
    return f"{text} more than chance explains (docs/filters.md says why)."


def with_filters(measurements: Sequence[Measurement]) -> Measurement | None:
    """The store that the findings are about: the first one with filters."""
    return next((one for one in measurements if one.layout != "off"), None)


def _without_filters(measurements: Sequence[Measurement]) -> Measurement | None:
    return next((one for one in measurements if one.layout == "off"), None)
