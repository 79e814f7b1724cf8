"""Builds shard sets on any executor, publishes them, and keeps their versions: ``docs/scale.md``.

``lsmkv.shards`` reads them.  URLs of object stores need the extra ``remote``.
"""

from __future__ import annotations

from lsmkv.bulk.build import build
from lsmkv.bulk.manage import diff, prune, versions
from lsmkv.bulk.sources.parts import parts_of
from lsmkv.bulk.workers import RayExecutor, Workers

__all__ = [
    "RayExecutor",
    "Workers",
    "build",
    "diff",
    "parts_of",
    "prune",
    "versions",
]
