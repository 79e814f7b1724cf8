"""A store that replays read."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_stores import build


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("lab") / "base", "block:10")
