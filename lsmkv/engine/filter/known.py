"""The filter policies that lsmkv provides, by their names in tables, and as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from lsmkv.engine.filter.bloom import MAX_PROBES, BloomFilterPolicy, fill_rate, rate_from_fill
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import FINGERPRINT_BITS, BinaryFusePolicy, shape_of
from lsmkv.engine.filter.policy import FilterPolicy

KNOWN_POLICIES: Final[tuple[FilterPolicy, ...]] = (
    BinaryFusePolicy(),
    Bloom64Policy(),
    BloomFilterPolicy(),
)
"""One of each kind, in the order in which a reader prefers those that it finds in a table."""

SAMPLE: Final = 32
"""Number of filters of a table that represent all of them when its false-positive rate is computed.
"""

BLOOM_NAME: Final = BloomFilterPolicy().name
BLOOM64_NAME: Final = Bloom64Policy().name
FUSE_NAME: Final = BinaryFusePolicy().name

KNOWN_TYPES: Final = (BloomFilterPolicy, Bloom64Policy, BinaryFusePolicy)


def is_known(policy: FilterPolicy | None) -> bool:
    """Return True if a policy is one of lsmkv's, or None, so that :func:`policy_text` has a text
    for it."""
    return policy is None or type(policy) in KNOWN_TYPES


def rate_of(policy: str, filter_data: bytes) -> float | None:
    """The false-positive rate to expect of a filter, from its own bytes; None for other policies.

    ``policy`` is the policy's name.  A fuse filter's rate is that of its fingerprints.

    >>> policy = BloomFilterPolicy(10)
    >>> round(rate_of(policy.name, policy.create_filter([b"%d" % n for n in range(1000)])), 3)
    0.008
    """
    if policy == BLOOM_NAME:
        return rate_from_fill(filter_data)
    if policy not in (BLOOM64_NAME, FUSE_NAME):
        return None
    if policy == FUSE_NAME and shape_of(filter_data) is not None:
        return math.pow(2.0, -FINGERPRINT_BITS)
    if len(filter_data) < 2:
        return 0.0
    if filter_data[-1] > MAX_PROBES:
        return 1.0
    return math.pow(fill_rate(filter_data), filter_data[-1])


def mean_rate(policy: str, filters: Sequence[bytes]) -> float | None:
    """The mean of :func:`rate_of` a sample of filters of one policy; None if it is not known.

    A sample has :data:`SAMPLE` filters or a few more.
    """
    rates: list[float] = []
    for data in filters:
        rate = rate_of(policy, data)
        if rate is not None:
            rates.append(rate)
    return sum(rates) / len(rates) if rates else None


def policy_text(policy: FilterPolicy | None) -> str:
    """One of lsmkv's policies as text: ``none``, or its kind and its bits a key.

    >>> policy_text(BloomFilterPolicy(10)), policy_text(None)
    ('bloom:10', 'none')
    """
    if isinstance(policy, BloomFilterPolicy):
        return f"bloom:{policy.bits_per_key!r}"
    if isinstance(policy, Bloom64Policy):
        return f"bloom64:{policy.bits_per_key!r}"
    if isinstance(policy, BinaryFusePolicy):
        return f"fuse:{policy.bloom_bits_per_key!r}"
    if policy is None:
        return "none"
    raise ValueError(f"not one of lsmkv's filter policies: {policy!r}")


def policy_from_text(text: str) -> FilterPolicy | None:
    """The policy for a text; the ``ValueError`` for any other lists the valid ones.

    >>> policy_from_text("fuse"), policy_from_text("bloom64:12.5"), policy_from_text("none")
    (BinaryFusePolicy(), Bloom64Policy(12.5), None)
    """
    kind, _, number = text.partition(":")
    try:
        bits: int | float = int(number or 10) if not number or number.isdecimal() else float(number)
        if kind == "bloom":
            return BloomFilterPolicy(bits)
        if kind == "bloom64":
            return Bloom64Policy(bits)
        if kind == "fuse":
            return BinaryFusePolicy(bits)
        if text == "none":
            return None
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r}: {error}") from None
    raise ValueError(
        f"a filter is 'bloom', 'bloom64', 'fuse' or 'none', the first two with ':<bits a key>', not"
        f" {text!r}"
    )
