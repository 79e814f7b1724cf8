"""The same input gives the same files, whatever works on it, and whatever the network does."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fault_proxy import Cut, FaultProxy, LostReply, Status, Truncate
from scale_data import check_complete, contents, made_dict, made_parts
from scale_servers import Bucket
from scale_sizes import PAIRS

import lsmkv.bulk
import lsmkv.shards

PARTS = 6
SETTINGS: dict[str, Any] = {
    "shards": 4,
    "table_bytes": 128 * 1024,
    "memory_limit": 1 << 20,  # each part becomes several runs
}
_log = logging.getLogger(__name__)


def longest(key: bytes, values: list[bytes]) -> bytes:
    """A merge function, whose result depends on the order of the values."""
    return b"%d:%b" % (len(values), b"".join(value[:4] for value in values))


@contextmanager
def executor_named(name: str, client: Any) -> Iterator[Executor | None]:
    if name == "dask":
        yield client.get_executor()
    elif name == "inline":
        yield None
    elif name == "threads":
        with ThreadPoolExecutor(3) as threads:
            yield threads
    else:
        with lsmkv.bulk.Workers(int(name)) as workers:
            yield workers


@pytest.mark.parametrize("merge", [None, longest], ids=["last_wins", "merge"])
def test_all_executors_make_the_same_files(bucket: Bucket, client: Any, merge: Any) -> None:
    parts = made_parts(PARTS, PAIRS // PARTS)
    found = {}
    for name in ("inline", "1", "2", "threads", "dask"):
        with executor_named(name, client) as executor:
            version = lsmkv.bulk.build(
                parts,
                bucket.url,
                options=bucket.options,
                executor=executor,
                merge=merge,
                **SETTINGS,
            )
        found[name] = contents(version)
        assert len(version.shards) == SETTINGS["shards"]
        assert len(version.shards[0].files) > 4  # several tables
    assert all(files == found["inline"] for files in found.values()), list(found)
    with bucket.open() as objects:
        assert check_complete(objects) == [1, 2, 3, 4, 5]
        assert objects.list("work/") == []


def test_pairs_from_here_and_a_directory_give_the_same_files(
    bucket: Bucket, client: Any, tmp_path: Path
) -> None:
    pairs = [pair for part in made_parts(2, PAIRS // 4) for pair in part()]
    local = lsmkv.bulk.build(pairs, tmp_path / "set", **SETTINGS)
    remote = lsmkv.bulk.build(
        pairs, bucket.url, options=bucket.options, executor=client.get_executor(), **SETTINGS
    )
    assert contents(local) == contents(remote)
    with lsmkv.shards.open(bucket.url, options=bucket.options) as reader:
        assert list(reader) == list(made_dict(2, PAIRS // 4).items())


def test_a_network_that_fails_changes_no_byte(
    bucket: Bucket, proxy: FaultProxy, client: Any, tmp_path: Path
) -> None:
    parts = made_parts(PARTS, PAIRS // PARTS)
    local = lsmkv.bulk.build(parts, tmp_path / "set", **SETTINGS)
    faults = [Cut(), LostReply(), Status(500), Status(503), Truncate(100)]
    proxy.fail_randomly(0.1, faults, seed=8)
    remote = lsmkv.bulk.build(
        parts, bucket.url, options=bucket.options, executor=client.get_executor(), **SETTINGS
    )
    proxy.heal()
    _log.info("built over %d faults in %d requests", proxy.faults, len(proxy.requests))
    assert proxy.faults > 0
    assert contents(local) == contents(remote)
    with bucket.open() as objects:
        assert check_complete(objects) == [1]
