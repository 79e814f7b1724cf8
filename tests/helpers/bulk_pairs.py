"""Random pairs, and those of a set."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lsmkv
import lsmkv.bulk
import lsmkv.shards

Pairs = list[tuple[bytes, bytes]]


def some(count: int, seed: int = 0) -> Pairs:
    rng = random.Random(seed)
    return [(b"%08x" % rng.getrandbits(24), rng.randbytes(20)) for _ in range(count)]


def pairs_of(parts: Iterable[Any]) -> Pairs:
    """The pairs of all parts."""
    return [pair for part in parts for pair in part.pairs()]


def read(url: Path, version: int | None = None) -> Pairs:
    with lsmkv.shards.open(url, version=version) as s:
        return list(s)
