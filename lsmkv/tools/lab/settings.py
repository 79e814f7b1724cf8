"""Filter settings: layout, and bits a key for each level; as text ``block:10`` or ``none``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from lsmkv.filter.bloom import BloomFilterPolicy
from lsmkv.filter.policy import FilterPolicy

Layout = Literal["none", "block", "table"]

DEFAULT_SETTINGS = "none block:5 block:10 block:15 block:20 table:10 table:15"
"""What the lab compares if nothing else is asked for."""

_TEXT = re.compile(r"(block|table):(\d+(?:,\d+)*)")
_MOST_BITS = 256


@dataclass(frozen=True)
class FilterSetting:
    """A way to build the filters of a store.

    ``bits[n]`` are the bits a key on level n, 0 for no filter; the last number holds for all deeper
    levels too.  ``make_policy`` makes the filter policy of so many bits a key.

    >>> setting = FilterSetting("block", (10, 10, 8))
    >>> str(setting), setting.policy(1), setting.policy(6)
    ('block:10,10,8', BloomFilterPolicy(10), BloomFilterPolicy(8))
    """

    layout: Layout
    bits: tuple[int, ...] = ()
    make_policy: Callable[[int], FilterPolicy] = BloomFilterPolicy

    def __post_init__(self) -> None:
        if (self.layout == "none") != (not self.bits):
            raise ValueError("bits a key go with the layouts 'block' and 'table', and only there")

    def policy(self, level: int) -> FilterPolicy | None:
        """The filter policy for the tables of a level; None for no filter."""
        bits = self.bits[min(level, len(self.bits) - 1)] if self.bits else 0
        return self.make_policy(bits) if bits > 0 else None

    def __str__(self) -> str:
        """The text that :func:`parse_setting` reads."""
        if self.layout == "none":
            return "none"
        return f"{self.layout}:{','.join(map(str, self.bits))}"

    def in_words(self) -> str:
        """The setting as a part of a sentence.

        >>> FilterSetting("table", (15,)).in_words(), FilterSetting("block", (10, 8)).in_words()
        ('15 bits a key in a filter for each table', '10 and 8 bits a key by level')
        """
        if self.layout == "none":
            return "no filter"
        if len(self.bits) > 1:
            *first, last = map(str, self.bits)
            words = f"{', '.join(first)} and {last} bits a key by level"
        else:
            words = f"{self.bits[0]} bit{'s' if self.bits[0] != 1 else ''} a key"
        return words if self.layout == "block" else f"{words} in a filter for each table"


def parse_setting(text: str) -> FilterSetting:
    """The setting that a text names.

    ``none``; ``block:10``, a filter for each 2 KiB of a table as LevelDB has them; ``table:15``,
    one for all of it; ``block:10,10,8,5`` by level, from level 0 on.  ``ValueError`` says what is
    wrong.

    >>> parse_setting("block:10,8").bits
    (10, 8)
    """
    if text == "none":
        return FilterSetting("none")
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError(
            f"no filter setting: {text!r}; write none, block:10, table:15,"
            " or block:10,10,8,5 with bits a key for each level"
        )
    bits = tuple(map(int, found[2].split(",")))
    if max(bits) > _MOST_BITS:
        raise ValueError(f"{text}: at most {_MOST_BITS} bits a key")
    return FilterSetting("block" if found[1] == "block" else "table", bits)


def parse_settings(text: str) -> list[FilterSetting]:
    """The settings that a text lists, with spaces between them; each one once.

    >>> [str(one) for one in parse_settings("none block:10 none")]
    ['none', 'block:10']
    """
    settings = [parse_setting(word) for word in dict.fromkeys(text.split())]
    if not settings:
        raise ValueError("name at least one filter setting, such as block:10")
    return settings
