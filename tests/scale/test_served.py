"""A set that Dask has built in S3, read back."""

from __future__ import annotations

import itertools
import logging
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fault_proxy import FaultProxy
from scale_data import PREFIXES, absent_keys, check_complete, made_dict, made_parts
from scale_servers import Bucket, new_bucket
from scale_sizes import PAIRS

import lsmkv.bulk
import lsmkv.shards
from lsmkv.shards.version import VersionDocument

PARTS = 8
_log = logging.getLogger(__name__)


class Served(NamedTuple):
    """A published set, and what it has to hold."""

    bucket: Bucket
    version: VersionDocument
    pairs: dict[bytes, bytes]


@pytest.fixture(scope="module")
def served(_proxy: FaultProxy, client: Any) -> Served:
    bucket = new_bucket(_proxy)
    began = time.monotonic()
    version = lsmkv.bulk.build(
        made_parts(PARTS, PAIRS // PARTS),
        bucket.url,
        options=bucket.options,
        shards=5,
        executor=client.get_executor(),
        table_bytes=256 * 1024,
    )
    seconds = time.monotonic() - began
    _log.info("%d pairs built by Dask in %.1f s: %d bytes", version.pairs, seconds, version.bytes)
    return Served(bucket, version, made_dict(PARTS, PAIRS // PARTS))


@pytest.fixture
def reader(served: Served) -> Iterator[lsmkv.shards.Shards]:
    bucket = served.bucket
    with lsmkv.shards.open(bucket.url, options=bucket.options) as reader:
        yield reader


def test_version_is_complete_and_nothing_else_is_left(served: Served) -> None:
    with served.bucket.open() as objects:
        assert check_complete(objects) == [served.version.number] == [1]
        names = {info.name for info in objects.list("")}
    named = {name for name, _ in served.version.objects()}
    assert names == named | {"versions/00000001.json"}
    assert served.version.pairs == len(served.pairs)
    assert len(served.version.shards) == 5


def test_every_get_is_that_of_a_dict(served: Served, reader: lsmkv.shards.Shards) -> None:
    keys = random.Random(1).sample(list(served.pairs), min(2000, len(served.pairs)))
    keys += absent_keys(served.pairs, 500, seed=2)
    for key in keys:
        assert reader.get(key) == served.pairs.get(key)
        assert reader.get(key, b"none") == served.pairs.get(key, b"none")
        assert (key in reader) == (key in served.pairs)


def test_multi_get_is_that_of_a_dict(served: Served, reader: lsmkv.shards.Shards) -> None:
    keys = [*served.pairs, *absent_keys(served.pairs, 1000, seed=3)]
    random.Random(4).shuffle(keys)
    for first in range(0, len(keys), 1500):
        some = keys[first : first + 1500]
        assert reader.multi_get(some) == [served.pairs.get(key) for key in some]


def test_scans_go_both_ways(served: Served, reader: lsmkv.shards.Shards) -> None:
    everything = list(served.pairs.items())
    assert list(reader) == everything
    assert list(reader.iterator(reverse=True)) == everything[::-1]
    assert list(reader.iterator(include_value=False)) == list(served.pairs)


@pytest.mark.parametrize("reverse", [False, True])
def test_ranges_and_prefixes_are_those_of_a_dict(
    served: Served, reader: lsmkv.shards.Shards, reverse: bool
) -> None:
    step = -1 if reverse else 1
    everything = list(served.pairs.items())
    for prefix in PREFIXES:
        wanted = [pair for pair in everything if pair[0].startswith(prefix)]
        assert list(reader.iterator(prefix=prefix, reverse=reverse)) == wanted[::step]
    rng = random.Random(5)
    for _ in range(30):
        start, stop = sorted(rng.sample(list(served.pairs), 2))
        wanted = [pair for pair in everything if start <= pair[0] < stop]
        found = reader.iterator(start=start, stop=stop, reverse=reverse)
        assert list(found) == wanted[::step]


def test_seeks_cross_shards_both_ways(served: Served, reader: lsmkv.shards.Shards) -> None:
    keys = list(served.pairs)
    rng = random.Random(6)
    firsts = [shard.first for shard in served.version.shards[1:]]
    with reader.iterator(include_value=False) as found:
        for target in [*firsts, *rng.sample(keys, 50), *absent_keys(served.pairs, 50, seed=7)]:
            found.seek(target)
            after = [key for key in keys if key >= target][:5]
            before = [key for key in keys if key < target][-5:]
            assert list(itertools.islice(found, len(after))) == after
            found.seek(target)
            assert [found.prev() for _ in before] == before[::-1]


def test_plyvel_reads_every_shard(served: Served, tmp_path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    found: list[tuple[bytes, bytes]] = []
    with served.bucket.open() as objects:
        for number, shard in enumerate(served.version.shards):
            directory = tmp_path / str(number)
            directory.mkdir()
            for name, file in shard.objects():
                (directory / file.name).write_bytes(objects.get(name))
            db = plyvel.DB(str(directory), create_if_missing=False, paranoid_checks=True)
            pairs = list(db.iterator(verify_checksums=True))
            db.close()
            assert len(pairs) == shard.pairs
            assert all(key >= shard.first for key, _ in pairs)
            found += pairs
    assert found == list(served.pairs.items())
