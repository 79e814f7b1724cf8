"""Keys and values: the same for every engine, made from the seed before any clock runs."""

from __future__ import annotations

import random
from collections.abc import Sequence

from lsmkv.tools.bench.settings import KEY_SIZE, MIB, Settings

_PIECE = 100
_PRINTABLE = bytes(0x20 + byte * 95 // 256 for byte in range(256))
"""A printable character for each byte: db_bench's values are text."""
_MOST_VALUES = 10_000


class Data:
    """The entries of a store: entry i has the i-th key in order.

    Each entry has a value for each *generation*: overwriting stores those of the next one.
    """

    def __init__(self, settings: Settings) -> None:
        self._seed = settings.seed
        self.num = settings.num
        make = compressible_values if settings.compressible else random_values
        self.values = make(settings.value_size, self._random("values"))

    def key(self, index: int) -> bytes:
        """The key of an entry: its number, as db_bench writes it."""
        return b"%0*d" % (KEY_SIZE, index)

    def value(self, index: int, generation: int = 0) -> bytes:
        """The value of an entry."""
        return self.values[(index + 7 * generation) % len(self.values)]

    def keys(self, indices: Sequence[int]) -> list[bytes]:
        """The keys of these entries, in their order."""
        return [b"%0*d" % (KEY_SIZE, index) for index in indices]

    def values_of(self, indices: Sequence[int], generation: int = 0) -> list[bytes]:
        """The values of these entries."""
        values = self.values
        count = len(values)
        return [values[(index + 7 * generation) % count] for index in indices]

    def absent_keys(self, indices: list[int]) -> list[bytes]:
        """Keys that no entry has, each right after an entry's: as in db_bench, with a dot at the
        end.

        >>> Data(Settings(num=10)).absent_keys([3])
        [b'0000000000000003.']
        """
        return [key + b"." for key in self.keys(indices)]

    def shuffled(self, purpose: str) -> list[int]:
        """All entries in random order, another one for each purpose.

        A permutation, where db_bench draws with repetition: so every store holds ``num`` entries.
        """
        indices = list(range(self.num))
        self._random(purpose).shuffle(indices)
        return indices

    def drawn(self, purpose: str, count: int, among: int | None = None) -> list[int]:
        """``count`` random entries, with repetition, among all or the first ``among``."""
        rng = self._random(purpose)
        return rng.choices(range(self.num if among is None else among), k=count)

    def _random(self, purpose: str) -> random.Random:
        return random.Random(f"{self._seed} {purpose}")


def random_values(size: int, rng: random.Random) -> list[bytes]:
    """Different values of ``size`` random bytes, which no codec makes smaller."""
    return [rng.randbytes(size) for _ in range(_MOST_VALUES)] if size else [b""]


def compressible_values(size: int, rng: random.Random) -> list[bytes]:
    """Different values of ``size`` bytes that compress to about half, as db_bench's do.

    They are cut from pieces of 100 bytes: 50 at random, twice.
    """
    if size == 0:
        return [b""]
    pool = bytearray()
    while len(pool) < max(MIB, size):
        half = rng.randbytes(_PIECE // 2).translate(_PRINTABLE)
        pool += half + half
    count = min(_MOST_VALUES, len(pool) // size)
    return [bytes(pool[at * size : (at + 1) * size]) for at in range(count)]
