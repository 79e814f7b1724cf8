"""The keys that the demo's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from demos import LINES


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "keys.txt"
    path.write_bytes(b"".join(LINES))
    return path
