"""Where bytes come from: paths, bytes and objects that read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from made_files import Made

from lsmkv.files import Log, Table


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
    with pytest.raises(TypeError, match="give a path, bytes or a readable object, not "):
        Table(source)  # type: ignore[arg-type]


def test_an_object_whose_read_gives_no_bytes_is_a_type_error() -> None:
    class Numbers:
        path, size = "numbers", 100

        def read(self, offset: int, length: int, /) -> int:
            return length

        def close(self) -> None: ...

    with pytest.raises(TypeError, match="numbers: read returned int, not bytes"):
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
