"""lsmkv.tools.bench.studies: runs that answer one question each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benches import SETTINGS, bench_of, check_study

from lsmkv.tools.bench.engines import OWN
from lsmkv.tools.bench.settings import MIB, Settings
from lsmkv.tools.bench.studies import STUDIES


@pytest.mark.parametrize("name", STUDIES)
def test_a_study(name: str, tmp_path: Path) -> None:
    check_study(name, STUDIES[name](bench_of(OWN, tmp_path)))


def test_gets_of_absent_keys_write_nothing(tmp_path: Path) -> None:
    figures = STUDIES["absent"](bench_of(OWN, tmp_path, replace(SETTINGS, num=20_000)))
    assert figures["bytes_written"] in (0, None)
    assert figures["levels_after"] == figures["levels"]


def test_what_tables_cost_is_computed_as_leveldb_does(tmp_path: Path) -> None:
    settings = Settings(num=40_000, compression="none", write_buffer_size=MIB)
    figures = STUDIES["footprint"](bench_of(OWN, tmp_path, settings))
    assert figures["table_bytes_written"] >= 4 * MIB


def test_compression_is_what_is_asked_for(tmp_path: Path) -> None:
    sizes = {}
    for codec in ("snappy", "none"):
        settings = replace(SETTINGS, compression=codec)
        sizes[codec] = STUDIES["footprint"](bench_of(OWN, tmp_path / codec, settings))
    ratio = sizes["snappy"]["disk_bytes_compacted"] / sizes["none"]["disk_bytes_compacted"]
    assert 0.5 < ratio < 0.75
