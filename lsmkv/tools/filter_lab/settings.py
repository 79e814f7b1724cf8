"""Filter settings: kind of filter, and bits a key for each level; as text ``block:10`` or ``none``.

The first part of a text names the layout and the policy, ``block`` and ``table`` those of LevelDB's
hash, ``block64`` and ``table64`` those of a 64-bit one; the second part is the bits a key, as
``bloom_filter_bits`` takes them: a number, a number for each level, or an average to be spread over
the levels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.engine.filter.levels import FEWEST_BITS, MOST_BITS, LevelBits
from lsmkv.engine.filter.policy import FilterPolicy

Layout = Literal["none", "block", "table"]
"""No filter, one for each 2 KiB of a table, or one for each table."""
PolicyMaker = Callable[[float], FilterPolicy]
"""Makes a policy with a number of bits per key."""

DEFAULT_SETTINGS = "none block:5 block:10 block:15 block:20 block:auto:10 table:10 table64:10 fuse"
"""The settings that the lab compares by default."""
SETTINGS_WITH_OWN = "none block:5 own:5 block:10 own:10 block:15 own:15"
"""The default with a custom policy, which is compared with LevelDB's."""

ALLOWED = (
    "none, block:10, table:15, block64:10, table64:10 or fuse; bits a key may be fractions, by"
    " level (block:10,10,8.5), or spread over the levels (block:auto:10)"
)
"""The allowed texts, for messages."""

_TEXT = re.compile(r"(\w+):(auto:)?([0-9]+(?:\.[0-9]+)?(?:,[0-9]+(?:\.[0-9]+)?)*)")
_MOST_BITS = 256


class FilterKind(NamedTuple):
    """A kind of filter, by the layout and the policy of its filters."""

    layout: Layout
    make_policy: PolicyMaker | None
    """Makes the policy for the bits per key; None for no filter, and where a setting has it."""
    takes_bits: bool
    """True if a setting includes a number of bits per key."""
    words: str
    """A description of the filters, for use after the bits per key and in a sentence."""


OWN: Final = "own"
"""The kind with a custom policy, which a setting holds besides its text."""

KINDS: Final = {
    "none": FilterKind("none", None, False, "no filter"),
    "block": FilterKind("block", BloomFilterPolicy, True, ""),
    "table": FilterKind("table", BloomFilterPolicy, True, "in a filter for each table"),
    "block64": FilterKind("block", Bloom64Policy, True, "in filters of 64-bit hashes"),
    "table64": FilterKind(
        "table", Bloom64Policy, True, "in a filter of 64-bit hashes for each table"
    ),
    "fuse": FilterKind("table", BinaryFusePolicy, False, "a fuse filter for each table"),
    OWN: FilterKind("block", None, True, "in filters of your own policy"),
}
"""The kinds of filter, by the words that begin a setting's text."""


