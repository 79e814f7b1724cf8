"""The engines that ``lsmkv bench --against`` measures: every workload and study, small, with each
one that is installed.  ``make test-bench`` runs this.

Nothing here looks at the clock.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from benches import (
    SETTINGS,
    bench_of,
    check_compaction,
    check_keys,
    check_order,
    check_outcome,
    check_study,
    check_tables,
    operations,
)
from lsmkv_peers import ENGINES, dbm, rocksdb
from lsmkv_peers.cannot import FOREIGN_FILES, NO_LEVELS

from lsmkv.tools.bench import leveldb, workloads
from lsmkv.tools.bench.engines import OWN, PEERS, is_installed, make_engine
from lsmkv.tools.bench.runner import NAMES, Plan, run
from lsmkv.tools.bench.settings import MIB, Settings
from lsmkv.tools.bench.studies import STUDIES
from lsmkv.tools.bench.workloads import THREADED, WORKLOADS

INSTALLED = [name for name in PEERS if is_installed(name)]
every_peer = pytest.mark.parametrize("peer", INSTALLED)
every_ordered_peer = pytest.mark.parametrize("peer", [one for one in INSTALLED if one != "dbm"])


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engines' rests between two steps are short, and stores are opened three times."""
    for module in (leveldb, rocksdb):
        monkeypatch.setattr(module, "_CALM", 0.02)
    monkeypatch.setattr(workloads, "OPENINGS", 3)


# Engines


def test_the_package_knows_their_names() -> None:
    assert tuple(ENGINES) == PEERS
    assert "dbm" in INSTALLED
    assert {*NO_LEVELS, *FOREIGN_FILES} <= set(NAMES)
    assert all(make_engine(name).version for name in INSTALLED)


@every_peer
def test_keys_are_put_read_and_deleted(peer: str, tmp_path: Path) -> None:
    check_keys(make_engine(peer), tmp_path)


@every_ordered_peer
def test_entries_are_in_the_order_of_their_keys(peer: str, tmp_path: Path) -> None:
    check_order(make_engine(peer), tmp_path)


def test_plyvels_tables_are_those_of_lsmkv(tmp_path: Path) -> None:
    pytest.importorskip("plyvel")
    check_tables(make_engine("plyvel"), tmp_path / "flushed")
    check_compaction(WORKLOADS["compact"](bench_of("plyvel", tmp_path / "compacted")))


def test_each_put_of_dbm_is_synced_if_that_is_asked_for() -> None:
    class Kept(dict[bytes, bytes]):
        synced = 0

        def sync(self) -> None:
            self.synced += 1

    db = Kept()
    for sync, expected in ((False, 0), (True, 1)):
        dbm.DBMStore(db, sync).putter()(b"k", b"v")
        assert (db, db.synced) == ({b"k": b"v"}, expected)


def test_what_dbm_cannot_do_depends_on_the_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    cannot = {}
    for kind in ("dbm.gnu", "dbm.ndbm", "dbm.dumb"):
        module: Any = SimpleNamespace(open=lambda path, flag: {})
        monkeypatch.setattr(dbm, "_best_kind", lambda kind=kind, module=module: (kind, module))
        cannot[kind] = set(dbm.DBMEngine().cannot)
    assert {"readseq", "fillbatch", "compact"} <= cannot["dbm.gnu"]
    assert cannot["dbm.ndbm"] - cannot["dbm.gnu"] == {"fillsync"}
    assert cannot["dbm.dumb"] - cannot["dbm.ndbm"] == {"deleterandom"}
    assert not dbm.DBMEngine().threads


def test_a_scan_of_lmdb_ends_its_transaction(tmp_path: Path) -> None:
    """LMDB has places for 1,024 readers here, and ``queue`` makes thousands of scans."""
    pytest.importorskip("lmdb")
    store = make_engine("lmdb").open(str(tmp_path), Settings(num=10))
    store.putter()(b"k", b"v")
    for _ in range(1100):
        assert next(iter(store.scan(False))) == (b"k", b"v")
    store.close()


# Workloads and studies


@every_peer
def test_workloads_see_what_is_there(peer: str, tmp_path: Path) -> None:
    """None finds what another one has changed."""
    bench = bench_of(peer, tmp_path)
    for name, workload in WORKLOADS.items():
        alone = name == "readwhilewriting" and not bench.engine.threads
        if name not in bench.engine.cannot and not alone:
            check_outcome(name, workload(bench))
    assert len(list(tmp_path.iterdir())) <= 1  # what fillrandom made


@every_ordered_peer
def test_threads_share_the_keys(peer: str, tmp_path: Path) -> None:
    bench = bench_of(peer, tmp_path, replace(SETTINGS, num=600, threads=3))
    for name in sorted(THREADED, reverse=True):
        outcome = WORKLOADS[name](bench)
        assert outcome.seen == outcome.expected
        assert outcome.ops == operations(name, 600)


@every_peer
def test_studies(peer: str, tmp_path: Path) -> None:
    for name, study in STUDIES.items():
        bench = bench_of(peer, tmp_path / name)
        if name not in bench.engine.cannot:
            check_study(name, study(bench))


def test_studies_of_whole_processes(tmp_path: Path) -> None:
    plan = Plan(
        settings=SETTINGS,
        workloads=(),
        studies=("memory", "import"),
        engines=(OWN, *INSTALLED),
        missing=(),
        rounds=1,
        directory=str(tmp_path),
    )
    studies = run(plan, lambda *_: None).to_dict()["studies"]
    for name in INSTALLED:
        assert studies["import"][name]["milliseconds"] > 0
        assert ("skipped" in studies["memory"][name]) is (name != "plyvel")


def test_what_leveldb_writes_for_absent_keys_is_noticed(tmp_path: Path) -> None:
    pytest.importorskip("plyvel")
    figures = STUDIES["absent"](bench_of("plyvel", tmp_path, replace(SETTINGS, num=20_000)))
    assert figures["bytes_written"] is None or figures["bytes_written"] > 500_000


def test_what_tables_cost_is_computed_as_leveldb_does(tmp_path: Path) -> None:
    pytest.importorskip("plyvel")
    settings = Settings(num=40_000, compression="none", write_buffer_size=MIB)
    figures = STUDIES["footprint"](bench_of("plyvel", tmp_path, settings))
    assert figures["table_bytes_written"] >= 4 * MIB
