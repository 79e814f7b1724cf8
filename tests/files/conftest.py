"""A store whose files are looked into."""

from __future__ import annotations

import pytest
from made_files import Made, make_store


@pytest.fixture(scope="package")
def made() -> Made:
    """A store with LevelDB's filters, uncompressed."""
    return make_store()
