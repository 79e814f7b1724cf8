"""What ``lsmkv verify`` prints of a shard set."""

from __future__ import annotations

import json
from pathlib import Path

from commands import lsm
from shard_pairs import PAIRS

import lsmkv
import lsmkv.bulk


def test_verify_reads_a_sound_set(url: Path) -> None:
    done = lsm("verify", url)
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("version 1: 3 shards, 1,000 pairs, ")
    assert lines[1].startswith("shard 0  ok       1 table, ")
    assert lines[-1] == "all is sound"
    assert lsm("verify", url, "-q").out == ""


def test_verify_finds_damage_and_remarks(tmp_path: Path) -> None:
    lsmkv.bulk.build(PAIRS, tmp_path / "set", shards=2, compression="none")
    tables = sorted((tmp_path / "set").rglob("*.ldb"))
    (tables[0].parent / "note").write_bytes(b"")
    done = lsm("verify", tmp_path / "set")
    assert done.status == 1
    assert done.out.endswith("no damage\n")
    assert "left over: the version does not name it" in done.out
    data = bytearray(tables[1].read_bytes())
    data[100] ^= 3
    tables[1].write_bytes(data)
    done = lsm("verify", tmp_path / "set", "--quiet")
    assert done.status == 3
    assert "shard 1  DAMAGED  shards/" in done.out
    assert "    000002.ldb  DAMAGED" in done.out
    assert "its SHA-256 differs from the one that the version states" in done.out
    assert done.out.endswith("1 shard damaged; see 'lsmkv repair'\n")
    plain = json.loads(lsm("verify", tmp_path / "set", "--json").out)
    assert [shard["verdict"] for shard in plain["shards"]] == ["remark", "damaged"]
    (table,) = [f for f in plain["shards"][1]["files"] if f["name"] == "000002.ldb"]
    assert table["problems"][0]["after"] is None or "after" in table["problems"][0]
