"""A door for readers and type checkers: when it runs, ``lsmkv.bulk`` is
``lsmkv.shards.building``.
"""

from __future__ import annotations

from lsmkv.shards.building import (
    Change,
    PairChange,
    Pruned,
    RayExecutor,
    SetRepair,
    ShardRepair,
    Workers,
    build,
    diff,
    parts_of,
    prune,
    repair,
    versions,
)

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
