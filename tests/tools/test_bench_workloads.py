"""Each workload and study, small, with each engine that is installed: results and counters.

Nothing here looks at the clock.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lsmkv.tools.bench import loops, worker
from lsmkv.tools.bench.data import Data, compressible_values
from lsmkv.tools.bench.engines import leveldb, rocksdb
from lsmkv.tools.bench.engines.base import Get, Store
from lsmkv.tools.bench.engines.registry import OWN, PEERS, is_installed, make_engine
from lsmkv.tools.bench.settings import MIB, Settings
from lsmkv.tools.bench.studies import STUDIES, WrongAnswerError, require_right
from lsmkv.tools.bench.workloads import OPENINGS, THREADED, WORKLOADS, Bench
from lsmkv.util.compression import SNAPPY, compress

NUM = 2000
SETTINGS = Settings(num=NUM, write_buffer_size=64 * 1024)
ENGINES = [name for name in (OWN, *PEERS) if is_installed(name)]
FILLED = {"right": 1000}
SYNCED = {"right": NUM // 100}
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
    "readwhilewriting": {"hits": NUM // 10},
    "compact": FILLED | {"levels_changed": 1},
    "open": {"hits": OPENINGS},
}
OPS = {
    "fillsync": NUM // 100,
    "seekrandom": NUM // 10,
    "seek10": NUM // 10,
    "readwhilewriting": NUM // 10,
    "compact": 2 * NUM,
    "open": 1,
}

every_engine = pytest.mark.parametrize("engine", ENGINES)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leveldb, "_CALM", 0.02)
    monkeypatch.setattr(rocksdb, "_CALM", 0.02)


def bench_of(engine: str, directory: Path, settings: Settings = SETTINGS) -> Bench:
    return Bench(make_engine(engine), str(directory), settings)


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


class LossyEngine:
    """lsmkv, but one key is never found, and one entry never seen."""

    def __init__(self) -> None:
        self._engine = make_engine(OWN)
        self.version = ""
        self.cannot: dict[str, str] = {}
        self.threads = True

    def open(self, path: str, settings: Settings, sync: bool = False) -> Store:
        store = self._engine.open(path, settings, sync)
        lost = b"%016d" % 0
        get, scan, seeker = store.getter(False), store.scan, store.seeker()
        ranges = store.range_reader

        def lossy_get(live: bool) -> Get:
            return lambda key: None if key == lost else get(key)

        def lossy_scan(reverse: bool) -> Iterator[tuple[bytes, bytes]]:
            return (row for row in scan(reverse) if row[0] != lost)

        def lossy_ranges(count: int) -> Callable[[bytes], int]:
            return ranges(count - 1)

        def lossy_seeker() -> Get:
            return lambda key: None if key < b"%016d" % 50 else seeker(key)

        for name, replacement in (
            ("getter", lossy_get),
            ("scan", lossy_scan),
            ("range_reader", lossy_ranges),
            ("seeker", lossy_seeker),
        ):
            setattr(store, name, replacement)
        return store


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


# Loops


def test_an_error_in_a_thread_is_raised() -> None:
    def broken() -> loops.Loop:
        raise OSError("no store")

    def fine() -> loops.Loop:
        return lambda: 1

    with pytest.raises(OSError, match="no store"):
        loops.run([fine, broken, fine])
    with pytest.raises(OSError, match="no store"):
        loops.run([broken])
    seconds, found = loops.run([fine, fine, fine])
    assert found == 3
    assert seconds > 0


def test_each_loop_has_its_thread() -> None:
    threads = set()

    def ready() -> loops.Loop:
        own = threading.get_ident()

        def loop() -> int:
            assert threading.get_ident() == own
            threads.add(own)
            return 1

        return loop

    loops.run([ready] * 4)
    assert len(threads) == 4


# Data


def test_data_is_the_same_for_a_seed() -> None:
    first, same = Data(SETTINGS), Data(SETTINGS)
    other = Data(replace(SETTINGS, seed=2))
    assert first.shuffled("a") == same.shuffled("a") != other.shuffled("a")
    assert first.shuffled("a") != first.shuffled("b")
    assert sorted(first.shuffled("a")) == list(range(NUM))
    assert first.values == same.values != other.values
    assert first.keys([0, 12]) == [b"0000000000000000", b"0000000000000012"]
    assert first.keys([5]) == [first.key(5)]
    for generation in (0, 1):
        some = [first.value(index, generation) for index in range(NUM)]
        assert first.values_of(range(NUM), generation) == some
    assert first.value(5) != first.value(5, 1)
    assert set(first.drawn("hot", 1000, 7)) == set(range(7))


@pytest.mark.parametrize("size", [0, 1, 99, 100, 1000, 5000])
def test_values_compress_to_half(size: int) -> None:
    values = compressible_values(size, Data(SETTINGS)._random("x"))
    assert {len(value) for value in values} == {size}
    if size >= 100:
        whole = b"".join(values[:50])
        stored = compress(whole, SNAPPY)
        assert 0.4 * len(whole) < len(stored) < 0.65 * len(whole)


# Studies


@every_engine
@pytest.mark.parametrize("name", STUDIES)
def test_a_study(engine: str, name: str, tmp_path: Path) -> None:
    bench = bench_of(engine, tmp_path)
    if name in bench.engine.cannot:
        pytest.skip(f"{engine} cannot")
    figures = STUDIES[name](bench)
    if name == "sustained":
        assert figures["ops"] == figures["histogram"]["count"] == NUM
        assert figures["over_100_ms"] <= NUM
    elif name == "growth":
        assert [point["entries"] for point in figures["points"]] == [NUM // 10, NUM]
    elif name == "footprint":
        assert NUM * 50 < figures["disk_bytes_compacted"] < NUM * 116
    else:
        assert figures["levels"] == [1, 1, 1, 0, 0, 0, 0]
        assert figures["gets"] == NUM


def test_gets_of_absent_keys_write_nothing(tmp_path: Path) -> None:
    figures = STUDIES["absent"](bench_of(OWN, tmp_path, replace(SETTINGS, num=20_000)))
    assert figures["bytes_written"] in (0, None)
    assert figures["levels_after"] == figures["levels"]


def test_what_leveldb_writes_for_them_is_noticed(tmp_path: Path) -> None:
    pytest.importorskip("plyvel")
    figures = STUDIES["absent"](bench_of("plyvel", tmp_path, replace(SETTINGS, num=20_000)))
    assert figures["bytes_written"] is None or figures["bytes_written"] > 500_000


def test_what_tables_cost_is_told_as_leveldb_tells_it(tmp_path: Path) -> None:
    written = {}
    for engine in (OWN, "plyvel"):
        if engine in ENGINES:
            directory = tmp_path / engine
            directory.mkdir()
            settings = Settings(num=40_000, compression="none", write_buffer_size=MIB)
            figures = STUDIES["footprint"](bench_of(engine, directory, settings))
            written[engine] = figures["table_bytes_written"]
    assert all(number >= 4 << 20 for number in written.values())


# The process


def run_worker(job: worker.Job, monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[Any]]:
    out = io.StringIO()
    monkeypatch.setattr("sys.stdin", io.StringIO(job.to_json()))
    monkeypatch.setattr("sys.stdout", out)
    status = worker.main()
    monkeypatch.undo()
    return status, [json.loads(line) for line in out.getvalue().splitlines()]


def test_the_worker_tells_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = worker.Job(OWN, str(tmp_path), SETTINGS, ("fillsync", "absent"))
    assert worker.Job.from_json(job.to_json()) == job
    status, told = run_worker(job, monkeypatch)
    assert status == 0
    assert [next(iter(message)) for message in told] == [
        *("version", "begin", "end", "begin", "end", "peak_rss")
    ]
    assert told[2]["result"]["seen"] == SYNCED


def test_the_worker_tells_what_cannot_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(SETTINGS, num=50, threads=2)
    names = ("readseq", "fillseq", "readwhilewriting", "open")
    _, told = run_worker(worker.Job("dbm", str(tmp_path), settings, names), monkeypatch)
    ends = {message["end"]: message for message in told if "end" in message}
    assert ends["readseq"]["skipped"] == "its keys are in no order"
    assert ends["fillseq"]["skipped"] == ends["readwhilewriting"]["skipped"] == worker.ONE_THREAD
    assert ends["open"]["result"]["ops"] == 1


def test_a_wrong_answer_ends_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "make_engine", lambda name: LossyEngine())
    job = worker.Job(OWN, str(tmp_path), replace(SETTINGS, num=100), ("fillseq", "open"))
    status, told = run_worker(job, monkeypatch)
    assert status == 1
    assert told[-1]["error"].startswith("fillseq: WrongAnswerError: wrong answers: {'right': 99}")
