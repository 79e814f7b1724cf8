"""lsmkv.shared.destroying: ``destroy_db`` removes the files of a store and no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from stores import TINY, files, fill

import lsmkv
from lsmkv import DB, MemoryEnv
from lsmkv.engine.format.filenames import FileType


def test_destroy_db(path: Path) -> None:
    with DB(path, create_if_missing=True, **TINY) as db:
        fill(db)
        with pytest.raises(lsmkv.LockedError):
            lsmkv.destroy_db(path)
        db.check()
    DB(path).close()
    lsmkv.destroy_db(path)
    assert not os.path.exists(path)
    lsmkv.destroy_db(path)
    with DB(path, create_if_missing=True) as db:
        assert list(db) == []


def test_destroy_db_leaves_foreign_files(path: Path) -> None:
    with DB(path, create_if_missing=True) as db:
        fill(db)
        db.flush()
    foreign = {"notes.txt", "data.ldb", "1.ldb.bak", "000001.log.gz", "sub"}
    os.mkdir(os.path.join(path, "sub"))
    Path(path, "sub", "000001.ldb").write_bytes(b"mine")
    for name in foreign - {"sub"}:
        Path(path, name).write_bytes(b"mine")
    lsmkv.destroy_db(Path(path))
    assert set(os.listdir(path)) == foreign
    assert Path(path, "sub", "000001.ldb").read_bytes() == b"mine"


def test_destroy_db_in_another_env() -> None:
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        fill(db)
    lsmkv.destroy_db("/db", env=env)
    with pytest.raises(lsmkv.NotFoundError):
        DB("/db", env=env)


def test_destroy_db_removes_the_files_in_lost(path: Path) -> None:
    with DB(path, create_if_missing=True) as db:
        for n in range(10):
            db.put(b"%d" % n, b"v" * 50)
    (name,) = files(path, FileType.LOG)
    log = Path(path, name)
    data = bytearray(log.read_bytes())
    data[150] ^= 1
    log.write_bytes(data)
    with pytest.warns(lsmkv.RecoveryWarning):
        DB(path).close()
    assert sorted(os.listdir(os.path.join(path, "lost"))) == [name, "RECOVERY.json"]
    lsmkv.destroy_db(path)
    assert not os.path.exists(path)
