"""What tests of whole stores are given: a path, a new store there, and ways to open one."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from others import Other

import lsmkv
from lsmkv import DB, SharedDB


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "db")


@pytest.fixture
def db(path: str) -> Iterator[DB]:
    with DB(path, create_if_missing=True) as db:
        yield db


class InCode:
    """An option as another process's code spells it."""

    def __init__(self, option: object) -> None:
        self._option = option

    def __repr__(self) -> str:
        is_policy = type(self._option).__module__.startswith(lsmkv.__name__)
        return f"lsmkv.{self._option!r}" if is_policy else f"{self._option!r}"


@pytest.fixture(params=["DB", "read-only DB", "member of a SharedDB"])
def opening(request: pytest.FixtureRequest) -> Iterator[Callable[..., DB | SharedDB]]:
    """How to open a store, as the parameter says."""
    owners: list[Other] = []

    def open_it(path: pathlib.Path, **options: Any) -> DB | SharedDB:
        if request.param == "DB":
            return DB(path, **options)
        if request.param == "read-only DB":
            return DB(path, read_only=True, **options)
        own = {name: InCode(one) for name, one in options.items() if name != "lru_cache_size"}
        owners.append(Other(path, **own))
        assert owners[0].opened == "open"
        return SharedDB(path, **options)

    yield open_it
    for owner in owners:
        owner.kill()
