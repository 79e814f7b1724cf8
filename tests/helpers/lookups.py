"""What INFO counts for one command: the hits and misses of Redis 7.0."""

from __future__ import annotations

from pathlib import Path

_FILE = Path(__file__).parents[1] / "server" / "testdata" / "lookups.txt"
PREPARED = [
    "SET s abc",
    "SET n 5",
    "HSET h a 1 b 2",
    "RPUSH l a b c",
    "SADD t a b c",
    "SADD u b c",
    "ZADD z 1 a 2 b",
    "XADD x 1-1 f v",
    "XGROUP CREATE x g 0",
    "PFADD p a b",
    "SET bits ab",
    "EXPIRE bits 100",
]
"""What the keys are before each command."""


def _lookups() -> list[tuple[list[int], str]]:
    lines = [line for line in _FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    words = [line.split(" ", 2) for line in lines]
    return [([int(hits), int(misses)], request) for hits, misses, request in words]


LOOKUPS = _lookups()
"""Each request with its hits and misses."""
