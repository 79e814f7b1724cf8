"""Each workload and study, small, with each engine that is installed: results and counters.

Nothing here looks at the clock.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benches import ENGINES, NUM, SETTINGS, SYNCED, LossyEngine, bench_of, every_engine

from lsmkv.tools.bench.engines.registry import OWN
from lsmkv.tools.bench.studies import STUDIES, WrongAnswerError, require_right
from lsmkv.tools.bench.workloads import OPENINGS, THREADED, WORKLOADS, Bench

FILLED = {"right": 1000}
FOUND = {"hits": NUM, "bytes": NUM * 100, "hits_again": NUM}
SCANNED = {"entries": NUM, "bytes": NUM * 100, "in_order": NUM}
SEEN: dict[str, dict[str, int]] = {
    "fillseq": FILLED,
    "fillbatch": FILLED,
    "fillrandom": FILLED,
    "overwrite": FILLED,
    "fillsync": SYNCED,
    "readrandom": FOUND,
    "readmissing": {"hits": 0, "bytes": 0, "hits_again": 0},
    "readhot": FOUND,
    "readseq": SCANNED,
    "readreverse": SCANNED,
    "seekrandom": {"found": NUM // 10, "found_again": NUM // 10},
    "deleterandom": {"left": 0},
    "scandeleted": {"left": NUM // 100, "right": 1},
    "queue": {"left": NUM // 20, "right": 1},
    "readwhilewriting": {"hits": NUM // 10},
    "compact": FILLED | {"levels_changed": 1},
    "open": {"hits": OPENINGS},
    "openlog": {"hits": OPENINGS},
    "openkilled": {"hits": OPENINGS},
}
OPS = {
    "fillsync": NUM // 100,
    "seekrandom": NUM // 10,
    "seek10": NUM // 10,
    "queue": NUM // 20,
    "readwhilewriting": NUM // 10,
    "compact": 2 * NUM,
    "open": 1,
    "openlog": 1,
    "openkilled": 1,
}


def test_engines_are_installed() -> None:
    assert {OWN, "dbm"} <= set(ENGINES)


# Workloads


@every_engine
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_sees_what_is_there(engine: str, name: str, tmp_path: Path) -> None:
    bench = bench_of(engine, tmp_path)
    if name in bench.engine.cannot or (name == "readwhilewriting" and not bench.engine.threads):
        pytest.skip(f"{engine} cannot")
    outcome = WORKLOADS[name](bench)
    assert outcome.seen == outcome.expected
    assert outcome.ops == OPS.get(name, NUM)
    assert outcome.seconds > 0
    if name in SEEN:
        assert outcome.seen == SEEN[name]
    else:
        assert name == "seek10"
        assert 0.99 * NUM < outcome.seen["found"] == outcome.seen["found_again"] <= NUM
    assert len(list(tmp_path.iterdir())) <= 1  # what fillrandom made


@every_engine
def test_all_workloads_in_one_go(engine: str, tmp_path: Path) -> None:
    """None finds what another one has changed."""
    bench = bench_of(engine, tmp_path, replace(SETTINGS, num=1000))
    for name, workload in WORKLOADS.items():
        alone = name == "readwhilewriting" and not bench.engine.threads
        if name not in bench.engine.cannot and not alone:
            outcome = workload(bench)
            assert outcome.seen == outcome.expected, name


@pytest.mark.parametrize("name", sorted(THREADED))
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "dbm"])
def test_threads_share_the_keys(engine: str, name: str, tmp_path: Path) -> None:
    settings = replace(SETTINGS, num=600, threads=3)
    outcome = WORKLOADS[name](bench_of(engine, tmp_path, settings))
    assert outcome.seen == outcome.expected
    assert outcome.ops == 600 * OPS.get(name, NUM) // NUM


@pytest.mark.parametrize("name", sorted(THREADED))
@pytest.mark.parametrize("threads", [1, 2])
def test_every_operation_is_timed_if_that_is_asked_for(
    name: str, threads: int, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, num=500, threads=threads, histogram=True)
    outcome = WORKLOADS[name](bench_of(OWN, tmp_path, settings))
    assert outcome.seen == outcome.expected
    assert outcome.to_dict()["histogram"]["count"] == outcome.ops


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("fillseq", {"writes": NUM, "operations": NUM, "user_bytes": NUM * 116}),
        ("fillbatch", {"writes": NUM // 1000, "operations": NUM}),
        ("fillrandom", {"writes": NUM, "operations": NUM, "user_bytes": NUM * 116}),
        ("overwrite", {"writes": NUM, "operations": NUM, "user_bytes": NUM * 116}),
        ("fillsync", {"writes": NUM // 100, "log_syncs": NUM // 100}),
        ("readrandom", {"gets": NUM, "gets_found": NUM}),
        ("readmissing", {"gets": NUM, "gets_found": 0}),
        ("readhot", {"gets": NUM, "gets_found": NUM}),
        ("readseq", {"gets": 0, "iterators": 1}),
        ("readreverse", {"gets": 0, "iterators": 1}),
        ("seekrandom", {"iterators": NUM // 10}),
        ("seek10", {"iterators": NUM // 10}),
        ("scandeleted", {"iterators": 1, "writes": 0}),
        ("queue", {"iterators": NUM // 20, "writes": NUM // 20}),
        ("deleterandom", {"writes": NUM, "operations": NUM, "user_bytes": NUM * 16}),
        ("compact", {"writes": 0, "flushes": 0}),
    ],
)
def test_counters(name: str, counted: dict[str, int], tmp_path: Path) -> None:
    counters = WORKLOADS[name](bench_of(OWN, tmp_path)).counters
    assert {field: counters[field] for field in counted} == counted


def test_reads_use_tables_and_filters(tmp_path: Path) -> None:
    bench = bench_of(OWN, tmp_path)
    missing = WORKLOADS["readmissing"](bench).counters
    assert missing["filters_asked"] >= NUM
    assert missing["filter_negatives"] > 0.95 * missing["filters_asked"]
    found = WORKLOADS["readrandom"](bench).counters
    assert found["gets_from_memory"] == 0
    (tmp_path / "small").mkdir()
    small = bench_of(OWN, tmp_path / "small", replace(SETTINGS, cache_size=0, bloom_bits=0))
    assert WORKLOADS["readrandom"](small).counters["blocks_read"] >= NUM
    assert WORKLOADS["readmissing"](small).counters["filters_asked"] == 0


@pytest.mark.parametrize("engine", [name for name in (OWN, "plyvel") if name in ENGINES])
def test_a_compaction_starts_from_the_same_tables(engine: str, tmp_path: Path) -> None:
    more = WORKLOADS["compact"](bench_of(engine, tmp_path)).more
    assert more["levels"] == [2, 1, 1, 0, 0, 0, 0]
    assert more["levels_after"] == [0, 0, 1, 0, 0, 0, 0]


def test_the_writer_writes_while_others_read(tmp_path: Path) -> None:
    outcome = WORKLOADS["readwhilewriting"](bench_of(OWN, tmp_path))
    assert outcome.more["writes"] == outcome.counters["writes"] > 0


def test_compression_is_what_is_asked_for(tmp_path: Path) -> None:
    sizes = {}
    for codec in ("snappy", "none"):
        directory = tmp_path / codec
        directory.mkdir()
        settings = replace(SETTINGS, compression=codec)
        sizes[codec] = STUDIES["footprint"](bench_of(OWN, directory, settings))
    ratio = sizes["snappy"]["disk_bytes_compacted"] / sizes["none"]["disk_bytes_compacted"]
    assert 0.5 < ratio < 0.75


# Wrong answers are noticed


@pytest.mark.parametrize(
    "name",
    [
        *("fillseq", "fillbatch", "fillrandom", "overwrite", "readrandom", "readhot"),
        *("readseq", "readreverse", "seekrandom", "seek10"),
    ],
)
def test_a_lost_entry_is_noticed(name: str, tmp_path: Path) -> None:
    bench = Bench(LossyEngine(), str(tmp_path), replace(SETTINGS, num=100))
    outcome = WORKLOADS[name](bench)
    assert outcome.seen != outcome.expected
    with pytest.raises(WrongAnswerError):
        require_right(outcome.seen, outcome.expected)
