"""Fixtures for pytest: ``pytest_plugins = ["lsmkv.pytest_plugin"]`` in ``conftest.py``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lsmkv.testing import serving

if TYPE_CHECKING:
    from lsmkv.server.server import Server


@pytest.fixture
def lsmkv_server() -> Iterator[Server]:
    """A server for Redis clients, of an empty store in memory."""
    with serving() as server:
        yield server
