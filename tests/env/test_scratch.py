"""lsmkv.env.scratch: a temporary directory, gone at the end whatever happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmkv.env.scratch import scratch_directory


def test_it_is_made_where_it_is_wanted_and_removed_with_its_content(tmp_path: Path) -> None:
    with scratch_directory("lsmkv-x-", str(tmp_path)) as path, scratch_directory("lsmkv-") as other:
        assert Path(path).parent == tmp_path
        assert Path(path).name.startswith("lsmkv-x-")
        assert Path(other).parent != tmp_path
        (Path(path) / "inner").mkdir()
        (Path(path) / "inner" / "file").write_bytes(b"content")
    assert list(tmp_path.iterdir()) == []
    assert not Path(other).exists()


def test_an_exception_removes_it_too(tmp_path: Path) -> None:
    with pytest.raises(LookupError), scratch_directory("x", str(tmp_path)):
        raise LookupError
    assert list(tmp_path.iterdir()) == []
