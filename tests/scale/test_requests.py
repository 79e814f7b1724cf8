"""What reads cost in requests, as those count them who answer: the proxy, and snailmail."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fault_proxy import FaultProxy
from s3_servers import s3_options
from scale_data import absent_keys, made_dict, made_parts
from scale_servers import Bucket, new_bucket, object_requests
from scale_sizes import PAIRS
from tethered import Tethered

import lsmkv.bulk
import lsmkv.shards

PARTS = 4
SETTINGS: dict[str, Any] = {"shards": 4, "table_bytes": 512 * 1024, "block_size": 1024}
"""Of small data many blocks, so that random keys are mostly of blocks that were not read."""
_log = logging.getLogger(__name__)

_READER = """
import hashlib, json, sys
import lsmkv.shards
url, options, cache, keys = sys.argv[1], *map(json.loads, sys.argv[2:5])
digest = hashlib.sha256()
with lsmkv.shards.open(url, version=1, options=options, cache_dir=cache) as reader:
    print("open", flush=True)
    sys.stdin.readline()
    for key in keys:
        digest.update(repr(reader.get(bytes.fromhex(key))).encode())
    print(digest.hexdigest(), reader.stats().requests.total.requests, flush=True)
"""


class Counted(NamedTuple):
    """A set in a store that counts its requests."""

    bucket: Bucket
    count: Callable[[], int]
    """Requests since ``forget``."""
    most_at_once: Callable[[], int]
    forget: Callable[[], None]

    def open(self, **settings: Any) -> lsmkv.shards.Shards:
        return lsmkv.shards.open(self.bucket.url, options=self.bucket.options, **settings)


def build(bucket: Bucket) -> None:
    parts = made_parts(PARTS, PAIRS // PARTS)
    lsmkv.bulk.build(parts, bucket.url, options=bucket.options, **SETTINGS)


@pytest.fixture(scope="module")
def pairs() -> dict[bytes, bytes]:
    return made_dict(PARTS, PAIRS // PARTS)


@pytest.fixture(scope="module", params=["proxy", "snailmail"])
def counted(request: pytest.FixtureRequest, _proxy: FaultProxy) -> Iterator[Counted]:
    """Snailmail's store lets each request take 5 ms."""
    if request.param == "proxy":
        _proxy.heal()
        bucket = new_bucket(_proxy)
        build(bucket)
        yield Counted(
            bucket, lambda: len(_proxy.requests), lambda: _proxy.most_at_once, _proxy.forget
        )
        return
    import snailmail

    with snailmail.ObjectStore(bucket="counted", latency=snailmail.Fixed(5)) as store:
        bucket = Bucket("s3://counted/set", s3_options(store.endpoint_url))
        build(bucket)
        yield Counted(
            bucket,
            lambda: int(store.stats()["n_requests"]),
            lambda: int(store.stats()["max_in_flight"]),
            store.reset_counts,
        )


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="snailmail")


def test_a_shard_opens_with_at_most_three_requests(
    counted: Counted, pairs: dict[bytes, bytes]
) -> None:
    counted.forget()
    with counted.open() as reader:
        assert counted.count() == 2  # a listing, and the version document
        for at, shard in enumerate(reader.document.shards):
            before = counted.count()
            assert reader.may_contain(next(key for key in pairs if key >= shard.first))
            opened = counted.count() - before
            assert 1 <= opened <= 3, f"shard {at}"
            assert reader.stats().shards_open == at + 1
        assert reader.stats().requests.total.requests == counted.count()
        _log.info("%d requests to open a shard", opened)
    counted.forget()
    with counted.open(version=1) as reader:
        assert counted.count() == 1


def test_absent_keys_cost_hardly_a_request(counted: Counted, pairs: dict[bytes, bytes]) -> None:
    absent = absent_keys(pairs, 5000, seed=10)
    with counted.open(lru_cache_size=0) as reader:
        reader.warm()
        counted.forget()
        assert all(reader.get(key) is None for key in absent)
        each = counted.count() / len(absent)
        counted.forget()
        assert reader.multi_get(absent) == [None] * len(absent)
        assert counted.count() / len(absent) <= 0.015
    _log.info("%.4f requests for an absent key", each)
    assert each <= 0.015


