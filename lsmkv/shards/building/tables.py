"""Settings for the tables of a bulk build, which can be sent to another process."""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.engine.filter.known import is_known, policy_from_text, policy_text
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.options import KIB, MIB, Options, TableArguments, make_options, refuse_unknown
from lsmkv.engine.util.comparator import BYTEWISE

TABLE_BYTES = 64 * MIB
BLOCK_BYTES = 32 * KIB


class TableSettings(NamedTuple):
    """The settings of a build's tables.  lsmkv's own filter policies are sent as text."""

    arguments: TableArguments
    policy: str | FilterPolicy | None
    table_bytes: int

    def options(self) -> Options:
        """As options for the engine."""
        policy = policy_from_text(self.policy) if isinstance(self.policy, str) else self.policy
        arguments = self.arguments.copy()
        if policy is None:
            arguments["bloom_filter_bits"] = 0
        else:
            arguments["filter_policy"] = policy
        return make_options(**arguments, lru_cache_size=0)


def table_settings(table_bytes: int, arguments: TableArguments) -> TableSettings:
    """The settings for these keywords of a build, after checks.

    The defaults suit tables that are read over a network.  Blocks have 32 KiB, because a request
    for 4 KiB takes as long.  Each table has one binary fuse filter, with one false positive in 256.
    Raises ``TypeError`` and ``ValueError`` for invalid settings.
    """
    refuse_unknown(arguments, TableArguments.__annotations__, "bulk.build")
    settings = arguments.copy()
    if settings.get("comparator") is not None or settings.get("comparator_name") is not None:
        raise ValueError("shards are always in bytewise order: comparator= cannot be used")
    if settings.pop("env", None) is not None:
        raise ValueError("env= cannot be used in a bulk build, which takes a URL")
    settings.setdefault("block_size", BLOCK_BYTES)
    bits = settings.pop("bloom_filter_bits", None)
    policy = settings.pop("filter_policy", None)
    if policy is not None and bits is not None:
        raise ValueError("give bloom_filter_bits or filter_policy, not both")
    if policy is None and bits is None:
        policy = BinaryFusePolicy()
    elif policy is None:
        policy = make_options(bloom_filter_bits=bits, lru_cache_size=0).filter_policy
        settings.setdefault("filter_layout", "table" if policy is not None else "block")
    if not isinstance(table_bytes, int) or table_bytes < MIB // 64:
        raise ValueError(f"table_bytes must be 16 KiB or more, not {table_bytes!r}")
    made = TableSettings(settings, policy_text(policy) if is_known(policy) else policy, table_bytes)
    options = made.options()
    assert options.comparator is BYTEWISE
    return made
