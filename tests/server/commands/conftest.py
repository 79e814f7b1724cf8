"""A client of an empty store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from serving import Client, an_engine


@pytest.fixture
def client() -> Iterator[Client]:
    with an_engine() as engine:
        yield Client(engine)
