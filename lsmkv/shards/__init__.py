"""Reads shard sets in place: in object storage, or in a directory.

``lsmkv.bulk`` builds and publishes them; ``docs/scale.md`` has the layout and the figures.  URLs of
object stores need the extra ``remote``.
"""

from __future__ import annotations

from lsmkv.shards.explanation import ShardExplanation
from lsmkv.shards.iterator import ShardIterator
from lsmkv.shards.remote.objects.retrying import Limits
from lsmkv.shards.shards import Shards
from lsmkv.shards.shards import Shards as open  # as lsmkv.open opens a store
from lsmkv.shards.stats import ShardsStats
from lsmkv.shards.verify import ShardSurvey, VersionSurvey
from lsmkv.shards.version import ShardEntry, StoredFile, VersionDocument

__all__ = [
    "Limits",
    "ShardEntry",
    "ShardExplanation",
    "ShardIterator",
    "ShardSurvey",
    "Shards",
    "ShardsStats",
    "StoredFile",
    "VersionDocument",
    "VersionSurvey",
    "open",
]
