"""Versions that come and go while they are read."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from scale_servers import Bucket

import lsmkv.bulk
import lsmkv.shards
from lsmkv.errors import CorruptionError, NotFoundError
from lsmkv.shards.building.prune import prune

KEYS = [b"key %05d" % number for number in range(4000)]
_log = logging.getLogger(__name__)


def publish(bucket: Bucket, number: int) -> None:
    """Every value names its version."""
    version = lsmkv.bulk.build(
        [(key, b"%b of version %d" % (key, number)) for key in KEYS],
        bucket.url,
        options=bucket.options,
        shards=4,
        block_size=1024,
    )
    assert version.number == number


def version_of(value: bytes | None) -> int:
    assert value is not None
    return int(value.rpartition(b" ")[2])


@contextmanager
def open_set(bucket: Bucket, **settings: int) -> Iterator[lsmkv.shards.Shards]:
    with lsmkv.shards.open(bucket.url, options=bucket.options, **settings) as reader:
        yield reader


def test_an_iterator_goes_on_in_its_version(bucket: Bucket) -> None:
    publish(bucket, 1)
    with open_set(bucket) as reader:
        scan = reader.iterator()
        found = list(itertools.islice(scan, 500))
        publish(bucket, 2)
        assert version_of(reader.get(KEYS[0])) == 1
        assert reader.refresh()
        assert not reader.refresh()
        found += itertools.islice(scan, 1000)  # into a shard that was not open yet
        assert version_of(reader.get(KEYS[0])) == 2
        found += scan
        assert [key for key, _ in found] == KEYS
        assert {version_of(value) for _, value in found} == {1}
        assert {version_of(value) for _, value in reader} == {2}
        assert reader.refresh(version=1)
        assert {version_of(value) for _, value in reader} == {1}


def test_threads_read_one_version_after_the_other(bucket: Bucket) -> None:
    last = 4
    publish(bucket, 1)
    ended = threading.Event()

    def read(reader: lsmkv.shards.Shards, seed: int) -> list[int]:
        versions = []
        for key in itertools.cycle(KEYS[seed::97]):
            versions.append(version_of(reader.get(key)))
            scanned = {version_of(value) for _, value in reader.iterator(prefix=key[:-2])}
            assert len(scanned) == 1, "an iterator has pairs of two versions"
            versions += scanned
            if ended.is_set():
                return versions
        raise AssertionError

    with open_set(bucket) as reader, ThreadPoolExecutor(4) as threads:
        running = [threads.submit(read, reader, seed) for seed in range(4)]
        try:
            for number in range(2, last + 1):
                publish(bucket, number)
                assert reader.refresh()
        finally:
            ended.set()
        for thread in running:
            versions = thread.result()
            assert versions == sorted(versions)
            assert set(versions) <= set(range(1, last + 1))
        assert version_of(reader.get(KEYS[0])) == last


def test_a_version_pruned_under_a_reader_is_a_clear_error(bucket: Bucket) -> None:
    publish(bucket, 1)
    with open_set(bucket) as reader:
        assert version_of(reader.get(KEYS[0])) == 1
        publish(bucket, 2)
        publish(bucket, 3)
        with bucket.open() as objects:
            assert prune(objects, keep=1, grace=0).versions == (1, 2)
        with pytest.raises(CorruptionError, match="missing") as caught:
            list(reader)
        _log.info("a pruned version: %s", caught.value)
        assert reader.document.shards[0].path in str(caught.value)
        with pytest.raises(CorruptionError, match="missing"):
            reader.get(KEYS[-1])
        assert reader.refresh()
        assert {version_of(value) for _, value in reader} == {3}
        with pytest.raises(NotFoundError, match="there is no version 1"):
            reader.refresh(version=1)
        assert reader.version == 3
    with pytest.raises(NotFoundError, match="there is no version 2"), open_set(bucket, version=2):
        pass
