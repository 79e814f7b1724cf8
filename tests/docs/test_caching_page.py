"""docs/guides/caching.md: the scripts that measure full caches and hit ratios for its tables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import cache_hits
import full_cache
import plots
import pytest
from full_cache import OWN, PEER, Figures, Look, Row

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
LOOKS = (Look(0.5, 0.5, 0.6, 0.7), Look(1.0, 1.0, 1.1, 1.2), Look(1.5, 1.5, 1.0, 1.0))


def figures(**changed: Any) -> Figures:
    """Figures of a cache that reaches every aim beside one with the same figures but for speed."""
    known: dict[str, Any] = {
        "milliseconds": 1.0,
        "processor": 0.5,
        "worst": 90.0,
        "gets_during": 20_000.0,
        "gets_after": 40_000.0,
        "found": 1.0,
        "written": 2.9,
        "looks": [Look(1.0, 1.0, 1.1, 1.14)],
    }
    return Figures(**known | changed)


SLOW = figures(milliseconds=4.0, gets_during=10_000.0, gets_after=20_000.0)


def test_a_row_for_each_cache_and_the_ratio() -> None:
    rows = list(full_cache.rows_of("8k", {OWN: figures(looks=LOOKS), PEER: SLOW}))
    assert [row[:3] for row in rows] == [
        ["8k", "lsmkv", "1"],
        ["8k", "diskcache", "4"],
        ["8k", "ratio", "0.25"],
    ]
    assert rows[0][3:] == ["0.5", "90", "20,000", "40,000", "1.1", "1.2", "2.9"]
    assert {len(row) for row in rows} == {2 + len(full_cache.COLUMNS)}
    assert len(list(full_cache.rows_of("8k", {OWN: SLOW}))) == 1


def test_a_cache_that_reaches_all_aims_misses_none() -> None:
    for size in (100, 8_000):
        assert full_cache.missed(Row((size,)), {OWN: figures(), PEER: SLOW}) == []


@pytest.mark.parametrize(
    ("size", "changed", "aim"),
    [
        (8_000, {"milliseconds": 4.4}, "set / diskcache: 1.1, aim at most 1"),
        (100, {"milliseconds": 1.2}, "set / diskcache: 0.3, aim at most 0.25"),
        (8_000, {"worst": 101.0}, "worst set, ms: 101, aim at most 100"),
        (8_000, {"gets_during": 19_000.0}, "Gets/s / diskcache: 1.9, aim at least 2"),
        (8_000, {"gets_after": 19_000.0}, "Gets/s after / diskcache: 0.95, aim at least 2"),
        (8_000, {"looks": LOOKS}, "directory / limit: 1.2, aim at most 1.15"),
        (8_000, {"written": 5.5}, "written / stored: 5.5, aim at most 3"),
    ],
)
def test_an_aim_that_is_missed(size: int, changed: dict[str, Any], aim: str) -> None:
    assert full_cache.missed(Row((size,)), {OWN: figures(**changed), PEER: SLOW}) == [aim]


def test_the_space_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "one").write_bytes(bytes(5_000))
    (tmp_path / "below" / "two").write_bytes(bytes(100))
    size, blocks = full_cache.space_of(str(tmp_path))
    assert size == 5_100
    assert blocks % 512 == 0


@LINUX
def test_what_a_child_in_a_group_of_its_own_writes_and_takes_is_counted(tmp_path: Path) -> None:
    child = (
        f"import os; file = open({str(tmp_path / 'file')!r}, 'wb'); file.write(bytes(1 << 20))\n"
        "file.flush(); os.fsync(file.fileno())\n"
        "while sum(os.times()[:2]) < 0.2: pass\n"
        "print('done', flush=True); input()"
    )
    parent = (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {child!r}], process_group=0)\n"
        "print('waited for', flush=True); input()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", parent], stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in (b"done\n", b"waited for\n"):
            assert process.stdout.readline() == line
            used = full_cache.used_by(full_cache.tree([process.pid]))
            assert used.processor >= 0.2
            # A file system in memory counts nothing.
            assert used.written == 0 or used.written >= 1 << 20
            process.stdin.write(b"\n")
            process.stdin.flush()


@LINUX
def test_a_cache_is_stopped_with_its_children_until_its_turn(tmp_path: Path) -> None:
    cache = full_cache.Running(OWN, str(tmp_path), 1 << 18, (500,), 2)
    try:
        for _ in range(3):
            states = [fields[0] for fields in full_cache.tree(cache.pids).values()]
            assert len(states) >= 2
            assert set(states) <= set("TZ")
            cache.turn(1_000, 4, True)
    finally:
        everything = full_cache.tree(cache.pids)
        cache.kill()
    assert len(everything) > 2, "small values are compacted in other processes"
    for pid in everything:
        assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return full_cache.tree([pid])[pid][0] != "Z"


@LINUX
@pytest.mark.parametrize("processes", [1, 2])
def test_a_measurement_of_a_small_cache(tmp_path: Path, processes: int) -> None:
    row = Row((1_000, 3_000), 1 << 18)
    found = full_cache.measure(row, processes, str(tmp_path), [OWN], 8, 4)
    one = found[OWN]
    assert len(one.looks) == 8
    assert 3.5 < one.looks[-1].stored < 4.5
    assert [look.stored for look in one.looks] == sorted(look.stored for look in one.looks)
    assert 1 < one.size <= one.blocks
    assert 0 < one.milliseconds < one.worst
    assert one.processor > 0
    assert one.gets_during > 0
    assert one.gets_after > 0
    assert one.found > 0.9
    assert one.written == 0 or one.written > 1


def test_the_plot_has_a_panel_for_each_row_and_is_the_same_again() -> None:
    found = {name: {OWN: figures(looks=LOOKS), PEER: SLOW} for name in ("4k", "8k", "20k")}
    drawn = plots.space_plot(found)
    assert drawn == plots.space_plot(found)
    for words in ("20k", "lsmkv", "diskcache", "stored / limit"):
        assert f">{words}<" in drawn.decode() or f"<!-- {words} -->" in drawn.decode()


# Hit ratios


def test_the_order_of_an_lru_and_of_a_fifo() -> None:
    trace = list("abacabad")
    assert cache_hits.simulated(trace, 2, True) == 3 / 8
    assert cache_hits.simulated(trace, 2, False) == 2 / 8
    assert cache_hits.simulated(trace, 4, True) == cache_hits.simulated(trace, 4, False) == 4 / 8


def test_traces(tmp_path: Path) -> None:
    trace = cache_hits.zipf(2_000, 100)
    assert trace == cache_hits.zipf(2_000, 100)
    assert trace.count(0) > 5 * trace.count(50)
    assert set(trace) <= set(range(100))
    scanned = cache_hits.with_scan(trace, 300)
    assert scanned[:1_000] + scanned[1_300:] == trace
    assert len(set(scanned[1_000:1_300]) - set(trace)) == 300
    (tmp_path / "trace").write_text("7\n8\n7\n", encoding="ascii")
    assert cache_hits.from_file(tmp_path / "trace") == ["7", "8", "7"]


def test_a_cache_with_an_exact_order_has_an_lrus_hits_and_its_entries_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_cache, "peers", lambda: [OWN])
    trace = cache_hits.zipf(4_000, 1_000)
    found = cache_hits.measure(trace, 200_000, str(tmp_path))
    exact = found[cache_hits.EXACT]
    assert exact.own == pytest.approx(exact.lru, abs=0.01)
    assert exact.fifo < exact.lru < exact.by_bytes
    assert 100 < exact.entries < 200
    assert exact.cells()[0] == str(exact.entries)
    assert len(exact.cells()) == len(cache_hits.TITLES)


def test_hits_that_are_too_few() -> None:
    hits = cache_hits.Hits(10, 0.5, 0.505, 0.4, 0.6)
    assert cache_hits.missed({OWN: hits}) == []
    hits = cache_hits.Hits(10, 0.5, 0.52, 0.4, 0.6)
    assert cache_hits.missed({OWN: hits}) == ["LRU's hits - own: 2.0%, aim 1%"]
