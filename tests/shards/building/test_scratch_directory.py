"""lsmkv.shards.building.scratch_directory: a temporary directory that is always removed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from lsmkv.shards.building.scratch_directory import scratch_directory


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_it_is_removed_with_its_content(tmp_path: Path) -> None:
    with scratch_directory("lsmkv-x-") as path, scratch_directory("lsmkv-x-") as other:
        assert Path(path).parent == tmp_path
        assert Path(path).name.startswith("lsmkv-x-")
        assert path != other
        (Path(path) / "inner").mkdir()
        (Path(path) / "inner" / "file").write_bytes(b"content")
    assert list(tmp_path.iterdir()) == []


def test_an_exception_removes_it_too(tmp_path: Path) -> None:
    with pytest.raises(LookupError), scratch_directory("x"):
        raise LookupError
    assert list(tmp_path.iterdir()) == []
