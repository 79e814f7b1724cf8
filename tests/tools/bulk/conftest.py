"""An input of bulk builds."""

from __future__ import annotations

from pathlib import Path

import pytest
from built_sets import write_input


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_input(tmp_path / "in.json")
