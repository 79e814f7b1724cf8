"""A directory of the local file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmkv.engine.env.local import LocalDirectory, LocalEnv


@pytest.fixture
def store(tmp_path: Path) -> LocalDirectory:
    return LocalEnv().open_directory(str(tmp_path / "store"), create=True)
