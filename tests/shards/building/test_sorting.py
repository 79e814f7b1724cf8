"""Sorting a part: runs of bounded size, in order, the same each time."""

from __future__ import annotations

import pickle
import random
import tracemalloc
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lsmkv.shards.building.place import Place
from lsmkv.shards.building.runs import Run, RunReader
from lsmkv.shards.building.sorting import SortTask, sort_part
from lsmkv.shards.building.sources.part import PackedPart

Pairs = list[tuple[bytes, bytes]]
MIB = 1024 * 1024


def some(count: int, keys: int) -> Pairs:
    rng = random.Random(count)
    return [(b"%06d" % rng.randrange(keys), b"%d" % n) for n in range(count)]


def read(place: Place, run: Run) -> Pairs:
    with place.open() as objects:
        chunks = RunReader(objects, run, b"", None, 1 << 20).chunks()
        return [pair for keys, values in chunks for pair in zip(keys, values, strict=True)]


def task(tmp_path: Path, pairs: Pairs, limit: int, keep_all: bool) -> SortTask:
    part = PackedPart.pack(pairs, "part")
    made = SortTask(part, 3, Place(str(tmp_path)), limit, keep_all)
    return pickle.loads(pickle.dumps(made))  # type: ignore[no-any-return]


@pytest.mark.parametrize("limit", [MIB, 64 * MIB])
def test_the_last_pair_of_a_key_wins(tmp_path: Path, limit: int) -> None:
    pairs = some(30_000, 5000)
    work = task(tmp_path, pairs, limit, False)
    runs = sort_part(work)
    assert (len(runs) > 3) == (limit == MIB)
    latest: dict[bytes, bytes] = {}
    for run in runs:
        found = read(work.work, run)
        assert [key for key, _ in found] == sorted(dict(found))
        assert (run.first, run.last, run.pairs) == (found[0][0], found[-1][0], len(found))
        latest.update(found)
    assert latest == dict(pairs)


@pytest.mark.parametrize("limit", [MIB, 64 * MIB])
def test_all_pairs_are_kept_for_a_merge(tmp_path: Path, limit: int) -> None:
    pairs = some(20_000, 50)
    work = task(tmp_path, pairs, limit, True)
    found = [pair for run in sort_part(work) for pair in read(work.work, run)]
    assert len(found) == len(pairs)
    for key in {key for key, _ in pairs}:
        assert [v for k, v in found if k == key] == [v for k, v in pairs if k == key]


def test_an_attempt_meets_no_file_of_another(tmp_path: Path) -> None:
    work = task(tmp_path, some(30_000, 5000), MIB, False)
    first, second = sort_part(work), sort_part(work)
    assert [run._replace(name="") for run in first] == [run._replace(name="") for run in second]
    assert not {run.name for run in first} & {run.name for run in second}
    for one, other in zip(first, second, strict=True):
        assert (tmp_path / one.name).read_bytes() == (tmp_path / other.name).read_bytes()


def test_an_empty_part_makes_no_run(tmp_path: Path) -> None:
    assert sort_part(task(tmp_path, [], MIB, False)) == []


@dataclass
class Made:
    """A part of a program's own, which need not return an iterator."""

    count: int
    value_size: int
    as_list: bool = False
    label: str = "made"
    size: int | None = None

    def pairs(self) -> Iterable[tuple[bytes, bytes]]:
        pairs = ((b"%06d" % n, random.randbytes(self.value_size)) for n in range(self.count))
        return list(pairs) if self.as_list else pairs


@pytest.mark.parametrize(("count", "value_size"), [(60_000, 100), (6000, 5000), (40, 1_000_000)])
def test_memory_is_bounded(tmp_path: Path, count: int, value_size: int) -> None:
    made: Any = Made(count, value_size)
    tracemalloc.start()
    try:
        runs = sort_part(SortTask(made, 0, Place(str(tmp_path)), 8 * MIB, False))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(run.pairs for run in runs) == count
    assert peak < 1.5 * 8 * MIB


def test_a_part_may_return_a_list_of_pairs(tmp_path: Path) -> None:
    made: Any = Made(2000, 600, as_list=True)
    runs = sort_part(SortTask(made, 0, Place(str(tmp_path)), MIB, False))
    assert len(runs) > 1
    assert sum(run.pairs for run in runs) == 2000
