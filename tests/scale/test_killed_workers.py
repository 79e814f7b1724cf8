"""Workers killed at random moments of a build; ``LSMKV_SCALE_KILLS=50`` for as many as wanted."""

from __future__ import annotations

import logging
import multiprocessing
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from dask_cluster import DaskCluster
from scale_data import check_complete, contents, made_parts, named_objects
from scale_servers import Bucket
from scale_sizes import KILLS, PAIRS

import lsmkv.bulk
import lsmkv.shards
from lsmkv.shards.building.prune import prune

PARTS = 16
SETTINGS: dict[str, Any] = {"shards": 8, "table_bytes": 64 * 1024, "attempts": 10}
_AT_ONCE = 3
"""Kills of one build."""
_TOGETHER = 10
"""Kills of one test, which has to end within minutes."""
_log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def undisturbed(_asked_for: None, tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """What a build is without kills."""
    directory = tmp_path_factory.mktemp("undisturbed")
    return contents(lsmkv.bulk.build(made_parts(PARTS, PAIRS // PARTS), directory, **SETTINGS))


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="lsmkv")  # it tells of each task that is run again


class Killer:
    """A thread that kills at random moments while a build runs.

    The first kill comes early, so that every build has one; each waits until the one before it has
    been made good.
    """

    def __init__(self, kill: Callable[[random.Random], bool], most: int, seed: int) -> None:
        self.kills = 0
        self._kill = kill
        self._most = most
        self._rng = random.Random(seed)
        self._ended = threading.Event()
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self) -> None:
        try:
            while self.kills < self._most:
                if self._ended.wait(self._rng.uniform(0, 1.5)):
                    return
                self.kills += self._kill(self._rng)
        except BaseException as error:
            self._errors.append(error)


def build_under_kills(
    bucket: Bucket,
    executor: Any,
    kill: Callable[[random.Random], bool],
    undisturbed: list[object],
    first: int,
) -> None:
    """Builds until as many workers were killed as are asked for; each is like any other."""
    wanted = min(_TOGETHER, KILLS - first)
    killed = builds = 0
    while killed < wanted:
        with Killer(kill, min(_AT_ONCE, wanted - killed), seed=first + builds) as killer:
            version = lsmkv.bulk.build(
                made_parts(PARTS, PAIRS // PARTS),
                bucket.url,
                options=bucket.options,
                executor=executor,
                **SETTINGS,
            )
        builds += 1
        killed += killer.kills
        assert contents(version) == undisturbed
        assert version.number == builds
        _log.info("build %d: %d workers killed", builds, killer.kills)
    with bucket.open() as objects:
        assert check_complete(objects) == list(range(1, builds + 1))
        left = {info.name for info in objects.list("")} - named_objects(objects)
        # What a killed task has begun stays until it is pruned, and no version names it.
        assert all(name.startswith(("shards/", "work/")) for name in left)
        prune(objects, keep=1, grace=0)
        assert {info.name for info in objects.list("")} == named_objects(objects)
        assert check_complete(objects) == [builds]
    _log.info("%d kills in %d builds, %d orphans", killed, builds, len(left))


@pytest.mark.parametrize("first", range(0, KILLS, _TOGETHER))
def test_killed_workers_of_dask_change_no_byte(
    bucket: Bucket, cluster: DaskCluster, client: Any, undisturbed: list[object], first: int
) -> None:
    def kill(rng: random.Random) -> bool:
        cluster.kill_worker(rng.randrange(len(cluster.workers)))
        return True

    build_under_kills(bucket, client.get_executor(), kill, undisturbed, first)


@pytest.mark.parametrize("first", range(0, KILLS, _TOGETHER))
def test_killed_processes_of_workers_change_no_byte(
    bucket: Bucket, undisturbed: list[object], first: int
) -> None:
    def kill(rng: random.Random) -> bool:
        processes = multiprocessing.active_children()
        if not processes:
            return False
        rng.choice(processes).kill()
        return True

    with lsmkv.bulk.Workers(2) as workers:
        build_under_kills(bucket, workers, kill, undisturbed, first)
    assert multiprocessing.active_children() == []
