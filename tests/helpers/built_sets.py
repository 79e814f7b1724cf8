"""What ``lsmkv bulk build`` reads, and the set that it makes."""

from __future__ import annotations

from pathlib import Path

import lsmkv
import lsmkv.shards
from lsmkv.files.exchange import json_line

PAIRS = [(b"%04d" % n, b"value %d" % n) for n in range(500)]


def write_input(path: Path, pairs: list[tuple[bytes, bytes]] = PAIRS) -> Path:
    path.write_bytes(b"".join(json_line(key, value) for key, value in pairs))
    return path


def content(url: Path) -> list[tuple[bytes, bytes]]:
    with lsmkv.shards.open(url) as s:
        return list(s)
