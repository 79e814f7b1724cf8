"""lsmkv.tools.bench.engines.dbm: keys in no order, and a sync where the kind has one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench_engines import SMALL, check_keys

from lsmkv.tools.bench.engines import dbm
from lsmkv.tools.bench.engines.dbm import DBMEngine, DBMStore


def test_keys_are_put_read_and_deleted(tmp_path: Path) -> None:
    check_keys(DBMEngine(), tmp_path)


def test_each_put_is_synced_if_that_is_asked_for() -> None:
    class Kept(dict[bytes, bytes]):
        synced = 0

        def sync(self) -> None:
            self.synced += 1

    db = Kept()
    for sync, expected in ((False, 0), (True, 1)):
        DBMStore(db, sync).putter()(b"k", b"v")
        assert (db, db.synced) == ({b"k": b"v"}, expected)


def test_what_it_cannot_do_depends_on_the_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    cannot = {}
    for kind in ("dbm.gnu", "dbm.ndbm", "dbm.dumb"):
        module: Any = SimpleNamespace(open=lambda path, flag: {})
        monkeypatch.setattr(dbm, "_best_kind", lambda kind=kind, module=module: (kind, module))
        cannot[kind] = set(DBMEngine().cannot)
    assert {"readseq", "fillbatch", "compact"} <= cannot["dbm.gnu"]
    assert cannot["dbm.ndbm"] - cannot["dbm.gnu"] == {"fillsync"}
    assert cannot["dbm.dumb"] - cannot["dbm.ndbm"] == {"deleterandom"}
    assert not DBMEngine().threads


def test_loops_that_it_cannot_do_are_not_implemented(tmp_path: Path) -> None:
    store = DBMEngine().open(str(tmp_path), SMALL)
    for call in (store.batch_writer, store.seeker):
        with pytest.raises(NotImplementedError):
            call()
    store.close()
