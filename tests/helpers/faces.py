"""The public modules: what their ``__all__`` names is public."""

from __future__ import annotations

FACES = (
    "lsmkv",
    "lsmkv.aio",
    "lsmkv.bulk",
    "lsmkv.files",
    "lsmkv.filter_lab",
    "lsmkv.indexeddb",
    "lsmkv.mapping",
    "lsmkv.owner",
    "lsmkv.plot",
    "lsmkv.plyvel",
    "lsmkv.repair",
    "lsmkv.shards",
    "lsmkv.testing",
)
