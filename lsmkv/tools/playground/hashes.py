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
"""Keys of each filter in the grids, about as many as a block has."""
SIZES: Final = (32, KEYS, 128)
"""Keys of each filter in the table: the bits of sequential keys line up in some sizes and not in
others."""
_SHARE = 3  # one in so many numbers is a key
_FAR = 10**9

Asked = tuple[list[bytes], list[bytes]]
"""The keys of a filter, and the absent ones that it is asked for."""


def hashes(_: Plain) -> Plain:
    """Return the absent keys that pass filters of names and of sequential keys.

    ``kinds`` has for each the answers of :data:`FILTERS` filters for :data:`ASKED` absent keys, as
    a text of zeros and ones for each filter, in which 1 is a false positive.  ``patterns`` has the
    shares that pass for other absent sequential keys: ``leveldb`` for each of ``sizes``, and
    ``bloom64`` for filters of :data:`KEYS`.
    """
    leveldb, bloom64 = BloomFilterPolicy(PER_KEY), Bloom64Policy(PER_KEY)
    kinds = (
        ("names, LevelDB's hash", leveldb, _names()),
        ("sequential keys with gaps, LevelDB's hash", leveldb, _gaps(KEYS)),
        ("sequential keys with gaps, a 64-bit hash", bloom64, _gaps(KEYS)),
    )
    patterns = (
        ("numbers between keys with gaps", _gaps),
        ("the next numbers, no gaps", _next),
        ("far numbers, no gaps", _far),
    )
    return {
        "per_key": PER_KEY,
        "keys": KEYS,
        "kinds": [
            {"title": title, "answers": [_answers(policy, *one) for one in sets]}
            for title, policy, sets in kinds
        ],
        "sizes": SIZES,
        "patterns": [
            {
                "title": title,
                "leveldb": [_share(leveldb, made(size)) for size in SIZES],
                "bloom64": _share(bloom64, made(KEYS)),
            }
            for title, made in patterns
        ],
    }


def _answers(
    policy: BloomFilterPolicy | Bloom64Policy, keys: list[bytes], absent: list[bytes]
) -> str:
    data = policy.create_filter(keys)
    return "".join("1" if policy.key_may_match(key, data) else "0" for key in absent)


def _share(policy: BloomFilterPolicy | Bloom64Policy, sets: Iterator[Asked]) -> float:
    """The share of absent keys that pass."""
    return sum(_answers(policy, *one).count("1") for one in sets) / (FILTERS * ASKED)


def _names() -> Iterator[Asked]:
    """Keys of each filter, and absent ones: names of characters, in random order."""
    names = iter([key for key, _ in records()])
    for _ in range(FILTERS):
        keys = [next(names) for _ in range(KEYS)]
        yield keys, [next(names) for _ in range(ASKED)]


def _gaps(size: int) -> Iterator[Asked]:
    """Numbers with leading zeros, of which one in three is a key, and numbers between them."""
    rng = random.Random(6)
    for at in range(FILTERS):
        span = _numbers(at * _SHARE * size, _SHARE * size)
        keys = set(rng.sample(span, size))
        absent = [key for key in span if key not in keys]
        yield sorted(keys), rng.sample(absent, ASKED)


def _next(size: int) -> Iterator[Asked]:
    """Numbers without gaps, and those that follow."""
    for at in range(FILTERS):
        yield _numbers(at * size, size), _numbers((at + 1) * size, ASKED)


def _far(size: int) -> Iterator[Asked]:
    """Numbers without gaps, and random ones far away."""
    rng = random.Random(7)
    for at in range(FILTERS):
        absent = [b"%016d" % rng.randrange(_FAR, 2 * _FAR) for _ in range(ASKED)]
        yield _numbers(at * size, size), absent


def _numbers(first: int, size: int) -> list[bytes]:
    return [b"%016d" % number for number in range(first, first + size)]
