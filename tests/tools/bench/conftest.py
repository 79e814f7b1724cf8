"""The engine's rests between two steps are short in tests, stores are opened three times, and the
garbage collector, which a timed loop has look at all objects first, is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from lsmkv.tools.bench import leveldb, loops, workloads


@pytest.fixture(autouse=True, scope="package")
def hurry() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leveldb, "_CALM", 0.02)
        patch.setattr(workloads, "OPENINGS", 3)
        idle = dict.fromkeys(("collect", "freeze", "unfreeze"), lambda: None)
        patch.setattr(loops, "gc", SimpleNamespace(**idle))
        yield
