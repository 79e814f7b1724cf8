"""lsmkv.tools.bench.studies: runs that answer one question each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benches import ENGINES, NUM, SETTINGS, bench_of, every_engine

from lsmkv.tools.bench.engines.registry import OWN
from lsmkv.tools.bench.settings import MIB, Settings
from lsmkv.tools.bench.studies import STUDIES


@every_engine
@pytest.mark.parametrize("name", STUDIES)
def test_a_study(engine: str, name: str, tmp_path: Path) -> None:
    bench = bench_of(engine, tmp_path)
    if name in bench.engine.cannot:
        pytest.skip(f"{engine} cannot")
    figures = STUDIES[name](bench)
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


def test_gets_of_absent_keys_write_nothing(tmp_path: Path) -> None:
    figures = STUDIES["absent"](bench_of(OWN, tmp_path, replace(SETTINGS, num=20_000)))
    assert figures["bytes_written"] in (0, None)
    assert figures["levels_after"] == figures["levels"]


def test_what_leveldb_writes_for_them_is_noticed(tmp_path: Path) -> None:
    pytest.importorskip("plyvel")
    figures = STUDIES["absent"](bench_of("plyvel", tmp_path, replace(SETTINGS, num=20_000)))
    assert figures["bytes_written"] is None or figures["bytes_written"] > 500_000


def test_what_tables_cost_is_computed_as_leveldb_does(tmp_path: Path) -> None:
    written = {}
    for engine in (OWN, "plyvel"):
        if engine in ENGINES:
            directory = tmp_path / engine
            directory.mkdir()
            settings = Settings(num=40_000, compression="none", write_buffer_size=MIB)
            figures = STUDIES["footprint"](bench_of(engine, directory, settings))
            written[engine] = figures["table_bytes_written"]
    assert all(number >= 4 << 20 for number in written.values())
