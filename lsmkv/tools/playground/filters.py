"""Filters for the page that shows a Bloom filter step by step: made and asked by their policies.

Keys are texts, and are stored in UTF-8.  The absent keys that a rate is measured with are random,
and the same each time.
"""

from __future__ import annotations

import functools
import random
from typing import Any, Final

from lsmkv import BinaryFusePolicy, Bloom64Policy, BloomFilterPolicy
from lsmkv.files import Filter
from lsmkv.tools.inspect.filters import near, probed

Plain = dict[str, Any]
"""A JSON object."""
Policy = BloomFilterPolicy | Bloom64Policy | BinaryFusePolicy

ASKED: Final = 10_000
"""The absent keys that a rate is measured with."""
MOST_KEYS: Final = 500
MOST_BITS: Final = 2048
LEAST_BITS: Final = 64
MOST_PROBES: Final = 30
MOST_PER_KEY: Final = 64
LONGEST_KEY: Final = 1024
"""The longest key in bytes."""
FEWEST_FUSED: Final = 1000
"""A fuse filter has at least this many keys: with fewer, the policy makes a Bloom filter."""

_FIRST = ("quiet", "green", "early", "small", "bright", "late", "round")
_SECOND = ("river", "lamp", "stone", "cloud", "garden", "window", "harbor", "bell")


def bloom(query: Plain) -> Plain:
    """A LevelDB Bloom filter of ``bits`` bits and ``probes`` probes with ``keys``, and a lookup.

    The answer has the filter's bytes, the hash and the bits of each key, and for ``asked``, if that
    is given, the hash and the bits that a lookup probes, up to the first that is clear.
    """
    keys = _keys(query)
    made = bloom_filter(keys, *_size(query))
    found: Plain = {
        "hex": made.data.hex(),
        "ones": made.ones,
        "keys": [_probed(made, key) for key in keys],
        "asked": None,
    }
    if query.get("asked") is not None:
        found["asked"] = _probed(made, key_of(query["asked"])) | {
            "present": key_of(query["asked"]) in keys
        }
    return found


def passed(query: Plain) -> Plain:
    """Return how many of :data:`ASKED` absent keys a filter lets pass.

    The filter is that of :func:`bloom`, or, with ``per_key``, the one that BloomFilterPolicy makes
    of ``keys`` with that many bits per key.
    """
    keys = _keys(query)
    if "per_key" in query:
        policy = BloomFilterPolicy(_per_key(query))
        made = _filter(policy, policy.create_filter(keys))
    else:
        made = bloom_filter(keys, *_size(query))
    return {
        "asked": ASKED,
        "passed": _passed(BloomFilterPolicy(), made, keys),
        "bits": made.bits,
        "probes": made.probes,
    }


def stranger(query: Plain) -> Plain:
    """A key that was never added and that the filter of :func:`bloom` lets pass: a false positive.

    Made-up words are asked one after the other; ``tried`` says how many, and ``key`` is None if
    none of :data:`ASKED` passes.
    """
    keys = _keys(query)
    known = set(keys)
    made = bloom_filter(keys, *_size(query))
    policy = BloomFilterPolicy()
    for tried in range(1, ASKED + 1):
        word = f"{_FIRST[tried % len(_FIRST)]} {_SECOND[tried // 7 % len(_SECOND)]} {tried}"
        if word.encode() not in known and policy.key_may_match(word.encode(), made.data):
            return {"key": word, "tried": tried}
    return {"key": None, "tried": ASKED}


def others(query: Plain) -> Plain:
    """The same keys in a Bloom filter of 64-bit hashes and in a fuse filter, and a lookup in both.

    ``per_key`` is the bits per key of the first.  A fuse filter is made of many keys: made-up ones
    fill up ``keys`` to 1,000, and ``added`` says how many these are.
    """
    keys = _keys(query)
    asked = None if query.get("asked") is None else key_of(query["asked"])
    bloom64 = Bloom64Policy(_per_key(query))
    more = [b"made-up key %d" % number for number in range(max(0, FEWEST_FUSED - len(keys)))]
    fuse = BinaryFusePolicy()
    answers: Plain = {"added": len(more)}
    for name, policy, members in (("bloom64", bloom64, keys), ("fuse", fuse, [*keys, *more])):
        made = _filter(policy, policy.create_filter(members))
        answers[name] = {
            "bytes": len(made.data),
            "keys": len(members),
            "rate": made.expected_rate,
            "asked": ASKED,
            "passed": _passed(policy, made, members),
            "lookup": None if asked is None else _looked_up(made, asked),
        } | _form(made)
    return answers


