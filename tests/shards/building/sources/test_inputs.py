"""Finding and opening the files that a build reads."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lsmkv.shards.building.sources.inputs import InputFile, find_inputs, open_input


def test_a_file_is_found_with_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"content")
    monkeypatch.chdir(tmp_path)
    assert find_inputs("file") == [InputFile(str(tmp_path / "file"), 7)]


def test_files_of_a_directory_come_by_name_without_the_marked_ones(tmp_path: Path) -> None:
    for name in ("b", "a10", "a2", "_SUCCESS", ".b.crc"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    found = [os.path.basename(file.path) for file in find_inputs(str(tmp_path))]
    assert found == ["a10", "a2", "b", "link"]


def test_what_cannot_be_read_twice_or_would_be_missed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    with pytest.raises(IsADirectoryError, match="pass the paths of its files") as error:
        find_inputs(str(tmp_path))
    assert error.value.filename == str(tmp_path / "inner")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file") as refused:
        find_inputs(str(tmp_path / "pipe"))
    assert refused.value.errno == errno.EINVAL
    assert refused.value.filename == str(tmp_path / "pipe")


def test_errors_name_the_file(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(FileNotFoundError) as found:
        find_inputs(missing)
    assert found.value.filename == missing
    with pytest.raises(FileNotFoundError) as opened, open_input(missing):
        pass
    assert opened.value.filename == missing
    (tmp_path / "file").write_bytes(b"content")
    with open_input(str(tmp_path / "file")) as file:
        assert file.read() == b"content"


def test_an_error_while_it_is_read_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = OSError(errno.EIO, "the reader's")

    def read() -> None:
        with open_input(str(tmp_path / "file")):
            raise error

    with pytest.raises(OSError, match="the reader's"):
        read()
    assert error.filename == str(tmp_path / "file")
