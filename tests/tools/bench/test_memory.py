"""lsmkv.tools.bench.memory: a program of its own, which prints the peak memory of a store."""

from __future__ import annotations

import json
from pathlib import Path

from processes import run_python

import lsmkv
from lsmkv.tools.bench import memory


def test_it_prints_the_peak_of_a_process_that_filled_and_read_a_store(tmp_path: Path) -> None:
    numbers = ["500", "100", "10", "100000"]
    done = run_python(
        memory.__file__, "lsmkv", str(tmp_path / "db"), *numbers, text=False, check=True
    )
    found = json.loads(done.stdout)
    assert found["entries"] == 500
    if found["peak"] is not None:
        assert 5e6 < found["imported"] <= found["filled"] <= found["peak"]
    with lsmkv.DB(tmp_path / "db") as db:
        assert {len(value) for _, value in db} == {100}
