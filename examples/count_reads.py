"""The cost of a miss, with filters and without: counted by lsmkv, and by strace if you like.

    python examples/count_reads.py {10|0} [keys] [lookups]

The first argument is the Bloom filter's bits per key; 0 means no filter.  The block cache is off;
otherwise all blocks would soon be in it.  The store is loaded, closed, and reopened, and then
absent keys are looked up.  The last line says how many ``pread`` calls that took.  To see that the
kernel counts the same:

    strace -f -y -e trace=pread64 -o reads.txt python examples/count_reads.py 10
    grep -c 'pread64([0-9]*<[^>]*\\.ldb>' reads.txt

The load runs no compaction and reads no table, so every read of a table is caused by a lookup.
"""

from __future__ import annotations

import hashlib
import random
import sys
import tempfile
from pathlib import Path

import lsmkv


def key(number: int) -> bytes:
    """Sixteen hexadecimal digits without a pattern, like user ids or hashes."""
    return hashlib.sha256(b"%d" % number).hexdigest()[:16].encode()


def main(bits: int, keys: int, lookups: int, path: Path) -> None:
    """Load, reopen, look up, count."""
    # One table, made by one flush: no compaction adds reads.
    with lsmkv.DB(
        path, create_if_missing=True, bloom_filter_bits=bits, write_buffer_size=64 << 20
    ) as db:
        for number in range(keys):
            db.put(key(number), b"value %d" % number)
        db.flush()
    with lsmkv.DB(path, bloom_filter_bits=bits, lru_cache_size=0) as db:
        chance = random.Random(1)
        for _ in range(lookups):
            assert db.get(key(keys + chance.randrange(keys))) is None
        stats = db.stats()
    print(f"{bits} bits a key, {keys:,} keys, {lookups:,} lookups of absent keys")
    print(f"filters asked {stats.filters_asked}, of which said no {stats.filter_negatives}")
    print(f"data blocks read {stats.blocks_read}: {stats.blocks_read / lookups:.4f} a lookup")
    print(
        f"preads of tables: {stats.blocks_read + stats.metadata_reads + stats.identity_check_reads}"
        f" ({stats.blocks_read} data blocks by lookups; on opening tables {stats.metadata_reads}"
        f" of metadata, {stats.identity_check_reads} to check which table it is)"
    )


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    bits, keys, lookups = (arguments + [10, 50_000, 5_000][len(arguments) :])[:3]
    with tempfile.TemporaryDirectory() as directory:
        main(bits, keys, lookups, Path(directory) / "db")
