from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from inspected import levelled_store

from lsmkv.tools.inspect.api import Api


@pytest.fixture(scope="session")
def made_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that tests only read."""
    return levelled_store(tmp_path_factory.mktemp("inspected") / "store")


@pytest.fixture
def path(made_store: Path, tmp_path: Path) -> Path:
    """A copy of that store, which a test may change."""
    return Path(shutil.copytree(made_store, tmp_path / "db"))


@pytest.fixture
def api(made_store: Path) -> Iterator[Api]:
    with contextlib.closing(Api(str(made_store))) as api:
        yield api
