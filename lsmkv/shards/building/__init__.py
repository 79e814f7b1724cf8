"""Builds shard sets on any executor, publishes them, and manages their versions: ``docs/scale.md``.

``lsmkv.shards`` reads them.  URLs of object stores need the extra ``remote``.
"""

from __future__ import annotations

from lsmkv.engine.former_paths import keep_paths
from lsmkv.shards.building.build import build
from lsmkv.shards.building.diff import Change, PairChange
from lsmkv.shards.building.manage import diff, prune, versions
from lsmkv.shards.building.prune import Pruned
from lsmkv.shards.building.set_repair import SetRepair, ShardRepair, repair
from lsmkv.shards.building.sources.parts import parts_of
from lsmkv.shards.building.workers import RayExecutor, Workers

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

keep_paths(*(globals()[name] for name in __all__))
