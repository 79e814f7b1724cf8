"""Builds shard sets on any executor, publishes them, and manages their versions: ``docs/scale.md``.

``lsmkv.shards`` reads them.  URLs of object stores need the extra ``remote``.
"""

from __future__ import annotations

from lsmkv.bulk.build import build
from lsmkv.bulk.diff import Change, PairChange
from lsmkv.bulk.manage import diff, prune, versions
from lsmkv.bulk.prune import Pruned
from lsmkv.bulk.set_repair import SetRepair, ShardRepair, repair
from lsmkv.bulk.sources.parts import parts_of
from lsmkv.bulk.workers import RayExecutor, Workers

__all__ = [
    "Change",
    "PairChange",
    "Pruned",
    "RayExecutor",
    "SetRepair",
    "ShardRepair",
    "Workers",
    "build",
    "diff",
    "parts_of",
    "prune",
    "repair",
    "versions",
]
