"""The filter options: which policy, where its filters lie, how prefixes are extracted.

They depend on each other and on the order of keys.  ``make_options`` calls this.
"""

from __future__ import annotations

from typing import Final, cast

from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.engine.filter.levels import LevelBits
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.filter.prefix import CallablePrefix, DelimitedPrefix, FixedPrefix, PrefixExtractor
from lsmkv.engine.options.arguments import FilterBits, FilterLayout, Prefixes
from lsmkv.engine.util.comparator import BytewiseComparator, Comparator, equal_means_identical

_MOST_BITS_PER_KEY: Final = 256
"""More than 44 bits are useless to a filter: it makes 30 probes at most."""


def filter_policy_for(
    bits: FilterBits | None, policy: FilterPolicy | None, order: Comparator
) -> tuple[FilterPolicy | None, LevelBits | None]:
    """The filter policy, and the bits a key by level if they differ."""
    level_bits: LevelBits | None = None
    if bits is not None and not isinstance(bits, (int, float)):
        level_bits = LevelBits.parse(bits)
        bits = level_bits.average
    if policy is not None:
        for member in ("name", "create_filter", "key_may_match"):
            if not hasattr(policy, member):
                raise TypeError(f"filter_policy lacks {member!r}: see lsmkv.FilterPolicy")
        if bits is None:
            return policy, None
        if level_bits is None or not isinstance(policy, (BloomFilterPolicy, Bloom64Policy)):
            raise ValueError(
                "give bloom_filter_bits or filter_policy, not both; only bits by level can be"
                " combined with a BloomFilterPolicy or Bloom64Policy"
            )
        return policy.with_bits(bits), level_bits
    if bits is None:
        # A comparator that calls different bytes equal would get wrong misses from a hash.
        return BloomFilterPolicy(10) if equal_means_identical(order) else None, None
    if bits == 0:
        return None, None
    if bits < 0:
        raise ValueError(f"bloom_filter_bits cannot be negative: {bits}")
    if isinstance(bits, bool):
        raise TypeError("bloom_filter_bits must be a number, not bool")
    return BloomFilterPolicy(min(bits, _MOST_BITS_PER_KEY)), level_bits


def filter_layout_for(layout: str | None, policy: FilterPolicy | None) -> FilterLayout:
    preferred: str = getattr(policy, "preferred_layout", "block")
    chosen = preferred if layout is None else layout
    if chosen == "block" and isinstance(policy, BinaryFusePolicy):
        raise ValueError("BinaryFusePolicy makes filters for whole tables: filter_layout='table'")
    if chosen == "block":
        return "block"
    if chosen == "table":
        return "table"
    if chosen == "both":
        return "both"
    raise ValueError(f"filter_layout is 'block', 'table' or 'both', not {layout!r}")


def prefix_extractor_for(
    given: Prefixes | None, name: str | None, order: Comparator
) -> PrefixExtractor | None:
    if given is None:
        if name is not None:
            raise ValueError("prefix_extractor_name is given without a prefix_extractor")
        return None
    if type(order) is not BytewiseComparator:
        raise ValueError(
            "prefix_extractor requires the bytewise order, in which keys of one prefix are"
            f" neighbors, not {order.name!r}"
        )
    extractor: PrefixExtractor
    if isinstance(given, int):
        extractor = FixedPrefix(given)
    elif isinstance(given, bytes):
        extractor = DelimitedPrefix(given)
    elif hasattr(given, "extract") and hasattr(given, "name"):
        extractor = cast(PrefixExtractor, given)
    elif callable(given):
        if name is None:
            raise ValueError("a function needs a prefix_extractor_name, which is kept on disk")
        return CallablePrefix(given, name)
    else:
        raise TypeError(
            "prefix_extractor must be a number of bytes, a delimiter, a function of a key, or an"
            f" object with the members of lsmkv.PrefixExtractor, not {type(given).__name__}"
        )
    if name is not None and name != extractor.name:
        raise ValueError(
            f"prefix_extractor_name is {name!r}, the extractor says {extractor.name!r}"
        )
    return extractor
