"""What is said of a directory, and that one that holds a store is left alone."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv.tools.doctor import place as place_module
from lsmkv.tools.doctor.place import place, shortened
from lsmkv.tools.doctor.trial import Trials


def snapshot(path: Path) -> dict[str, tuple[bytes, os.stat_result]]:
    return {one.name: (one.read_bytes(), one.stat()) for one in path.iterdir()}


def times(found: dict[str, tuple[bytes, os.stat_result]]) -> dict[str, tuple[int, int, int]]:
    return {
        name: (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        for name, (_, status) in found.items()
    }


def test_an_empty_directory(tmp_path: Path) -> None:
    found = place(str(tmp_path))
    assert (found.missing, found.not_tried, found.holds_store) == ("", "", False)
    assert found.tried_in == "the directory"
    assert found.trials is not None
    assert found.trials[:5] == ("", "", "", "", "")
    assert os.listdir(tmp_path) == []


def test_a_store_is_neither_opened_nor_changed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with lsmkv.DB(path, create_if_missing=True) as db:
        db.put(b"key", b"value")
        before, folder = snapshot(path), path.stat()
        found = place(str(path))
        after = snapshot(path)
    assert found.holds_store
    assert found.tried_in == "the directory above"
    assert found.trials is not None
    assert {name: content for name, (content, _) in before.items()} == {
        name: content for name, (content, _) in after.items()
    }
    assert times(before) == times(after)
    changed = path.stat()
    assert (folder.st_mtime_ns, folder.st_ctime_ns) == (changed.st_mtime_ns, changed.st_ctime_ns)
    assert os.listdir(tmp_path) == ["store"]


def test_a_part_of_a_store_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store"
    lsmkv.DB(path, create_if_missing=True).close()
    (path / "lost").mkdir()
    folders = [path.stat().st_mtime_ns, (path / "lost").stat().st_mtime_ns]
    found = place(str(path / "lost"))
    assert found.holds_store
    assert found.trials is None
    assert folders == [path.stat().st_mtime_ns, (path / "lost").stat().st_mtime_ns]


def test_nothing_is_tried_where_the_directory_above_is_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "CURRENT").write_text("MANIFEST-000001\n")
    monkeypatch.setattr(place_module, "beside", lambda _: None)
    found = place(str(tmp_path))
    assert found.holds_store
    assert (found.trials, found.tried_in, found.not_tried) == (None, "", "")
    assert os.listdir(tmp_path) == ["CURRENT"]


def test_a_write_protected_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def protected(_: str) -> Trials:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(place_module, "try_directory", protected)
    found = place(str(tmp_path))
    assert (found.trials, found.tried_in) == (None, "")
    assert found.not_tried == os.strerror(errno.EROFS)


def test_what_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, number in (("missing", errno.ENOENT), ("file", errno.ENOTDIR)):
        found = place(str(tmp_path / name))
        assert found.missing == os.strerror(number)
        assert found.trials is None
        assert (found.free_bytes, found.file_system) == (None, "")


@pytest.mark.parametrize(
    ("home", "path", "shown"),
    [
        ("/home/ada", "/home/ada/data", "~/data"),
        ("/home/ada", "/home/ada", "~"),
        ("/home/ada/", "/home/ada/data", "~/data"),
        ("/home/ada", "/home/adam/data", "/home/adam/data"),
        ("/home/ada", "data", "data"),
        ("/", "/data", "/data"),
    ],
)
def test_the_home_directory_is_shortened(
    monkeypatch: pytest.MonkeyPatch, home: str, path: str, shown: str
) -> None:
    def expanded(_: Any) -> str:
        return home

    monkeypatch.setattr(os.path, "expanduser", expanded)
    assert shortened(path) == shown
