"""A shard set of four small shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.engine.options import KIB

PAIRS = {b"%06d" % n: b"value %d" % n * 20 for n in range(0, 12_000, 2)}
SMALL: dict[str, Any] = {"shards": 4, "table_bytes": 64 * KIB, "block_size": 4 * KIB}


def build(url: Path, pairs: dict[bytes, bytes] = PAIRS, **arguments: Any) -> None:
    lsmkv.bulk.build(pairs.items(), url, **(SMALL | arguments))


def requests(s: lsmkv.shards.Shards) -> int:
    return s.stats().requests.total.requests
