"""The memory of this process."""

from __future__ import annotations

import sys

import pytest

from lsmkv.engine.env.process_memory import installed, peak, resident


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not report it here")
def test_memory_is_that_of_the_process() -> None:
    before = resident()
    kept = bytearray(64 * 2**20)
    kept[::4096] = b"x" * (len(kept) // 4096)
    assert len(kept) < resident() <= installed()
    assert before + len(kept) // 2 < resident() <= peak() + 2**20
