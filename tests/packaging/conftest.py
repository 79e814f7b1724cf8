"""The distributions under test.  Installing them takes as long as pip and the compiler do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _watchdog() -> None:
    """In place of the one that ends a run whose test takes minutes."""


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what ``make wheel`` makes: the compiled wheel and the source distribution."""
    folder = os.environ.get("LSMKV_DIST")
    if folder is None:
        pytest.fail("LSMKV_DIST names the folder with the distributions: say make test-install")
    return Path(folder).resolve()
