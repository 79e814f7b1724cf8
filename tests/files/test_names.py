"""Where bytes come from, and the names of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from made_files import Made

import lsmkv
from lsmkv.errors import ForeignFormatError, NotFoundError
from lsmkv.files import (
    FileName,
    Log,
    StoreFiles,
    Table,
    foreign_engine,
    key_order,
    make_key,
    make_name,
    parse_key,
    parse_name,
)


def test_a_file_is_given_as_a_path_or_as_bytes(tmp_path: Path, made: Made) -> None:
    path = tmp_path / "000005.ldb"
    path.write_bytes(made.table())
    expected = list(Table(made.table()).entries())
    for source in (path, str(path), made.table()):
        with Table(source) as table:
            assert list(table.entries()) == expected
            assert table.size == len(made.table())
    assert repr(Table(path)) == f"<lsmkv.files.Table {str(path)!r}, {len(made.table()):,} bytes>"


def test_a_name_without_a_folder_is_of_the_working_directory(
    tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "any name").write_bytes(made.log())
    monkeypatch.chdir(tmp_path)
    assert len(list(Log("any name").records())) == len(made.entries) + 1


@pytest.mark.parametrize("source", [None, 5, bytearray(b"bytes")])
def test_what_cannot_be_read_is_a_type_error(source: object) -> None:
    with pytest.raises(TypeError, match="give a path, bytes or an object that reads, not "):
        Table(source)  # type: ignore[arg-type]


def test_an_object_whose_read_gives_no_bytes_is_a_type_error() -> None:
    class Numbers:
        path, size = "numbers", 100

        def read(self, offset: int, length: int, /) -> int:
            return length

        def close(self) -> None: ...

    with pytest.raises(TypeError, match="numbers: read gave int, not bytes"):
        list(Log(Numbers()).walk())  # type: ignore[arg-type]


def test_a_file_that_is_missing_or_no_file_raises_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Table(tmp_path / "000005.ldb")
    with pytest.raises(OSError, match="Errno"):
        Table(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="a link needs rights there")
def test_links_are_not_followed(tmp_path: Path, made: Made) -> None:
    (tmp_path / "there").write_bytes(made.table())
    (tmp_path / "000005.ldb").symlink_to("there")
    with pytest.raises(OSError, match="link"):
        Table(tmp_path / "000005.ldb")


def test_a_closed_file_raises_oserror(tmp_path: Path, made: Made) -> None:
    path = tmp_path / "000005.ldb"
    path.write_bytes(made.table())
    table = Table(path)
    table.close()
    table.close()
    with pytest.raises(OSError, match="Errno"):
        list(table.entries())


def test_names_are_read_and_made() -> None:
    for name in ("000005.ldb", "000005.log", "MANIFEST-000005", "CURRENT", "LOCK", "LOG", "TRACE"):
        parsed = parse_name(name)
        assert parsed is not None
        assert make_name(*parsed) == name
    assert parse_name("000005.sst") == FileName("table", 5)
    assert make_name("table", 5, old=True) == "000005.sst"
    for name in ("", "notes.txt", "5.ldb.old", "MANIFEST-", "MANIFEST-x", "²5.ldb"):
        assert parse_name(name) is None
    with pytest.raises(ValueError, match="stats"):
        make_name("stats")


def test_keys_are_read_and_made() -> None:
    for key in ((b"", 0, 0), (b"user", (1 << 56) - 1, 1)):
        assert parse_key(make_key(*key)) == key
    for sequence, kind in ((-1, 1), (1 << 56, 1), (0, 2)):
        with pytest.raises(ValueError, match="no tag"):
            make_key(b"", sequence, kind)


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


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("leveldb.BytewiseComparator", [b"", b"a", b"ab", b"b"]),
        ("leveldb.ReverseBytewiseComparator", [b"b", b"ab", b"a", b""]),
        (lsmkv.ReverseBytewiseComparator(), [b"b", b"ab", b"a", b""]),
    ],
)
def test_keys_are_sorted_as_a_store_sorts_them(
    order: str | lsmkv.Comparator, expected: list[bytes]
) -> None:
    assert sorted([b"ab", b"b", b"", b"a"], key=key_order(order)) == expected


def test_keys_of_an_unknown_order_cannot_be_sorted() -> None:
    with pytest.raises(ValueError, match="is no comparator of lsmkv's"):
        key_order("example.ByLength")


def test_other_engines_are_known_by_their_files() -> None:
    assert foreign_engine(["CURRENT", "IDENTITY"]) == "RocksDB"
    assert foreign_engine(["sst_0", "sst_6"]) == "Riak (eleveldb)"
    assert foreign_engine(["CURRENT", "000005.ldb"]) is None
