"""Savings of a filter where there is none: block reads, for some bytes.

The figures are those of LevelDB's Bloom filter with the default of 10 bits a key.
"""

from __future__ import annotations

from typing import Final

from lsmkv import BloomFilterPolicy
from lsmkv.engine.errors import CorruptionError, ForeignFormatError, UnsupportedCompressionError
from lsmkv.engine.filter.bloom import predicted_rate
from lsmkv.files import Table
from lsmkv.tools.inspect.plain import Plain
from lsmkv.tools.text import count, size

BITS: Final = 10
"""Bits a key: the default of ``bloom_filter_bits``."""
_SAMPLED = 8  # data blocks of a table whose entries are counted


def passing_rate() -> float:
    """The expected share of absent keys that pass such a filter.

    >>> round(passing_rate(), 4)
    0.0084
    """
    return predicted_rate(BITS, BloomFilterPolicy(BITS).probes)


def entries_in(table: Table) -> int:
    """About how many entries a table has, estimated from some of its data blocks and all their
    sizes.

    Damaged blocks count like the others.  Exact for a table of eight blocks or fewer.
    """
    try:
        places = [place for place in table.places() if place.kind == "data"]
    except (CorruptionError, ForeignFormatError):
        return 0
    entries = size_of_counted = 0
    for place in places[:: len(places) // _SAMPLED + 1]:
        try:
            entries += len(table.block(place).entries())
            size_of_counted += place.size
        except (CorruptionError, UnsupportedCompressionError):
            continue
    whole = sum(place.size for place in places)
    return round(entries * whole / size_of_counted) if size_of_counted else 0


_PASSING = f"{100 * passing_rate():.2g}% of absent keys still pass such a filter"


def saving_of_table(table: Table) -> Plain:
    """The size of a filter of this table, and the share of wasted reads that it would save."""
    entries = entries_in(table)
    return {
        "bits_per_key": BITS,
        "entries": entries,
        "table_bytes": table.size,
        "filter_bytes": entries * BITS // 8,
        "rate": passing_rate(),
    }


def words_for_table(name: str, saving: Plain) -> str:
    """Describe the savings of a filter for a table that has none."""
    share = f"{100 * (1 - saving['rate']):.1f} of 100 such reads"
    return (
        f"{name} has no filter: each Get of an absent key that reaches it is a wasted read of a"
        f" data block. At {BITS} bits a key, a filter would save {share}, for about"
        f" {size(saving['filter_bytes'])} ({count(saving['entries'], 'entry')})."
    )


def words_for_store(blocks: int, table_bytes: int, saving: Plain) -> str:
    """Describe the savings of filters for a store whose newest table (see ``saving``) has none.

    An absent key in the range of all tables needs ``blocks`` data blocks; the tables have
    ``table_bytes``.
    """
    filter_bytes = saving["filter_bytes"] * table_bytes / max(1, saving["table_bytes"])
    saved = round(blocks * (1 - saving["rate"]))
    return (
        "The newest table has no filter. If no other table has one, a Get of an absent key reads "
        f"up to {count(blocks, 'block')}: one of each table of level 0, and one of each deeper "
        f"level. At {BITS} bits a key, filters would save {saved:,} of "
        f"{'this' if blocks == 1 else 'these'} {count(blocks, 'block read')}, for about "
        f"{size(filter_bytes)}; {_PASSING}."
    )


def words_for_get(searched: int, wasted: int, tables: int, entries: int) -> str:
    """Describe the savings of filters for a Get that searched this many blocks.

    ``wasted`` of these blocks are in tables without a filter and do not have the key.  ``tables``
    without a filter were asked, with ``entries`` in total.
    """
    which = "The table that was asked has" if tables == 1 else f"{tables:,} tables asked have"
    if not wasted:
        return f"{which} no filter. None would help here: every block that was read has the key."
    saved = round(wasted * (1 - passing_rate()))
    return (
        f"{which} no filter. At {BITS} bits a key, filters would save {saved:,} of"
        f" {'this' if searched == 1 else 'these'} {count(searched, 'block read')}, for about"
        f" {size(entries * BITS // 8)} ({count(entries, 'entry')}); {_PASSING}."
    )
