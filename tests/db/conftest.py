"""What tests of whole stores are given: a path, and a new store there."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

from lsmkv import DB


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "db")


@pytest.fixture
def db(path: str) -> Iterator[DB]:
    with DB(path, create_if_missing=True) as db:
        yield db
