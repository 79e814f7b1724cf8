"""What engines, workloads and studies of ``lsmkv bench`` must do; an engine that loses entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lsmkv.tools.bench import workloads
from lsmkv.tools.bench.engines import OWN, make_engine
from lsmkv.tools.bench.settings import MIB, Settings
from lsmkv.tools.bench.store import Engine, Get, Store
from lsmkv.tools.bench.workbench import Bench, Outcome

NUM = 2000
SETTINGS = Settings(num=NUM, write_buffer_size=64 * 1024)
SYNCED = {"right": NUM // 100}
ROWS = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]

_FILLED = {"right": 1000}
_FOUND = {"hits": NUM, "bytes": NUM * 100, "hits_again": NUM}
_SCANNED = {"entries": NUM, "bytes": NUM * 100, "in_order": NUM}
_SEEN: dict[str, dict[str, int]] = {
    "fillseq": _FILLED,
    "fillbatch": _FILLED,
    "fillrandom": _FILLED,
    "overwrite": _FILLED,
    "fillsync": SYNCED,
    "readrandom": _FOUND,
    "readmissing": {"hits": 0, "bytes": 0, "hits_again": 0},
    "readhot": _FOUND,
    "readseq": _SCANNED,
    "readreverse": _SCANNED,
    "seekrandom": {"found": NUM // 10, "found_again": NUM // 10},
    "deleterandom": {"left": 0},
    "scandeleted": {"left": NUM // 100, "right": 1},
    "queue": {"left": NUM // 20, "right": 1},
    "readwhilewriting": {"hits": NUM // 10},
    "compact": _FILLED | {"levels_changed": 1},
}
_ONE_IN = {"fillsync": 100, "seekrandom": 10, "seek10": 10, "queue": 20, "readwhilewriting": 10}


def operations(name: str, num: int) -> int:
    """How many operations a workload has that is given ``num`` entries."""
    if name.startswith("open"):
        return 1
    return 2 * num if name == "compact" else num // _ONE_IN.get(name, 1)


def bench_of(engine: str, directory: Path, settings: Settings = SETTINGS) -> Bench:
    directory.mkdir(exist_ok=True)
    return Bench(make_engine(engine), str(directory), settings)


def check_outcome(name: str, outcome: Outcome) -> None:
    """Check what a workload saw of :data:`NUM` entries."""
    assert outcome.seen == outcome.expected
    assert outcome.ops == operations(name, NUM)
    assert outcome.seconds > 0
    if name == "seek10":
        assert 0.99 * NUM < outcome.seen["found"] == outcome.seen["found_again"] <= NUM
    elif name.startswith("open"):
        assert outcome.seen == {"hits": workloads.OPENINGS}
    else:
        assert outcome.seen == _SEEN[name]


def check_study(name: str, figures: dict[str, Any]) -> None:
    """Check what a study found out about :data:`NUM` entries."""
    if name == "sustained":
        assert figures["ops"] == figures["histogram"]["count"] == NUM
        assert figures["over_50_ms"] <= NUM
    elif name == "growth":
        assert [point["entries"] for point in figures["points"]] == [NUM // 10, NUM]
    elif name == "incompressible":
        assert figures["entries"] == NUM
        assert figures["micros_per_get"] > 0
        assert figures["resident_bytes"] is None or figures["resident_bytes"] > MIB
    elif name == "footprint":
        assert NUM * 50 < figures["disk_bytes_compacted"] < NUM * 116
    else:
        assert figures["levels"] == [1, 1, 1, 0, 0, 0, 0]
        assert figures["gets"] == NUM


def check_compaction(outcome: Outcome) -> None:
    """Check that a compaction started from the tables that all engines of LevelDB's kind have."""
    assert outcome.more["levels"] == [2, 1, 1, 0, 0, 0, 0]
    assert outcome.more["levels_after"] == [0, 0, 1, 0, 0, 0, 0]


# Engines


def filled(engine: Engine, path: Path, sync: bool = False) -> Store:
    """An open store with :data:`ROWS`, and a key that was deleted."""
    store = engine.open(str(path), SETTINGS, sync)
    put = store.putter()
    for key, value in [*ROWS[::-1], (b"d", b"4")]:
        put(key, value)
    store.deleter()(b"d")
    return store


def check_keys(engine: Engine, path: Path) -> None:
    """Check puts, Gets and deletes, before and after the store is opened again."""
    store = filled(engine, path)
    for _ in range(2):
        get = store.getter(live=False)
        assert [get(key) for key, _ in ROWS] == [value for _, value in ROWS]
        assert get(b"d") is None
        store.close()
        store = engine.open(str(path), SETTINGS)
    store.close()


def check_order(engine: Engine, path: Path) -> None:
    """Check batches, scans, seeks and ranges."""
    store = filled(engine, path)
    store.batch_writer()([(b"e", b"5"), (b"b", b"20")])
    rows = [(b"a", b"1"), (b"b", b"20"), (b"c", b"3"), (b"e", b"5")]
    assert list(store.scan(reverse=False)) == rows
    assert list(store.scan(reverse=True)) == rows[::-1]
    seek = store.seeker()
    assert [seek(key) for key in (b"", b"b", b"d", b"f")] == [b"a", b"b", b"e", None]
    read = store.range_reader(2)
    assert [read(key) for key in (b"", b"d", b"f")] == [2, 1, 0]
    live = store.getter(live=True)
    store.putter()(b"a", b"new")
    assert live(b"a") == b"new"
    store.close()


def check_tables(engine: Engine, path: Path) -> None:
    """Check that a flush makes one table, and that a compaction moves it."""
    store = filled(engine, path)
    assert sum(store.levels()) == 0
    store.flush()
    assert sum(store.levels()) == 1
    store.compact()
    store.settle()
    assert sum(store.levels()) == 1
    assert store.table_bytes_written() is not None
    store.close()


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
