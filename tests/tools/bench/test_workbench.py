"""lsmkv.tools.bench.workbench: the stores of an engine, and the loops that are clocked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from benches import SETTINGS, bench_of

from lsmkv.tools.bench import loops
from lsmkv.tools.bench.engines import OWN
from lsmkv.tools.bench.settings import Shape


def test_shares_have_all_items_and_one_clock(tmp_path: Path) -> None:
    bench = bench_of(OWN, tmp_path, replace(SETTINGS, num=5, threads=3, histogram=True))
    shares: list[list[int]] = []

    def make(share: Sequence[int], record: loops.Record | None) -> loops.Loop:
        shares.append(list(share))
        assert record is not None
        record(len(share))
        return lambda: sum(share)

    with bench.fresh() as store:
        clocked = bench.clock_shares(store, range(5), make)
        alone = bench.clock_shares(store, [7], make)
    assert sorted(shares) == [[0, 3], [1, 4], [2], [7]]
    assert (clocked.found, alone.found) == (10, 7)
    assert sorted(clocked.latencies or ()) == [1, 2, 2]
    assert list(tmp_path.iterdir()) == []


def test_settling_is_timed_apart(tmp_path: Path) -> None:
    bench = bench_of(OWN, tmp_path, replace(SETTINGS, num=50))
    more = bench.fill_loaded().more
    assert more["settle_seconds"] > 0
    assert sum(more["levels"]) <= 1
    with bench.loaded() as store:
        assert bench.sample(store, range(50), 0) == ({"right": 50}, {"right": 50})
        assert bench.sample(store, range(50), 1) == ({"right": 0}, {"right": 50})


@pytest.mark.parametrize(
    ("shape", "levels"),
    [
        (Shape.WRITTEN, [0, 1, 1, 0, 0, 0, 0]),
        (Shape.DEEP, [1, 1, 1, 0, 0, 0, 0]),
        (Shape.COMPACTED, [0, 0, 1, 0, 0, 0, 0]),
    ],
)
def test_a_store_has_the_shape_that_is_asked_for(
    tmp_path: Path, shape: Shape, levels: list[int]
) -> None:
    """Each time that it is opened, with all entries."""
    bench = bench_of(OWN, tmp_path, replace(SETTINGS, num=400, shape=shape))
    for _ in range(2):
        with bench.loaded() as store:
            assert store.levels() == levels
            assert bench.sample(store, range(400), 0) == ({"right": 400}, {"right": 400})
        assert len(list(tmp_path.iterdir())) == 1
