"""A custom filter policy, and its savings and costs compared with LevelDB's, measured.

    python examples/custom_filter.py [DIRECTORY]

Keys are ``USER/FIELD``, and most lookups of absent keys are for unknown users.  So this policy adds
only the user to the filter, once for all fields.  The answers about users are about as good with a
fraction of the bytes, or far better with half of them.  The price: for a field that a known user
lacks it always says *maybe*, and a block is read.

A policy has a name, which is stored with the filters.  Change it whenever the filters' meaning
changes: then old tables are read without filters instead of with wrong ones.  A filter must never
say *no* to a present key.  Prefix filters (``prefix_extractor``) are for scans; a policy like this
one is for Gets.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import lsmkv

FIELDS = [b"address", b"birthday", b"email", b"language", b"name", b"phone", b"photo", b"theme"]


class UserFilterPolicy:
    """A Bloom filter of the keys' parts before the first slash."""

    def __init__(self, bits_per_user: int) -> None:
        self._bloom = lsmkv.BloomFilterPolicy(bits_per_user)

    @property
    def name(self) -> str:
        return "example.UserFilter"

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        """Keys come in order, so a user's keys are adjacent; each user is added once."""
        return self._bloom.create_filter(list(dict.fromkeys(map(user_of, keys))))

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return self._bloom.key_may_match(user_of(key), filter_data)


class Counting:
    """Wraps a policy, and counts the bytes of its filters."""

    def __init__(self, policy: lsmkv.FilterPolicy) -> None:
        self.name = policy.name
        self.key_may_match = policy.key_may_match
        self.bytes = 0
        self._policy = policy

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        made = self._policy.create_filter(keys)
        self.bytes += len(made)
        return made


def user_of(key: bytes) -> bytes:
    return key.partition(b"/")[0]


def measure(path: Path, policy: lsmkv.FilterPolicy, users: list[bytes]) -> list[float]:
    """Bytes per key; false positives and blocks read per Get: of absent users, of absent fields."""
    counting = Counting(policy)
    options: lsmkv.OptionArguments = {
        "create_if_missing": True,
        "error_if_exists": True,
        "filter_policy": counting,
        "lru_cache_size": 0,  # each block is read from disk whenever it is needed
        "compression": None,  # so that no figure depends on compression
    }
    with lsmkv.DB(path, **options) as db:
        with db.write_batch() as batch:
            for user in users[::2]:
                for field in FIELDS:
                    batch.put(user + b"/" + field, b"something about the user")
        db.flush()
        figures: list[float] = [counting.bytes / (len(users[::2]) * len(FIELDS))]
        for absent in (
            [user + b"/name" for user in users[1::2]],
            [user + b"/nickname" for user in users[::2]],
        ):
            before = db.stats()
            for key in absent:
                assert db.get(key) is None
            took = db.stats() - before
            figures.append(took.filter_false_positives / max(took.filters_asked, 1))
            figures.append(took.blocks_read / len(absent))
        return figures


def main(path: Path) -> None:
    chance = random.Random(1)
    users = sorted({b"user-%08x" % chance.getrandbits(32) for _ in range(10_000)})
    policies: list[tuple[str, lsmkv.FilterPolicy]] = [
        ("LevelDB's, 10 bits", lsmkv.BloomFilterPolicy(10)),
        ("by user, 10 bits", UserFilterPolicy(10)),
        ("by user, 40 bits", UserFilterPolicy(40)),
    ]
    print("                     bytes      absent user      absent field")
    print("filter               a key     wrong  blocks     wrong  blocks")
    for number, (what, policy) in enumerate(policies):
        size, *rates = measure(path / str(number), policy, users)
        print(f"{what:<18}{size:>8.2f}  {rates[0]:>8.2%}{rates[1]:>8.3f}", end="")
        print(f"  {rates[2]:>8.2%}{rates[3]:>8.3f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(Path(directory))
