"""Publishers that race for a number, and publishers that are killed."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fault_proxy import Cut, FaultProxy, LostReply, Status
from scale_data import check_complete, contents, made_parts, named_objects
from scale_servers import Bucket
from scale_sizes import PUBLISHERS, RACES
from tethered import Tethered
from waiting import wait_until

import lsmkv.bulk
import lsmkv.shards
from lsmkv.shards.building.prune import prune
from lsmkv.shards.versions import read_version

PROCESSES = 2
THREADS = 3
PARTS, PAIRS = 4, 1000
_TOGETHER = 20
"""Of races and of kills in one test, which has to end within minutes."""
_log = logging.getLogger(__name__)

# A publisher for each thread: all publish what the version in force has, when a line says so.
# The line is the number of that version, or -1: then no publisher asks what is in force.
_RACER = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from lsmkv.shards.building.publish import publish
from lsmkv.shards.remote.objects.open import open_objects
from lsmkv.errors import ConflictError
from lsmkv.shards.versions import read_version

url, options, count = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
stores = [open_objects(url, options=options) for _ in range(count)]
draft = read_version(stores[0], 1)

def race(objects, after):
    try:
        version = publish(objects, draft, after=None if after < 0 else after)
    except ConflictError:
        return None
    return version.number, version.nonce

with ThreadPoolExecutor(count) as threads:
    print("ready", flush=True)
    for line in sys.stdin:
        after = int(line)
        found = threads.map(race, stores, [after] * count)
        print(json.dumps(list(found)), flush=True)
"""

_BUILDER = """
import json, sys
import lsmkv.bulk
from scale_data import made_parts

url, options = sys.argv[1], json.loads(sys.argv[2])
lsmkv.bulk.build(made_parts(%d, %d), url, options=options, shards=3, table_bytes=65536)
print("published", flush=True)
"""


@pytest.fixture
def racers(bucket: Bucket, tmp_path: Path) -> Iterator[Racers]:
    build(bucket)
    with ExitStack() as stack:
        yield Racers(bucket, tmp_path, stack)


def build(bucket: Bucket) -> None:
    lsmkv.bulk.build(
        made_parts(PARTS, PAIRS), bucket.url, options=bucket.options, shards=3, table_bytes=65536
    )


class Racers:
    """Processes with some publishers each."""

    def __init__(self, bucket: Bucket, directory: Path, stack: ExitStack) -> None:
        words = (bucket.url, json.dumps(bucket.options), str(THREADS))
        self._children = [
            stack.enter_context(
                Tethered(_RACER, *words, log=directory / f"racer-{at}", is_asked=True)
            )
            for at in range(PROCESSES)
        ]
        for child in self._children:
            assert child.read_line() == "ready"

    def race(self, after: int) -> list[tuple[int, str]]:
        """Let all publish at once; what those that succeeded have published."""
        for child in self._children:
            child.write_line(str(after))
        results = [json.loads(child.read_line()) for child in self._children]
        return [(won[0], won[1]) for result in results for won in result if won is not None]


@pytest.mark.parametrize("first", range(0, RACES, _TOGETHER))
def test_each_number_has_one_winner(
    bucket: Bucket, proxy: FaultProxy, racers: Racers, first: int
) -> None:
    winners = {1: ""}
    faults = [Cut(), LostReply(), Status(409), Status(503)]
    races = range(first, min(first + _TOGETHER, RACES))
    for number in races:
        if number % 2:  # in every other race the network fails
            proxy.fail_randomly(0.1, faults, seed=number, methods=("PUT",))
        newest = max(winners)
        if number % 4 < 2:
            won = racers.race(newest)
            assert [number for number, _ in won] == [newest + 1]
        else:
            won = racers.race(-1)
            assert sorted(number for number, _ in won) == [
                newest + 1 + at for at in range(PROCESSES * THREADS)
            ]
        proxy.heal()
        winners.update(won)
    _log.info("%d races, %d versions, %d faults", len(races), len(winners), proxy.faults)
    with bucket.open() as objects:
        assert check_complete(objects) == sorted(winners)
        for number, nonce in winners.items():
            assert nonce in (read_version(objects, number).nonce, "")


@pytest.mark.parametrize("first", range(0, PUBLISHERS, _TOGETHER))
def test_a_killed_publisher_leaves_the_old_version_or_the_new_one(
    bucket: Bucket, proxy: FaultProxy, tmp_path: Path, first: int
) -> None:
    build(bucket)
    requests = len(proxy.requests)
    with bucket.open() as objects:
        wanted = contents(read_version(objects, 1))
    rng = random.Random(first)
    versions = [1]
    killed = published = orphans = 0
    for number in range(first, min(first + _TOGETHER, PUBLISHERS)):
        proxy.forget()
        # Every other one dies about when it publishes, which is the last request.
        last = requests - rng.randrange(2) if number % 2 else rng.randrange(1, requests)
        with Tethered(
            _BUILDER % (PARTS, PAIRS),
            *(bucket.url, json.dumps(bucket.options)),
            log=tmp_path / "builder",
        ) as builder:
            while builder.is_alive and len(proxy.requests) < last:
                time.sleep(0.001)
            killed += builder.kill()
        wait_until(lambda: proxy.under_way == 0)
        with bucket.open() as objects:
            found = check_complete(objects)
            assert found in (versions, [*versions, versions[-1] + 1])
            published += len(found) - len(versions)
            assert contents(read_version(objects, found[-1])) == wanted
            with lsmkv.shards.open(bucket.url, options=bucket.options) as reader:
                assert sum(1 for _ in reader) == reader.document.pairs
            before = {info.name for info in objects.list("")}
            orphans += len(before - named_objects(objects))
            prune(objects, keep=1, grace=0)
            versions = found[-1:]
            left = {info.name for info in objects.list("")}
            assert left == named_objects(objects)
    assert killed > 0
    _log.info(
        "%d publishers killed, %d had published, %d orphans removed", killed, published, orphans
    )
    build(bucket)
    with bucket.open() as objects:
        assert check_complete(objects) == [*versions, versions[-1] + 1]
