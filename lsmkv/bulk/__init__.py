"""Builds shard sets on any executor, and publishes them: ``docs/scale.md``.

``lsmkv.shards`` reads them.  URLs of object stores need the extra ``remote``.
"""

from __future__ import annotations

from lsmkv.bulk.build import build
from lsmkv.bulk.workers import RayExecutor, Workers

__all__ = ["RayExecutor", "Workers", "build"]
