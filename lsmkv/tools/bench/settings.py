"""The settings of a benchmark."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal

MIB = 1024 * 1024

Compression = Literal["snappy", "none"]


class Shape(StrEnum):
    """The placement, in engines with levels, of the entries that a workload reads."""

    SETTLED = "settled"
    """As the background work of ``fillrandom`` has left them, which depends on its timing."""
    WRITTEN = "written"
    """Half of them in a level below, a quarter in a table above, a quarter in the memtable."""
    DEEP = "deep"
    """The last quarter is in a second table above."""
    COMPACTED = "compacted"
    """All are in one level."""


KEY_SIZE = 16
"""Bytes of a key, as db_bench's: a number in decimal digits."""


@dataclass(frozen=True)
class Settings:
    """The same for every engine, as far as an engine has such a setting.  Sizes are in bytes."""

    num: int = 200_000
    """Entries of a store."""
    value_size: int = 100
    threads: int = 1
    bloom_bits: int = 10
    """Bits a key; 0 turns filters off."""
    cache_size: int = 8 * MIB
    """Size of the block cache, or of the page cache of engines that have their own."""
    compression: Compression = "snappy"
    compressible: bool = True
    """True if values compress to half, as db_bench's do; False if not at all."""
    histogram: bool = False
    """True to time each operation by itself, which costs about 0.1 us an operation."""
    seed: int = 1
    write_buffer_size: int = 4 * MIB
    shape: Shape = Shape.SETTLED
    own_defaults: bool = False
    """True to use each engine's default filters, caches and buffers in place of the ones above."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; ``Settings(**plain)`` is the inverse."""
        return asdict(self)
