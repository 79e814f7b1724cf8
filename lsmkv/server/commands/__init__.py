"""The commands, by what they work on.  Importing a module registers its commands."""

from __future__ import annotations

from lsmkv.server.commands import (
    acl,
    admin,
    bitfields,
    bitmaps,
    bloom,
    clients,
    connection,
    consumer_groups,
    diagnosis,
    dumping,
    field_expiry,
    functions,
    geo,
    hashes,
    hyperloglogs,
    introspection,
    keys,
    lists,
    pubsub,
    raw,
    scripts,
    sets,
    sorted_set_algebra,
    sorted_set_ranges,
    sorted_sets,
    sorting,
    stream_info,
    stream_reading,
    streams,
    strings,
    subsequences,
    transactions,
)
from lsmkv.server.registry import COMMANDS

__all__ = ["COMMANDS", "MODULES"]

# fmt: off
MODULES = (
    acl, admin, bitfields, bitmaps, bloom, clients, connection, consumer_groups, diagnosis, dumping,
    field_expiry, functions, geo, hashes, hyperloglogs, introspection, keys, lists, pubsub, raw,
    scripts, sets, sorted_set_algebra, sorted_set_ranges, sorted_sets, sorting, stream_info,
    stream_reading, streams, strings, subsequences, transactions,
)
# fmt: on
"""The modules that register commands."""
