"""Keys for the demo."""

from __future__ import annotations

import random

from lsmkv.tools.demo.measure import Lookups, Measurement

LINES = [b"%06x of %d\n" % (random.Random(n).getrandbits(24), n) for n in range(2000)]


def ignore(_: int) -> None:
    pass


def measurement(
    layout: str,
    *,
    asked: int = 0,
    positives: int = 0,
    blocks: int = 0,
    predicted: float | None = None,
    levels: dict[int, int] | None = None,
) -> Measurement:
    hits = Lookups(1000, 0, 10.0, 1000, 2_000_000, asked, asked)
    misses = Lookups(1000, 0, 5.0, blocks, blocks * 2000, asked, positives)
    tables = {2: 1} if levels is None else levels
    return Measurement(layout, False, tables, 100_000, 4, 5_000, hits, misses, predicted)
