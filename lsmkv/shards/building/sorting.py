"""The first kind of task in a bulk build: sorts one part into runs.

A run is as large as the memory limit allows; a larger part becomes several.  If a key occurs twice,
the later pair wins, or a merge function gets both: then the runs keep both, in order.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from lsmkv.shards.building.place import Place
from lsmkv.shards.building.runs import Run, encode_run
from lsmkv.shards.building.sources.part import Part
from lsmkv.shards.remote.objects.base import ObjectStore

_MOST_AT_ONCE = 512
"""Pairs that are taken from a part before their bytes are counted."""
_SHARE = 64
"""With large pairs, the memory is checked at least this many times per limit."""
_COPIES = 2
"""A pair's bytes are in memory twice: as objects, and in the run."""
_OVERHEAD = 190
"""Memory overhead of a pair in bytes: two objects, and their slot in a dict."""


class SortTask(NamedTuple):
    """The task of a worker: a part to sort."""

    part: Part
    number: int
    """The index of the part in the input."""
    work: Place
    """The place to store the runs."""
    memory_limit: int
    keep_all: bool
    """True to keep all pairs of one key, for a merge function."""


def sort_part(task: SortTask) -> list[Run]:
    """Sort a part into runs, in the order of its pairs.

    The names of the runs include the attempt, so a task that runs twice, even concurrently, never
    meets its own files.  The runs' content is the same each time.
    """
    attempt = secrets.token_hex(4)
    runs: list[Run] = []
    with task.work.open() as objects:
        pairs = iter(task.part.pairs())
        while True:
            name = f"runs/{task.number:06d}-{attempt}-{len(runs):04d}"
            run = _sort_some(task, pairs, objects, name)
            if run is None:
                return runs
            runs.append(run)


def _sort_some(
    task: SortTask, pairs: Iterator[tuple[bytes, bytes]], objects: ObjectStore, name: str
) -> Run | None:
    """Store a run of the next pairs; None if there are none.  Frees its memory afterwards."""
    keys, values = _fill(pairs, task.memory_limit, task.keep_all)
    if not keys:
        return None
    run, data = encode_run(name, keys, values)
    objects.put(name, data)
    return run


def _fill(
    pairs: Iterator[tuple[bytes, bytes]], limit: int, keep_all: bool
) -> tuple[list[bytes], list[bytes]]:
    """The next pairs that fit into memory, sorted."""
    latest: dict[bytes, bytes] = {}
    every: list[tuple[bytes, bytes]] = []
    used = 0
    at_once = 1
    while used < limit:
        some = list(itertools.islice(pairs, at_once))
        if not some:
            break
        if keep_all:
            every += some
        else:
            latest.update(some)
        size = sum(map(len, map(itemgetter(0), some))) + sum(map(len, map(itemgetter(1), some)))
        used += _COPIES * size + len(some) * _OVERHEAD
        at_once = min(2 * at_once, _MOST_AT_ONCE) if size < limit // _SHARE else 1
    if keep_all:
        every.sort(key=itemgetter(0))  # a stable sort: pairs of one key keep their order
        return [key for key, _ in every], [value for _, value in every]
    keys = sorted(latest)
    return keys, list(map(latest.__getitem__, keys))
