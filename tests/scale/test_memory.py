"""What a reader takes in memory: its filters and indexes, and not much else."""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from fault_proxy import FaultProxy
from processes import WITH_HELPERS
from scale_servers import Bucket, new_bucket
from scale_sizes import READERS_PAIRS

import lsmkv.bulk
from lsmkv.engine.filter.bloom import BloomFilterPolicy

FILTER_BYTES = 32 << 20
"""Of all shards: enough to stand out from a process's other use of memory."""
SHARDS = 8
PARTS = 8
VALUE = b"a value of some bytes"
BLOCK_BYTES = 32 << 10
INDEX_ENTRY = 160
"""Bytes of memory for each block: two keys of a few bytes, which are objects, and five numbers or
references."""
TUNED = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
"""With these glibc gives back what the opening of shards took for a moment."""
_log = logging.getLogger(__name__)

# The first shard pays for modules, threads and connections; the growth is that of the others.
_READER = """
import gc, itertools, json, random, sys
import lsmkv.shards

def resident():
    gc.collect()
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024

url, options = sys.argv[1], json.loads(sys.argv[2])
with lsmkv.shards.open(url, options=options, lru_cache_size=0) as reader:
    rng = random.Random(99_999)  # keys that are not there
    first = list(itertools.islice(reader.iterator(include_value=False), 1000))
    assert len(reader.multi_get(first)) == 1000
    before, metadata = resident(), reader.stats().metadata_bytes
    reader.warm()
    for _ in range(3000):
        assert reader.get(rng.randbytes(16)) is None
    stats = reader.stats()
    print(json.dumps({
        "growth": resident() - before,
        "metadata": stats.metadata_bytes - metadata,
        "opened": stats.shards_open - 1,
        "requests": stats.requests.total.requests,
    }))
"""


def random_pairs(number: int, count: int) -> Iterable[tuple[bytes, bytes]]:
    rng = random.Random(number)
    for _ in range(count):
        yield rng.randbytes(16), VALUE


@pytest.fixture(scope="module")
def large(_proxy: FaultProxy) -> Bucket:
    """A set whose filters are those of a larger one: they have more bits a key."""
    _proxy.heal()
    bucket = new_bucket(_proxy)
    bits = max(10, 8 * FILTER_BYTES // READERS_PAIRS)
    parts = [partial(random_pairs, number, READERS_PAIRS // PARTS) for number in range(PARTS)]
    with lsmkv.bulk.Workers(2) as workers:
        version = lsmkv.bulk.build(
            parts,
            bucket.url,
            options=bucket.options,
            shards=SHARDS,
            executor=workers,
            filter_policy=BloomFilterPolicy(bits),
            block_size=BLOCK_BYTES,
        )
    _log.info("%d pairs, %d bytes, %d bits a key", version.pairs, version.bytes, bits)
    return bucket


def measured(bucket: Bucket, settings: dict[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-P", "-c", _READER, bucket.url, json.dumps(bucket.options)]
    environment = {**WITH_HELPERS, **settings}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_a_reader_is_that_of_its_filters_and_indexes(large: Bucket) -> None:
    blocks = READERS_PAIRS * (16 + len(VALUE)) / BLOCK_BYTES
    ratios = {}
    for name, settings in (("tuned", TUNED), ("default", {})):
        found = measured(large, settings)
        assert found["opened"] == SHARDS - 1
        share = found["opened"] / SHARDS
        expected = found["metadata"] + INDEX_ENTRY * blocks * share
        assert found["metadata"] > 0.8 * FILTER_BYTES * share
        ratios[name] = found["growth"] / expected
    _log.info(
        "memory of a reader: %.3f of the arithmetic (%.2f with malloc's own settings)",
        *(ratios["tuned"], ratios["default"]),
    )
    assert 0.9 < ratios["tuned"] < 1.1
