"""The playground, built once for all of its tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from make_playground import build
from pyodide_files import found


@pytest.fixture(scope="session")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a playground; tests are skipped without npm, with which it is built."""
    try:
        found("npm")
    except SystemExit as missing:
        pytest.skip(str(missing))
    target = tmp_path_factory.mktemp("playground") / "built"
    build(target)
    return target