def bloom_filter(keys: list[bytes], bits: int, probes: int) -> Filter:
    """The filter that BloomFilterPolicy makes of keys, with these numbers of bits and probes.

    The policy takes bits per key, so it gets as many as make up ``bits``.  ``ValueError`` if they
    are not whole bytes, or too few or too many.
    """
    policy = BloomFilterPolicy()
    policy.probes = probes
    if not keys:  # of which the policy would make a filter of the least size
        return _filter(policy, bytes(bits // 8) + bytes([probes]))
    policy.bits_per_key = (bits - 0.5) / len(keys)  # rounded up to whole bytes
    return _filter(policy, policy.create_filter(keys))


def _filter(policy: Policy, data: bytes) -> Filter:
    return Filter(0, 0, 0, None, None, policy.name.encode(), data)


def _probed(made: Filter, key: bytes) -> Plain:
    probe = made.probe(key)
    assert probe is not None
    hashed = made.hash(key)
    return {"hash": hashed, "positions": probe.positions, "may_match": probe.may_match}


def _looked_up(made: Filter, key: bytes) -> Plain:
    """Return the reads of a lookup in the form of :func:`lsmkv.tools.inspect.filters.probe`."""
    read = probed(made, key)
    assert read is not None
    return read | {"near": near(made, read["slots"])} if "slots" in read else read


def _form(made: Filter) -> Plain:
    fuse = made.fuse
    if fuse is None:
        return {"bits": made.bits, "probes": made.probes, "hex": made.data[:-1].hex()}
    return {"slots": fuse.slots, "arity": fuse.arity, "segment_slots": fuse.segment_slots}


def _passed(policy: Policy, made: Filter, keys: list[bytes]) -> int:
    known = set(keys)
    taken = {number for number, key in enumerate(_absent()) if key in known}
    return sum(
        policy.hash_may_match(hashed, made.data) and number not in taken
        for number, hashed in enumerate(_absent_hashes(policy.hash_name))
    )


@functools.cache
def _absent() -> tuple[bytes, ...]:
    """Random keys, in hexadecimal."""
    rng = random.Random(1)
    return tuple(rng.randbytes(8).hex().encode() for _ in range(ASKED))


@functools.cache
def _absent_hashes(hash_name: str) -> tuple[int, ...]:
    policy = BloomFilterPolicy() if hash_name == BloomFilterPolicy.hash_name else Bloom64Policy()
    return tuple(map(policy.key_hash, _absent()))


def _keys(query: Plain) -> list[bytes]:
    """The keys of a question, each once; ``ValueError`` if they are too many."""
    keys = list(dict.fromkeys(map(key_of, query.get("keys", ()))))
    if len(keys) > MOST_KEYS:
        raise ValueError(f"more than {MOST_KEYS} keys")
    return keys


def key_of(text: object, what: str = "a key") -> bytes:
    """The key that a question has as a text; ``ValueError`` if it is not a text, or too long."""
    if not isinstance(text, str):
        raise ValueError(f"{what} must be a text")
    key = text.encode("utf-8", "surrogatepass")
    if len(key) > LONGEST_KEY:
        raise ValueError(f"a key of more than {LONGEST_KEY:,} bytes")
    return key


def _per_key(query: Plain) -> float:
    per_key = query.get("per_key")
    if not isinstance(per_key, (int, float)) or not 1 <= per_key <= MOST_PER_KEY:
        raise ValueError(f"per_key must be from 1 to {MOST_PER_KEY}")
    return per_key


def _size(query: Plain) -> tuple[int, int]:
    """The bits and the probes of a question."""
    bits, probes = query.get("bits"), query.get("probes")
    if not isinstance(bits, int) or bits % 8 or not LEAST_BITS <= bits <= MOST_BITS:
        raise ValueError(f"bits must be whole bytes, from {LEAST_BITS} to {MOST_BITS:,}")
    if not isinstance(probes, int) or not 1 <= probes <= MOST_PROBES:
        raise ValueError(f"probes must be from 1 to {MOST_PROBES}")
    return bits, probes
