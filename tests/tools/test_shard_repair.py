"""``lsmkv repair`` of a shard set."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from commands import fails, lsm
from small_sets import PAIRS, build

import lsmkv.bulk
import lsmkv.shards


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    build(tmp_path / "set")
    (document,) = lsmkv.bulk.versions(tmp_path / "set")
    (tmp_path / "set" / document.shards[1].path / "CURRENT").unlink()
    return tmp_path / "set"


def test_the_plan_and_the_next_command(damaged: Path, tmp_path: Path) -> None:
    assert "see 'lsmkv repair'" in lsm("verify", damaged).out
    done = lsm("repair", damaged)
    assert done.status == 0
    (document,) = lsmkv.bulk.versions(damaged)
    pairs = document.shards[1].pairs
    kept = f"shard 1: {pairs:,} of {pairs:,} pairs are kept\n    CURRENT: missing\n"
    assert done.out.startswith(kept)
    assert f"lsmkv: lsmkv repair {damaged} --into NEW\n" in done.err
    assert os.listdir(tmp_path) == ["set"]
    data = json.loads(lsm("repair", damaged, "--json").out)
    assert (data["needed"], data["repaired"], data["version"]) == (True, None, 1)
    (shard,) = data["shards"]
    assert (shard["shard"], shard["pairs"], shard["kept"]) == (1, pairs, pairs)
    assert shard["plan"]["needed"] is True


def test_into(damaged: Path, tmp_path: Path) -> None:
    done = lsm("repair", damaged, "--into", tmp_path / "new")
    assert (done.status, done.err) == (0, "")
    assert done.out.endswith(f"repaired: {tmp_path / 'new'}\n")
    assert lsm("verify", tmp_path / "new").status == 0
    with lsmkv.shards.open(tmp_path / "new") as shards:
        assert dict(shards) == PAIRS
    fails(lsm("repair", damaged, "--into", tmp_path / "new"), "there are objects already")


def test_a_sound_set(tmp_path: Path) -> None:
    build(tmp_path / "set")
    assert lsm("repair", tmp_path / "set") == (0, "no shard is damaged\n", "")


@pytest.mark.parametrize("option", ["--in-place", "--keep-stale", "--merge-all"])
def test_options_of_stores_are_refused(damaged: Path, option: str) -> None:
    fails(lsm("repair", damaged, option), "never changes")


def test_rescue_names_a_shard_set(damaged: Path, tmp_path: Path) -> None:
    done = lsm("rescue", tmp_path)
    assert done.status == 2
    assert "shard set" in done.out
    assert "'lsmkv repair --into' repairs it" in " ".join(done.out.split())
