"""No thread of a store outlives its test."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from gates import PATIENCE


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("lsmkv-aio"):
            thread.join(PATIENCE)
            assert not thread.is_alive()
