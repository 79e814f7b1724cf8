"""What ``lsmkv stats`` shows of a shard set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import lsm, on_terminal

import lsmkv
import lsmkv.bulk


def test_stats_show_the_shards(url: Path) -> None:
    lines = lsm("stats", url).out.splitlines()
    assert lines[0].startswith(f"{url}: version 1, 3 shards, 1,000 pairs, ")
    assert [line.split()[0] for line in lines[3:7]] == ["0", "1", "2", "all"]
    assert lines[6].split()[1:3] == ["3", "1,000"]
    assert "requests   5 by this command: 1 listing," in lines[-1]
    plain = json.loads(lsm("stats", url, "--json").out)
    assert (plain["shards"], plain["shards_open"], plain["pairs"]) == (3, 3, 1000)
    assert plain["metadata_bytes"] > 0


@pytest.mark.parametrize("columns", [80, 120])
def test_stats_of_a_set_fit_a_terminal(tmp_path: Path, columns: int) -> None:
    keys = [b"%04d" % n + b"k" * 200 for n in range(400)]
    lsmkv.bulk.build([(key, b"v") for key in keys], tmp_path / "set", shards=30)
    status, shown = on_terminal("stats", tmp_path / "set", columns=columns)
    assert status == 0
    rows = [line for line in shown.splitlines() if "0000kk" in line or "0399" in line]
    assert all(len(row.split("\x1b[0m")[0]) <= columns * 2 for row in rows)
    assert "...  6 more; all have from" in shown.replace("\x1b[2m", "").replace("\x1b[0m", "")