def test_a_cold_hit_costs_one_request(counted: Counted, pairs: dict[bytes, bytes]) -> None:
    keys = random.Random(11).sample(list(pairs), 500)
    with counted.open(lru_cache_size=0) as reader:
        reader.warm()
        counted.forget()
        assert [reader.get(key) for key in keys] == [pairs[key] for key in keys]
        each = counted.count() / len(keys)
        counted.forget()
        assert reader.multi_get(keys) == [pairs[key] for key in keys]
        together = counted.count() / len(keys)
        most = counted.most_at_once()
    _log.info("%.3f requests for a cold hit, %.3f of many, %d at once", each, together, most)
    assert 0.9 < each <= 1
    assert together <= each
    assert most > 1


def test_a_block_in_memory_costs_no_request(counted: Counted, pairs: dict[bytes, bytes]) -> None:
    keys = random.Random(12).sample(list(pairs), 200)
    with counted.open(lru_cache_size=64 << 20) as reader:
        reader.multi_get(keys)
        counted.forget()
        assert reader.multi_get(keys) == [pairs[key] for key in keys]
        assert [reader.get(key) for key in keys] == [pairs[key] for key in keys]
        assert counted.count() == 0


def test_a_scan_reads_ahead(counted: Counted, pairs: dict[bytes, bytes]) -> None:
    with counted.open(lru_cache_size=0) as reader:
        reader.warm()
        counted.forget()
        assert list(reader) == list(pairs.items())
        blocks = reader.stats().blocks_read
        _log.info("%d requests for a scan of %d blocks", counted.count(), blocks)
        assert counted.count() <= blocks


def test_a_reopened_working_set_costs_no_request(
    counted: Counted, pairs: dict[bytes, bytes], tmp_path: Path
) -> None:
    keys = random.Random(13).sample(list(pairs), 300) + absent_keys(pairs, 300, seed=14)
    wanted = [pairs.get(key) for key in keys]
    counts = []
    for _ in range(2):
        counted.forget()
        with counted.open(version=1, cache_dir=tmp_path / "cache") as reader:
            assert counted.count() == 1  # the version document
            assert [reader.get(key) for key in keys] == wanted
            counts.append(counted.count() - 1)
            stats = reader.stats()
        assert stats.cache is not None
    _log.info("%d requests for a working set, %d when it is opened again", *counts)
    assert counts[0] > 50
    assert counts[1] == 0
    assert stats.cache.hits > 0


def test_processes_share_a_cache(proxy: FaultProxy, tmp_path: Path) -> None:
    bucket = new_bucket(proxy)
    build(bucket)
    keys = random.Random(15).sample(list(made_dict(PARTS, PAIRS // PARTS)), 300)
    words = (bucket.url, json.dumps(bucket.options), json.dumps(str(tmp_path / "cache")))
    words += (json.dumps([key.hex() for key in keys]),)

    def readers(count: int) -> list[str]:
        children = [
            Tethered(_READER, *words, log=tmp_path / "log", is_asked=True) for _ in range(count)
        ]
        for child in children:
            assert child.read_line() == "open"
        for child in children:
            child.write_line("go")
        lines = [child.read_line() for child in children]
        assert [child.wait() for child in children] == [0] * count, (tmp_path / "log").read_text()
        return lines

    cold = [line.split() for line in readers(2)]
    (third,) = [line.split() for line in readers(1)]
    proxy.forget()
    (fourth,) = [line.split() for line in readers(1)]
    assert {digest for digest, _ in (*cold, third, fourth)} == {cold[0][0]}
    # A page is not kept while another writer is slow; so the third may have some to fetch.
    assert int(third[1]) < int(cold[0][1]) / 2
    assert object_requests(proxy) == ["versions/00000001.json"]
    assert fourth[1] == "1"
    _log.info(
        "processes with one cache: two at once %s and %s requests, then %s, then %s",
        *(requests for _, requests in (*cold, third, fourth)),
    )
