"""The pairs of a shard set that commands read."""

from __future__ import annotations

PAIRS = [(b"%04d" % n, b"value %d" % n) for n in range(0, 2000, 2)]
