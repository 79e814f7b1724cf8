"""Names and sequential keys in filters of one size: the hash that distinguishes them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from lsmkv import Bloom64Policy, BloomFilterPolicy
from lsmkv.tools.playground.story import records

Plain = dict[str, Any]
"""A JSON object."""

FILTERS: Final = 25
ASKED: Final = 40
"""Absent keys that are looked up in each filter."""
PER_KEY: Final = 10
KEYS: Final = 64
"""Keys of each filter, about as many as a block has.  Between 1% and 37% of absent sequential keys
pass filters of 32 to 128 keys: their bits line up in some sizes and not in others."""
_SHARE = 3  # one number in three is a key


def hashes(_: Plain) -> Plain:
    """Return the absent keys that pass filters of names and of sequential keys.

    ``kinds`` has for each the answers of :data:`FILTERS` filters for :data:`ASKED` absent keys, as
    a text of zeros and ones for each filter, in which 1 is a false positive.
    """
    leveldb, bloom64 = BloomFilterPolicy(PER_KEY), Bloom64Policy(PER_KEY)
    kinds = (
        ("names, LevelDB's hash", leveldb, _names()),
        ("sequential keys, LevelDB's hash", leveldb, _numbers()),
        ("sequential keys, a 64-bit hash", bloom64, _numbers()),
    )
    return {
        "per_key": PER_KEY,
        "keys": KEYS,
        "kinds": [
            {"title": title, "answers": [_answers(policy, *one) for one in sets]}
            for title, policy, sets in kinds
        ],
    }


def _answers(
    policy: BloomFilterPolicy | Bloom64Policy, keys: list[bytes], absent: list[bytes]
) -> str:
    data = policy.create_filter(keys)
    return "".join("1" if policy.key_may_match(key, data) else "0" for key in absent)


def _names() -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Keys of each filter, and absent ones: names of characters, in random order."""
    names = iter([key for key, _ in records()])
    for _ in range(FILTERS):
        keys = [next(names) for _ in range(KEYS)]
        yield keys, [next(names) for _ in range(ASKED)]


def _numbers() -> Iterator[tuple[list[bytes], list[bytes]]]:
    """The same of numbers with leading zeros, of which one in three is a key."""
    rng = random.Random(6)
    for at in range(FILTERS):
        first = at * _SHARE * KEYS
        span = [b"%016d" % number for number in range(first, first + _SHARE * KEYS)]
        keys = set(rng.sample(span, KEYS))
        absent = [key for key in span if key not in keys]
        yield sorted(keys), rng.sample(absent, ASKED)
