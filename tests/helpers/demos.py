"""Keys and figures for the demo."""

from __future__ import annotations

import io
import random

from rich.console import Console

from lsmkv.tools.demo.measure import Lookups, Measurement
from lsmkv.tools.demo.report import print_report
from lsmkv.tools.demo.run import Outcome, Plan
from lsmkv.tools.demo.timing import Times

LINES = [b"%06x of %d\n" % (random.Random(n).getrandbits(24), n) for n in range(2000)]


def printed(plan: Plan, outcome: Outcome, width: int, encoding: str = "utf-8") -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_report(Console(file=out, width=width), plan, outcome)
    out.seek(0)
    return out.read()


def measurement(
    layout: str,
    *,
    asked: int = 0,
    positives: int = 0,
    blocks: int = 0,
    predicted: float | None = None,
    answered: int | None = None,
    levels: dict[int, int] | None = None,
    disk: int = 100_000,
    filters: int = 0,
) -> Measurement:
    hits = Lookups(1000, 0, 1000, 2_000_000, asked, asked, Times(10.0, 9.0, 13.5))
    misses = Lookups(1000, 0, blocks, blocks * 2000, asked, positives, Times(5.0, 5.0, 6.0))
    tables = {2: 1} if levels is None else levels
    opened = (4, 5_000, 1, 2_000, filters)
    return Measurement(layout, False, tables, disk, *opened, hits, misses, predicted, answered)
