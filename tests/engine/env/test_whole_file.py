"""Files that are replaced as a whole."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lsmkv.engine.env.whole_file import read_whole, replace_whole


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_whole(str(path), b"one")
    assert read_whole(str(path)) == b"one"
    if sys.platform != "win32":
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)
    replace_whole(str(path), b"two\n")
    assert path.read_bytes() == b"two\n"
    if sys.platform != "win32":
        assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_link_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"one")
    (tmp_path / "link").symlink_to("real")
    replace_whole(str(tmp_path / "link"), b"two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"two"


def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")

    def fails(descriptor: int) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="no space"):
        replace_whole(str(path), b"two")
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["file"]