@dataclass(frozen=True)
class FilterSetting:
    """A way to build the filters of a store.

    :func:`parse_setting` makes it of a text, and ``str`` returns the text.  Raises ``ValueError``
    for an unknown kind, for bits with a kind that takes none, and for several numbers to be spread.
    Costs nothing.

    >>> setting = parse_setting("block:10,10,8.5")
    >>> str(setting), setting.kind, setting.bits, setting.spread
    ('block:10,10,8.5', 'block', (10.0, 10.0, 8.5), False)
    >>> setting.layout, setting.leveldb_asks, setting.in_words()
    ('block', True, '10, 10 and 8.5 bits a key by level')
    >>> setting.policy(1), setting.policy(6)
    (BloomFilterPolicy(10), BloomFilterPolicy(8.5))
    """

    kind: str
    """``none``, ``block``, ``table``, ``block64``, ``table64``, ``fuse`` or ``own``."""
    bits: tuple[float, ...] = ()
    """Bits a key for levels 0, 1, ..., the last for all below, and 0 for no filter; none for a
    kind that takes none."""
    spread: bool = False
    """True if ``bits`` is a single average, to be spread over the levels so that the fewest filters
    are wrong."""
    make_policy: PolicyMaker | None = None
    """Makes another filter policy than the kind's for the bits per key; needed for ``own``."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no kind of filter: {self.kind!r}; there are {', '.join(KINDS)}")
        if KINDS[self.kind].takes_bits != bool(self.bits):
            does = "takes no" if self.bits else "needs"
            raise ValueError(f"{self.kind!r} {does} bits a key")
        if self.spread and len(self.bits) != 1:
            raise ValueError(f"{self.kind!r}: one number is spread over the levels")

    @property
    def layout(self) -> Layout:
        """The ``filter_layout`` of the tables, or ``none``."""
        return KINDS[self.kind].layout

    @property
    def leveldb_asks(self) -> bool:
        """True if LevelDB asks such filters: it reads tables with others as if they had none."""
        return self.kind == "block" and self.make_policy is None

    def policy(self, level: int, runs: Sequence[int] = (1,), own: int = 0) -> FilterPolicy | None:
        """The filter policy for a table of a level; None for no filter.

        Bits are spread by ``runs``, the sizes of all that a Get asks one table of: each table of
        level 0, and each other level; ``runs[own]`` is where the table is.  By default there is one
        run.

        >>> parse_setting("block:auto:10").policy(1, [1, 10, 100], 1)
        BloomFilterPolicy(14.2744)
        """
        make = self.make_policy or KINDS[self.kind].make_policy
        if make is None:
            return None
        if not self.bits:
            return BinaryFusePolicy()
        by_level = LevelBits(self.bits[-1], () if self.spread else self.bits)
        bits = by_level.bits_for(level, runs, own)
        return make(bits) if bits >= FEWEST_BITS else None

    def __str__(self) -> str:
        """The text that :func:`parse_setting` reads."""
        if not self.bits:
            return self.kind
        numbers = ",".join(f"{one:g}" for one in self.bits)
        return f"{self.kind}:{'auto:' if self.spread else ''}{numbers}"

    def in_words(self) -> str:
        """The setting as a part of a sentence.

        >>> parse_setting("table:15").in_words(), parse_setting("block:10,8").in_words()
        ('15 bits a key in a filter for each table', '10 and 8 bits a key by level')
        """
        words = KINDS[self.kind].words
        if not self.bits:
            return words
        if self.spread:
            bits = f"{_bits(self.bits[0])} on average, spread over the levels,"
            return f"{bits} {words}" if words else bits
        if len(self.bits) > 1:
            *first, last = (f"{one:g}" for one in self.bits)
            bits = f"{', '.join(first)} and {last} bits a key by level"
        else:
            bits = _bits(self.bits[0])
        return f"{bits} {words}".rstrip()


def _bits(number: float) -> str:
    return f"{number:g} bit{'s' if number != 1 else ''} a key"


def parse_setting(text: str) -> FilterSetting:
    """The setting that a text names.

    ``none``; ``block:10``, a filter for each 2 KiB of a table as LevelDB has them; ``table:15``,
    one for all of it; ``block64:10`` and ``table64:10``, the same with a 64-bit hash; ``fuse``;
    ``block:10,10,8,5`` by level, from level 0 on; ``block:auto:10``, 10 bits on average, spread
    over the levels.  Raises ``ValueError``, which says what is wrong.  Costs nothing.

    >>> str(parse_setting("table64:12.50")), parse_setting("block:10,8").bits
    ('table64:12.5', (10.0, 8.0))
    """
    if text in KINDS and not KINDS[text].takes_bits:
        return FilterSetting(text)
    found = _TEXT.fullmatch(text)
    if found is None or found[1] not in KINDS or not KINDS[found[1]].takes_bits:
        raise ValueError(f"no filter setting: {text!r}; write {ALLOWED}")
    numbers = tuple(float(one) for one in found[3].split(","))
    is_spread = found[2] is not None
    if is_spread and len(numbers) > 1:
        raise ValueError(f"{text}: one number is spread over the levels")
    most = MOST_BITS if is_spread else _MOST_BITS
    if max(numbers) > most:
        raise ValueError(f"{text}: at most {most:g} bits a key")
    if any(one < 1 and (is_spread or one > 0) for one in numbers):
        raise ValueError(f"{text}: at least 1 bit a key, or 0 for no filter on a level")
    return FilterSetting(found[1], numbers, spread=is_spread)


def parse_settings(text: str, own: PolicyMaker | None = None) -> list[FilterSetting]:
    """The settings that a text lists, with spaces between them; each one once.

    ``own`` makes the policy of those that begin with ``own:`` for the bits per key.  Raises
    ``ValueError`` as :func:`parse_setting` does, and for an empty list.  Costs nothing.

    >>> [str(one) for one in parse_settings("none block:10 none block:10.0")]
    ['none', 'block:10']
    """
    settings = {str(one): one for one in map(parse_setting, text.split())}
    if not settings:
        raise ValueError("name at least one filter setting, such as block:10")
    for name, one in settings.items():
        if one.kind == OWN:
            if own is None:
                raise ValueError(f"{name} needs a custom policy: --policy FILE")
            settings[name] = replace(one, make_policy=own)
    return list(settings.values())
