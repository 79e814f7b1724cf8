"""Scripts run in both places."""

from __future__ import annotations

import pytest
from serving import PLACES


@pytest.fixture(params=PLACES)
def scripts(request: pytest.FixtureRequest) -> str:
    """In the server, and in a process of their own."""
    place: str = request.param
    return place
