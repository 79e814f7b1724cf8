"""What does a filter save?  Bits per key and blocks read for absent keys.

Stores 50,000 made-up user names, once for each filter size, and looks up others.  For the same with
real names, other filters and timings: ``lsmkv demo``.
"""

from __future__ import annotations

import math
import os
import random
import tempfile

import lsmkv

rng = random.Random(1)
NAMES = list(dict.fromkeys(b"user-%08x" % rng.getrandbits(32) for _ in range(60_000)))
PRESENT, ABSENT = NAMES[:50_000], NAMES[50_000:55_000]


def make_store(path: str, bits_per_key: int) -> None:
    """Write the user names, and turn them into tables."""
    with lsmkv.DB(path, create_if_missing=True, bloom_filter_bits=bits_per_key) as db:
        for start in range(0, len(PRESENT), 1000):
            with db.write_batch() as batch:
                for key in PRESENT[start : start + 1000]:
                    batch.put(key, b"a user")
        db.flush()


def look_for_others(path: str, bits_per_key: int) -> lsmkv.Stats:
    """Look up absent names, and return the cost."""
    # Without a block cache, each block is read from disk whenever it is needed.
    with lsmkv.DB(path, bloom_filter_bits=bits_per_key, lru_cache_size=0) as db:
        for key in ABSENT:
            assert db.get(key) is None
        return db.stats()


def main() -> None:
    print("bits/key  blocks read per miss  false positives  textbook")
    with tempfile.TemporaryDirectory() as directory:
        for bits_per_key in (0, 2, 5, 10, 15):
            path = os.path.join(directory, f"{bits_per_key}-bits")
            make_store(path, bits_per_key)
            stats = look_for_others(path, bits_per_key)
            line = f"{bits_per_key:8}  {stats.blocks_read / len(ABSENT):20.4f}"
            if bits_per_key > 0:
                measured = stats.filter_false_positives / stats.filters_asked
                probes = lsmkv.BloomFilterPolicy(bits_per_key).probes
                textbook = (1 - math.exp(-probes / bits_per_key)) ** probes
                line += f"  {measured:15.2%}  {textbook:8.2%}"
            print(line)


if __name__ == "__main__":
    main()
