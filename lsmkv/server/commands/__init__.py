"""The commands, by what they work on.  Importing a module registers its commands."""

from __future__ import annotations

from lsmkv.server.commands import (
    admin,
    bloom,
    clients,
    connection,
    hashes,
    introspection,
    keys,
    lists,
    pubsub,
    raw,
    scripts,
    sets,
    sorted_sets,
    sorting,
    strings,
    transactions,
)
from lsmkv.server.registry import COMMANDS

__all__ = [
    "COMMANDS",
    "admin",
    "bloom",
    "clients",
    "connection",
    "hashes",
    "introspection",
    "keys",
    "lists",
    "pubsub",
    "raw",
    "scripts",
    "sets",
    "sorted_sets",
    "sorting",
    "strings",
    "transactions",
]
