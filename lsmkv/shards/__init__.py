"""Reads shard sets where they lie: in object storage, or in a directory.

``lsmkv.bulk`` builds and publishes them; ``docs/scale.md`` has the layout and the figures.  URLs of
object stores need the extra ``remote``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Unpack

from lsmkv.env.objects.retrying import DEFAULT_LIMITS, Limits
from lsmkv.options import MIB, OptionArguments
from lsmkv.shards.explanation import ShardExplanation
from lsmkv.shards.iterator import ShardIterator
from lsmkv.shards.shards import CACHE_BYTES, Shards
from lsmkv.shards.stats import ShardsStats
from lsmkv.shards.version import ShardEntry, StoredFile, VersionDocument

__all__ = [
    "Limits",
    "ShardEntry",
    "ShardExplanation",
    "ShardIterator",
    "Shards",
    "ShardsStats",
    "StoredFile",
    "VersionDocument",
    "open",
]


def open(  # noqa: A001 - as lsmkv.open and dbm.open
    url: str | os.PathLike[str],
    *,
    version: int | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_bytes: int = CACHE_BYTES,
    options: Mapping[str, object] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    lru_cache_size: int = 32 * MIB,
    **settings: Unpack[OptionArguments],
) -> Shards:
    """Open the newest version of the shard set at ``url``, or ``version``, for reading.

    ``url``: a directory, or ``s3://bucket/name``, ``gs://``, ``az://``, ``https://`` and others;
    ``options`` go on to the store: credentials, region, endpoint.  ``cache_dir``: keeps at most
    ``cache_bytes`` of what was read on the local disk, for this and other processes, across
    restarts.  ``lru_cache_size``: bytes of blocks that are kept in memory.  ``limits``: timeouts,
    attempts, connections.  Other keywords are those of ``lsmkv.DB`` for reading, such as
    ``prefix_extractor``.

    Cost: two requests, one with ``version``.  A shard is opened when it is first needed, by one
    more, which brings its index and its filters.  Raises :class:`NotFoundError` if there is no
    version, :class:`CorruptionError` if it is damaged, :class:`IOError` when the store fails, and
    ``ImportError`` if the extra ``remote`` is not installed and needed.
    """
    return Shards(
        url,
        version=version,
        cache_dir=cache_dir,
        cache_bytes=cache_bytes,
        options=options,
        limits=limits,
        lru_cache_size=lru_cache_size,
        **settings,
    )
