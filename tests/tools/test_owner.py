"""``lsmkv owner status`` and ``lsmkv owner handover``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import lsm
from owner_processes import ended, ends, new

import lsmkv
from lsmkv.shared.system.local import SHARES
from lsmkv.shared.system.release import RELEASE

pytestmark = pytest.mark.skipif(not SHARES, reason="no store is shared here")


def test_a_store_without_an_owner(tmp_path: Path) -> None:
    path = tmp_path / "store"
    lsmkv.DB(path, create_if_missing=True).close()
    for name in ("status", "handover"):
        done = lsm("owner", name, path)
        assert (done.status, done.out) == (1, "")
        assert done.err == f"lsmkv: {path}: no process owns the store\n"
        fields = json.loads(lsm("owner", name, path, "--json").out)
        nothing = dict.fromkeys(("pid", "release", "only_owns", "members"))
        assert fields == {"path": str(path)} | nothing
    with lsmkv.DB(path):
        done = lsm("owner", "status", path)
        assert done.status == 2
        assert "in use" in done.err


def test_an_owner_that_does_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with ended(path), new(path) as db:
        owner = db.owner
        line = (
            f"{path}: owned by process {owner}, which does nothing else; lsmkv {RELEASE}; 1 member"
        )
        assert lsm("owner", "status", path).out == f"{line}\n"
        fields = json.loads(lsm("owner", "status", path, "--json").out)
        assert (fields["pid"], fields["release"], fields["only_owns"]) == (owner, RELEASE, True)
        done = lsm("owner", "handover", path)
        assert (done.status, done.out) == (
            0,
            f"{path}: process {owner} has handed the store over\n",
        )
        assert ends(owner)
        db.put(b"k", b"v")
        assert json.loads(lsm("owner", "handover", path, "--json").out)["pid"] == db.owner != owner


def test_an_owner_that_does_not_hand_over(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with lsmkv.SharedDB(path, create_if_missing=True) as db, db.batches():
        done = lsm("owner", "handover", path)
        assert done.status == 2
        assert "does not hand it over" in done.err
