"""The words in which a process of a shared store counts for its owner: :data:`LAYOUT`.

A member writes them (``shared/counting.py``), and its owner reads them.  Both may be of different
releases, which count different things: a member names what its words are, and what an owner looks
for and a member lacks is 0.
"""

from __future__ import annotations

from typing import Final

from lsmkv.engine.counters import LOOKUP_COUNTERS, NUM_LEVELS, READ_COUNTERS
from lsmkv.engine.db.observe.histogram import BUCKETS

LAYOUT: Final[list[tuple[str, int]]] = [
    *((name, 1) for name in LOOKUP_COUNTERS),
    *((name, NUM_LEVELS) for name in READ_COUNTERS),
    ("writes", 1 + BUCKETS),
    ("without_owner", 1 + BUCKETS),
]
"""Each counter and its number of words, in the order of the words.  A counter of levels has a word
for each of them; a histogram has its total, and then its buckets.  What :func:`reads_of` returns
comes first."""


def places(layout: list[tuple[str, int]]) -> dict[str, tuple[int, int]]:
    """Return the first word of each name, and the word after its last.

    >>> places([("gets", 1), ("blocks_read", 7)])
    {'gets': (0, 1), 'blocks_read': (1, 8)}
    """
    found: dict[str, tuple[int, int]] = {}
    at = 0
    for name, size in layout:
        found[name] = at, at + size
        at += size
    return found


PLACES: Final = places(LAYOUT)
WORDS: Final[int] = sum([size for _, size in LAYOUT])
WRITES: Final[int] = PLACES["writes"][0]
WITHOUT_OWNER: Final[int] = PLACES["without_owner"][0]
"""First words of the two histograms."""
