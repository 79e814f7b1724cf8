"""A store's directory: its files, and other engines' directories."""

from __future__ import annotations

from pathlib import Path

import pytest

import lsmkv
from lsmkv.errors import ForeignFormatError, NotFoundError
from lsmkv.files import StoreFiles, foreign_engine, parse_name


def test_a_directorys_files_come_in_the_order_of_recovery(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path, create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.flush()
        db.put(b"k", b"w")
    (tmp_path / "notes.txt").write_text("mine")
    with StoreFiles(tmp_path) as files:
        names = files.names()
        assert names[:2] == ["CURRENT", files.manifest_in_force()]
        assert [parse_name(name).kind for name in names[2:]] == ["log", "table"]  # type: ignore[union-attr]
        assert not files.exists("000099.ldb")
    (tmp_path / "CURRENT").write_text("../MANIFEST-000001\n")
    with StoreFiles(str(tmp_path)) as files:
        assert files.manifest_in_force() is None


def test_a_directory_without_a_store_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        StoreFiles(tmp_path).names()
    (tmp_path / "marker.manifest.1").write_text("")
    with pytest.raises(ForeignFormatError, match="Pebble"):
        StoreFiles(tmp_path).names()


def test_other_engines_are_known_by_their_files() -> None:
    assert foreign_engine(["CURRENT", "IDENTITY"]) == "RocksDB"
    assert foreign_engine(["sst_0", "sst_6"]) == "Riak (eleveldb)"
    assert foreign_engine(["CURRENT", "000005.ldb"]) is None
