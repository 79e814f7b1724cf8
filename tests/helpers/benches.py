"""A bench of a small size, the engines that are installed, and one that loses entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lsmkv.tools.bench.engines.base import Get, Store
from lsmkv.tools.bench.engines.registry import OWN, PEERS, is_installed, make_engine
from lsmkv.tools.bench.settings import Settings
from lsmkv.tools.bench.workloads import Bench

NUM = 2000


SETTINGS = Settings(num=NUM, write_buffer_size=64 * 1024)


ENGINES = [name for name in (OWN, *PEERS) if is_installed(name)]


SYNCED = {"right": NUM // 100}


every_engine = pytest.mark.parametrize("engine", ENGINES)


def bench_of(engine: str, directory: Path, settings: Settings = SETTINGS) -> Bench:
    return Bench(make_engine(engine), str(directory), settings)


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
