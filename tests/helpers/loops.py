"""The event loops that a server runs in: asyncio's and uvloop's, which raise different errors."""

from __future__ import annotations

import asyncio

import pytest

KINDS = ["asyncio", "uvloop"]


def new_loop(kind: str) -> asyncio.AbstractEventLoop:
    """A loop; the test is skipped where uvloop is not."""
    if kind == "asyncio":
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = pytest.importorskip("uvloop").new_event_loop()
    return loop
