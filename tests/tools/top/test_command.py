"""lsmkv top: what it says of a store without a screen, and how it ends."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from commands import fails, lsm
from observing import published

from lsmkv import DB


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_json_of_a_live_owner(store: Path) -> None:
    with DB(store, create_if_missing=True, publish_stats=True) as db:
        db.put(b"k", b"v")
        published(store, lambda it: it.stats.writes == 1)
        done = lsm("top", store, "--json")
    assert (done.status, done.err) == (0, "")
    found = json.loads(done.out)
    assert (found["path"], found["pid"], found["publishes"]) == (str(store), os.getpid(), True)
    assert found["published"]["stats"]["writes"] == 1
    assert found["published"]["stats"]["write_amplification"] > 0
    put = found["published"]["latencies"]["put"]
    assert put["count"] == 1
    assert 0 < put["p50"] == put["max"]
    assert found["published"]["compaction"] is None


def test_json_of_nobody(store: Path) -> None:
    with DB(store, create_if_missing=True):
        done = lsm("top", store, "--json")
    assert done.status == 1
    assert json.loads(done.out) == {
        "path": str(store),
        "pid": os.getpid(),
        "publishes": False,
        "published": None,
    }
    assert json.loads(lsm("top", store, "--json").out)["pid"] is None


def test_without_a_terminal_or_a_store(store: Path) -> None:
    fails(lsm("top", store), "no database here")
    DB(store, create_if_missing=True).close()
    fails(lsm("top", store), "needs a terminal", "--json")
    (store / "STATS.json").write_bytes(b"{")
    fails(lsm("top", store, "--json"), "STATS.json", "not what lsmkv publishes")


def test_without_textual(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DB(store, create_if_missing=True).close()
    monkeypatch.setitem(sys.modules, "lsmkv.tools.top.app", None)
    monkeypatch.setattr("lsmkv.tools.top.command.stdout_is_terminal", lambda: True)
    monkeypatch.setattr("lsmkv.tools.top.command.stdin_is_terminal", lambda: True)
    fails(lsm("top", store), "extra 'tools'", "textual")
