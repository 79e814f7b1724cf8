"""Stores that cannot publish are refused, before any work is done; those that can are right."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from s3_servers import s3_options
from scale_data import made_pairs
from scale_servers import Bucket, nanio_server

import lsmkv.bulk
from lsmkv.errors import IOError


class Watched:
    """A part that notes whether it was read."""

    label = "watched"
    size = None

    def __init__(self) -> None:
        self.reads = 0

    def pairs(self) -> Iterable[tuple[bytes, bytes]]:
        self.reads += 1
        return iter(made_pairs(0, 10))


@pytest.fixture(params=["nanio", "ignore", "reject"])
def careless(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bucket]:
    """A store that ignores conditions, or knows none: nanio, or snailmail's quirks."""
    if request.param == "nanio":
        with nanio_server(tmp_path / "nanio", tmp_path / "log") as endpoint:
            yield Bucket("s3://test/set", s3_options(endpoint))
        return
    import snailmail

    quirk = snailmail.StoreBehavior(conditional_writes=request.param)
    with snailmail.ObjectStore(bucket=request.param, behavior=quirk) as store:
        yield Bucket(f"s3://{request.param}/set", s3_options(store.endpoint_url))


def test_a_store_without_conditions_is_refused_before_anything_is_sorted(careless: Bucket) -> None:
    part = Watched()
    with pytest.raises(IOError, match="nothing can be published here") as caught:
        lsmkv.bulk.build([part], careless.url, options=careless.options)
    assert caught.value.errno == errno.ENOTSUP
    assert part.reads == 0
    with careless.open() as objects:
        assert objects.list("") == []
        objects.put("shards/x", b"it is a store, all the same")
        assert objects.get("shards/x") == b"it is a store, all the same"


def test_a_store_with_conditions_is_not_refused(bucket: Bucket) -> None:
    part = Watched()
    assert lsmkv.bulk.build([part], bucket.url, options=bucket.options).number == 1
    assert part.reads == 1


def test_of_puts_at_once_one_succeeds(bucket: Bucket) -> None:
    """What all tests of races rely on, in the server and the proxy before it."""
    callers = 8
    barrier = threading.Barrier(callers)

    def put(objects: Any, name: str, number: int) -> int | None:
        barrier.wait()
        try:
            objects.put_if_absent(name, b"%d" % number)
        except FileExistsError:
            return None
        return number

    with bucket.open() as objects, ThreadPoolExecutor(callers) as threads:
        for round in range(20):
            name = f"versions/race-{round}"
            puts = [threads.submit(put, objects, name, number) for number in range(callers)]
            won = [number for found in puts if (number := found.result()) is not None]
            assert objects.get(name) == b"%d" % won[0]
            assert len(won) == 1
