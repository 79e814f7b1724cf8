"""Stores that other processes have open, and their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from others import Other

from lsmkv.shared.system.local import SHARES

collect_ignore_glob = [] if SHARES else ["test_[!d]*.py"]  # a store is destroyed anywhere


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def other(path: Path) -> Iterator[Callable[..., Other]]:
    """Starts processes that open the store; they are killed at the end."""
    made: list[Other] = []

    def begin(**options: Any) -> Other:
        made.append(Other(path, **options))
        return made[-1]

    yield begin
    for one in made:
        one.kill()
