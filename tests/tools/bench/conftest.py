"""The engine's rests between two steps are short in tests, and stores are opened three times."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lsmkv.tools.bench import leveldb, workloads


@pytest.fixture(autouse=True, scope="package")
def hurry() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leveldb, "_CALM", 0.02)
        patch.setattr(workloads, "OPENINGS", 3)
        yield
