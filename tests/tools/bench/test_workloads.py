"""Each workload, small: what it sees, and what lsmkv counts.

Nothing here looks at the clock.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benches import (
    NUM,
    SETTINGS,
    LossyEngine,
    bench_of,
    check_compaction,
    check_outcome,
    operations,
)

from lsmkv.tools.bench.engines import OWN
from lsmkv.tools.bench.studies import WrongAnswerError, require_right
from lsmkv.tools.bench.workbench import Bench, Outcome
from lsmkv.tools.bench.workloads import THREADED, WORKLOADS


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Those of all workloads in one go: none finds what another one has changed."""
    directory = tmp_path_factory.mktemp("stores")
    bench = bench_of(OWN, directory)
    found = {name: workload(bench) for name, workload in WORKLOADS.items()}
    assert len(list(directory.iterdir())) == 1  # what fillrandom made
    return found


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_sees_what_is_there(name: str, outcomes: dict[str, Outcome]) -> None:
    check_outcome(name, outcomes[name])


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("fillseq", {"writes": NUM, "operations": NUM, "user_bytes": NUM * 116}),
        ("fillbatch", {"writes": NUM // 1000, "operations": NUM}),
        ("fillrandom", {"writes": NUM, "operations": NUM, "user_bytes": NUM * 116}),
        ("overwrite", {"writes": NUM, "operations": NUM, "user_bytes": NUM * 116}),
        ("fillsync", {"writes": NUM // 100, "log_syncs": NUM // 100}),
        ("readrandom", {"gets": NUM, "gets_found": NUM, "gets_from_memory": 0}),
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
def test_counters(name: str, counted: dict[str, int], outcomes: dict[str, Outcome]) -> None:
    counters = outcomes[name].counters
    assert {field: counters[field] for field in counted} == counted


def test_reads_use_tables_and_filters(outcomes: dict[str, Outcome], tmp_path: Path) -> None:
    missing = outcomes["readmissing"].counters
    assert missing["filters_asked"] >= NUM
    assert missing["filter_negatives"] > 0.95 * missing["filters_asked"]
    small = bench_of(OWN, tmp_path, replace(SETTINGS, cache_size=0, bloom_bits=0))
    assert WORKLOADS["readrandom"](small).counters["blocks_read"] >= NUM
    assert WORKLOADS["readmissing"](small).counters["filters_asked"] == 0


def test_a_compaction_starts_from_the_same_tables(outcomes: dict[str, Outcome]) -> None:
    check_compaction(outcomes["compact"])


def test_the_writer_writes_while_others_read(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["readwhilewriting"]
    assert outcome.more["writes"] == outcome.counters["writes"] > 0


@pytest.mark.parametrize("threads", [1, 3])
def test_every_operation_is_timed_if_that_is_asked_for(threads: int, tmp_path: Path) -> None:
    """In the other order, so that none needs what an earlier one left."""
    bench = bench_of(OWN, tmp_path, replace(SETTINGS, num=600, threads=threads, histogram=True))
    for name in sorted(THREADED, reverse=True):
        outcome = WORKLOADS[name](bench)
        assert outcome.seen == outcome.expected, name
        assert outcome.ops == outcome.to_dict()["histogram"]["count"] == operations(name, 600)


def test_a_lost_entry_is_noticed(tmp_path: Path) -> None:
    bench = Bench(LossyEngine(), str(tmp_path), replace(SETTINGS, num=100))
    for name in (
        *("fillseq", "fillbatch", "fillrandom", "overwrite", "readrandom", "readhot"),
        *("readseq", "readreverse", "seekrandom", "seek10"),
    ):
        outcome = WORKLOADS[name](bench)
        assert outcome.seen != outcome.expected, name
        with pytest.raises(WrongAnswerError):
            require_right(outcome.seen, outcome.expected)
