"""lsmkv.owner: what a live owner publishes, read by path, by directory and in another process."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from observing import published
from processes import run_python

import lsmkv
from lsmkv.owner import OPERATIONS, Owner, read_owner


def test_a_live_owner_is_read_by_its_path_and_by_its_directory(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with lsmkv.DB(store, create_if_missing=True, publish_stats=True) as db:
        db.put(b"key", b"value")
        published(store, lambda it: it.stats.writes == 1)
        by_path = read_owner(store)
        with lsmkv.LocalEnv().open_directory(str(store)) as directory:
            by_directory = read_owner(directory)
            assert directory.exists("CURRENT")  # it stays open
    for owner in (by_path, by_directory):
        assert owner.publishes
        assert owner.pid == os.getpid()
        assert owner.published is not None
        assert owner.published.latencies["put"].count == 1
        assert set(owner.published.latencies) <= set(OPERATIONS)
    assert read_owner(store) == Owner(None, None)


def test_another_process_reads_what_this_one_publishes(tmp_path: Path) -> None:
    store = tmp_path / "store"
    code = (
        "import sys, json, lsmkv.owner\n"
        "owner = lsmkv.owner.read_owner(sys.argv[1])\n"
        "print(json.dumps([owner.pid, owner.publishes, owner.published.stats.writes]))"
    )
    with lsmkv.DB(store, create_if_missing=True, publish_stats=True) as db:
        db.put(b"key", b"value")
        published(store, lambda it: it.stats.writes == 1)
        done = run_python("-c", code, str(store), check=True)
    assert json.loads(done.stdout) == [os.getpid(), True, 1]


def test_a_store_in_an_env() -> None:
    env = lsmkv.MemoryEnv()
    with lsmkv.DB("store", create_if_missing=True, env=env):
        owner = read_owner("store", env=env)
    assert (owner.pid, owner.publishes, owner.published) == (os.getpid(), False, None)


def test_no_store_and_damage(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(lsmkv.NotFoundError, match="no database here"):
            read_owner(path)
    lsmkv.DB(tmp_path / "store", create_if_missing=True).close()
    (tmp_path / "store" / "STATS.json").write_bytes(b"{")
    with pytest.raises(lsmkv.CorruptionError, match="not what lsmkv publishes"):
        read_owner(tmp_path / "store")
